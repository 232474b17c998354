"""The configuration as frozen pydantic models; defaults live here and nowhere else.

An unknown key is refused (``extra="forbid"``); :mod:`headrace.schemas.config_io` turns pydantic's complaints into
messages with the dotted path and the nearest valid key.
"""

from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from headrace.schemas.config_notebook import config_html, config_line
from headrace.schemas.section import Section
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.variables import MissingPolicy, VariableConfig
from headrace.schemas.windows import TargetPolicy, WindowSpec

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
Period = tuple[str, str]
BadChunkPolicy = Literal["error", "missing"]
SizeText = Annotated[str, Field(pattern=r"(?i)^\s*\d+(\.\d+)?\s*(([kmgt]i?)?b)?\s*$")]
"""A number of bytes with its unit, such as 2GiB."""


def _mapping(value: object) -> object:
    """Accept a list of names, a mapping name → array name, or a mapping name → settings."""
    if isinstance(value, list | tuple):
        odd = next((name for name in value if not isinstance(name, str)), None)
        if odd is not None:
            msg = f"a list may hold names only, not {odd!r}: write a mapping name → array instead (no dashes)"
            raise ValueError(msg)
        return {name: {"physical": name} for name in value}
    if isinstance(value, dict):
        return {str(k): {"physical": v} if isinstance(v, str) else v for k, v in value.items()}
    return value


def _id_text(value: object) -> object:
    """Keep basin ids as text: YAML reads an unquoted 54001 as a number (ids with a leading zero stay text)."""
    if isinstance(value, list | tuple):
        odd = next((v for v in value if isinstance(v, bool) or not isinstance(v, str | int)), "")
        if odd != "":
            msg = f"basin id {odd!r} is not text: put it in quotes"
            raise ValueError(msg)
        return tuple(str(v) for v in value)
    return value


def _one_at_least(value: object) -> object:
    """Take no reader thread for one: something has to read."""
    return 1 if value == 0 and not isinstance(value, bool | float) else value


VariableMap = Annotated[dict[str, VariableConfig], BeforeValidator(_mapping)]
BasinList = Annotated[str | tuple[str, ...], BeforeValidator(_id_text)]


class SplitBasins(Section):
    """Basins per split; a split left out has no basins."""

    train: BasinList = ()
    valid: BasinList = ()
    test: BasinList = ()


class VariablesConfig(Section):
    """Which arrays of a data set are inputs, targets and statics."""

    relevant: VariableMap = Field(default_factory=dict)
    target: VariableMap = Field(default_factory=dict)
    constant: VariableMap = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_are_unique(self) -> "VariablesConfig":
        for first, second in combinations(("relevant", "target", "constant"), 2):
            both = sorted(set(getattr(self, first)) & set(getattr(self, second)))
            if both:
                msg = f"{both} named under {first} and under {second}: give the two roles different names"
                raise ValueError(msg)
        return self


class DatasetConfig(Section):
    """One source: its stores, basins, periods and variables."""

    timeseries: str = Field(min_length=1)
    attributes: str | None = None
    basins: Annotated[str | tuple[str, ...] | SplitBasins, BeforeValidator(_id_text)] = "all"
    t_range_train: Period | None = None
    t_range_valid: Period | None = None
    t_range_test: Period | None = None
    variables: VariablesConfig = VariablesConfig()
    weight: PositiveFloat = 1.0
    id_width: PositiveInt | None = None
    fix_time: Literal["none", "sort", "drop_duplicates"] = "none"
    duplicate_basins: Literal["error", "first", "last"] = "error"

    def period(self, split: Split) -> Period | None:
        """Return the configured first and last date of a split, inclusive, or None."""
        periods: dict[str, Period | None] = {
            "train": self.t_range_train,
            "valid": self.t_range_valid,
            "test": self.t_range_test,
        }
        return periods[split]


class WindowConfig(Section):
    """Window shape in steps; see :class:`headrace.schemas.windows.WindowSpec`."""

    hindcast_length: NonNegativeInt = WindowSpec().hindcast_length
    forecast_length: NonNegativeInt = WindowSpec().forecast_length
    warmup_length: NonNegativeInt | None = None
    """Steps without target at the window's start; default: all but the last step."""
    stride: PositiveInt = 1

    @model_validator(mode="after")
    def _shape_exists(self) -> "WindowConfig":
        self.spec()
        return self

    def spec(self) -> WindowSpec:
        """Return the checked window shape."""
        warmup = self.warmup_length
        return WindowSpec(
            hindcast_length=self.hindcast_length,
            forecast_length=self.forecast_length,
            warmup_length=max(self.hindcast_length + self.forecast_length - 1, 0) if warmup is None else warmup,
            stride=self.stride,
        )


class MissingConfig(Section):
    """What missing values, absent chunks and unequal units do."""

    target_nan_policy: TargetPolicy = "drop_any_nan"
    missing_policy: MissingPolicy = "fill"
    absent_chunk: Literal["valid_zero", "missing", "error"] = "valid_zero"
    static_missing: Literal["error", "impute", "drop"] = "error"
    on_bad_chunk: BadChunkPolicy = "error"
    unit_mismatch_policy: Literal["warn", "error", "ignore"] = "warn"


class NormalizationConfig(Section):
    """How values are scaled before they reach the model."""

    method: Literal["standard", "none"] = "standard"
    scope: Literal["global", "per_dataset", "per_basin"] = "global"


class SamplingConfig(Section):
    """How many windows of each data set an epoch serves."""

    mode: Literal["weighted_by_sample", "balanced_by_dataset", "weighted_by_dataset"] = "weighted_by_sample"
    max_batches_per_epoch: PositiveInt | None = None
    max_windows_per_basin: PositiveInt | None = None


class LoaderConfig(Section):
    """Defaults of :class:`headrace.loader.WindowLoader`."""

    batch_size: PositiveInt = 512
    memory_budget: Literal["auto"] | SizeText | PositiveInt = "auto"
    num_workers: Annotated[Literal["auto"] | PositiveInt, BeforeValidator(_one_at_least)] = "auto"
    """Reader threads; 0, which other loaders take for none, is one."""
    prefetch_factor: PositiveInt = 1
    """Rounds read ahead of the one being served; they and it share the memory budget."""
    cache_dir: str | None = None
    cache_limit: SizeText | PositiveInt | None = None
    device_memory_budget: SizeText | PositiveInt | None = None
    """Bytes of a GPU's memory for decoded rows; None is a quarter of what is free."""
    cuda_prefetch: bool = True
    """Whether rows or batches are brought to the GPU ahead of use; if not, each batch when it is asked for."""
    cuda_prefetch_batches: PositiveInt = 2
    """Batches on their way to the GPU where rows do not fit there."""
    seed: NonNegativeInt = 0
    drop_last: bool = False
    timeout: PositiveFloat | None = None
    """Seconds to wait for a batch before an error; None waits for ever."""
    allow_mixed_time_steps: bool = False


class Config(Section):
    """A whole configuration file."""

    datasets: dict[str, DatasetConfig] = Field(min_length=1)
    window: WindowConfig = WindowConfig()
    missing: MissingConfig = MissingConfig()
    normalization: NormalizationConfig = NormalizationConfig()
    sampling: SamplingConfig = SamplingConfig()
    storage: StorageConfig = StorageConfig()
    loader: LoaderConfig = LoaderConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="before")
    @classmethod
    def _empty_sections_are_default(cls, data: object) -> object:
        """Take a section whose every line is commented out, which YAML reads as null, as left out."""
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _weights_are_of_targets(self) -> "Config":
        targets = self.names("target")
        unknown = [name for name in self.train.target_weights if name not in targets]
        if unknown:
            known = ", ".join(targets) or "no target"
            msg = f"train.target_weights names {', '.join(unknown)}: expected some of {known}, "
            raise ValueError(msg + "the names under variables.target")
        return self

    def names(self, role: Literal["input", "target", "static"]) -> tuple[str, ...]:
        """Return the canonical names of a role over all data sets, in order of first appearance."""
        field = {"input": "relevant", "target": "target", "static": "constant"}[role]
        seen: dict[str, None] = {}
        for dataset in self.datasets.values():
            seen.update(dict.fromkeys(getattr(dataset.variables, field)))
        return tuple(seen)

    def variables_of(self, dataset_id: str, role: Literal["input", "target", "static"]) -> dict[str, VariableConfig]:
        """Return the variables of one role that a data set declares."""
        field = {"input": "relevant", "target": "target", "static": "constant"}[role]
        declared: dict[str, VariableConfig] = getattr(self.datasets[dataset_id].variables, field)
        return declared

    def as_dict(self) -> dict[str, Any]:
        """Return the resolved whole as plain JSON-ready values."""
        return self.model_dump(mode="json")

    def __repr__(self) -> str:
        """Name data sets, variables and window on a line."""
        return config_line(self)

    def _repr_html_(self) -> str:
        """Show a notebook the resolved whole."""
        return config_html(self)
