"""What a loader is asked to serve: the index's configuration with the caller's changes, checked and digested."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from headrace.loader.catalog import Index, check_split
from headrace.schemas.config import (
    Config,
    MissingConfig,
    NormalizationConfig,
    SamplingConfig,
    Split,
    WindowConfig,
)
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.windows import WindowSpec

Section = TypeVar("Section", bound=BaseModel)
BasinChoice = Sequence[str] | Mapping[str, Sequence[str]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSpec:
    """Everything that decides which windows are served and what they hold.

    Parameters
    ----------
    split
        train, valid or test.
    window
        Shape in steps.
    missing, normalization, sampling
        Sections of the configuration.
    dataset_ids
        Data sets, in the configuration's order.
    basins
        int32 per data set: chosen basin numbers, ascending (all splits).
    shuffle
        Whether windows are permuted.
    """

    split: Split
    window: WindowSpec
    missing: MissingConfig
    normalization: NormalizationConfig
    sampling: SamplingConfig
    dataset_ids: tuple[str, ...]
    basins: tuple[NDArray[np.int32], ...]
    shuffle: bool

    def digest(self) -> str:
        """Return 16 hex digits that change when any served value or the order could change."""
        data: dict[str, Any] = {
            "split": self.split,
            "window": asdict(self.window),
            "missing": self.missing.model_dump(mode="json"),
            "normalization": self.normalization.model_dump(mode="json"),
            "sampling": self.sampling.model_dump(mode="json"),
            "basins": {d: b.tolist() for d, b in zip(self.dataset_ids, self.basins, strict=True)},
            "shuffle": self.shuffle,
        }
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def resolve_spec(
    index: Index,
    *,
    split: str,
    window: WindowConfig | WindowSpec | Mapping[str, Any] | None = None,
    missing: MissingConfig | Mapping[str, Any] | None = None,
    normalization: NormalizationConfig | Mapping[str, Any] | None = None,
    sampling: SamplingConfig | Mapping[str, Any] | None = None,
    datasets: Sequence[str] | None = None,
    basins: BasinChoice = None,
    shuffle: bool | None = None,
) -> ServeSpec:
    """Combine the index's configuration with what a caller changes; None keeps the index's value.

    Raises
    ------
    ConfigError
        A split, data set, basin, key or value does not exist or fit.
    """
    check_split(split)
    config = index.config
    chosen = _choose_datasets(index, datasets)
    if isinstance(window, WindowSpec):
        spec = window
    else:
        spec = _section(config.window, window, "window").spec()
    sampled = _section(config.sampling, sampling, "sampling")
    if sampled.mode != "weighted_by_sample" or sampled.max_windows_per_basin is not None:
        raise ConfigError(
            describe(
                "sampling mode is not available in this version",
                where="sampling",
                expected="mode: weighted_by_sample without max_windows_per_basin",
                got=json.dumps(sampled.model_dump(mode="json")),
                fix="leave sampling out; every window is then served once per epoch",
            )
        )
    spec_out = ServeSpec(
        split=split,  # type: ignore[arg-type]
        window=spec,
        missing=_section(config.missing, missing, "missing"),
        normalization=_section(config.normalization, normalization, "normalization"),
        sampling=sampled,
        dataset_ids=chosen,
        basins=tuple(_choose_basins(index, d, chosen, basins) for d in chosen),
        shuffle=split == "train" if shuffle is None else shuffle,
    )
    _refuse_mixed_steps(index, config, chosen)
    return spec_out


def _section(default: Section, given: Section | Mapping[str, Any] | None, name: str) -> Section:
    if given is None:
        return default
    if isinstance(given, BaseModel):
        return given
    try:
        return type(default).model_validate({**default.model_dump(), **given})
    except ValidationError as error:
        problem = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
        raise ConfigError(
            describe(
                "loader argument is not valid",
                where=f"WindowLoader({name}=…)",
                expected=f"keys {', '.join(type(default).model_fields)}",
                got=problem,
                fix="correct the argument",
            )
        ) from None


def _choose_datasets(index: Index, datasets: Sequence[str] | None) -> tuple[str, ...]:
    known = index.dataset_ids
    unknown = [d for d in datasets or () if d not in known]
    if unknown:
        raise ConfigError(
            describe(
                "no such data set",
                where="datasets",
                expected=", ".join(known),
                got=", ".join(unknown),
                fix="correct the name, or build the index with it",
            )
        )
    return tuple(d for d in known if datasets is None or d in datasets)


def _choose_basins(index: Index, dataset_id: str, chosen: Sequence[str], basins: BasinChoice) -> NDArray[np.int32]:
    table = index.fetch("basins", dataset_id=dataset_id)
    numbers: NDArray[np.int32] = table.column("basin").to_numpy()
    if basins is None:
        return numbers
    if isinstance(basins, Mapping):
        wanted = basins.get(dataset_id)
        if wanted is None:
            return numbers
    else:
        wanted = basins
    position = {text: i for i, text in enumerate(table.column("basin_id").to_pylist())}
    unknown = [b for b in wanted if b not in position]
    elsewhere = not isinstance(basins, Mapping) and len(chosen) > 1
    if unknown and not elsewhere:
        raise ConfigError(
            describe(
                "basin is not in the index",
                where=f"data set {dataset_id}",
                expected=f"one of its {len(position)} basins, such as {', '.join(list(position)[:3])}",
                got=", ".join(unknown[:5]),
                fix="correct the id (ids are text, leading zeros count)",
            )
        )
    rows = np.unique([position[b] for b in wanted if b in position]).astype(np.int64)
    return numbers[rows]


def _refuse_mixed_steps(index: Index, config: Config, chosen: Sequence[str]) -> None:
    rows = [r for r in index.fetch("datasets").to_pylist() if r["dataset_id"] in chosen]
    steps = {r["dataset_id"]: r["step_seconds"] for r in rows}
    if len(set(steps.values())) > 1 and not config.loader.allow_mixed_time_steps:
        raise ConfigError(
            describe(
                "data sets have different time steps",
                where="datasets",
                expected="one time step, or loader.allow_mixed_time_steps: true",
                got=", ".join(f"{d} {s} s" for d, s in steps.items()),
                fix="choose data sets of one step with datasets=[…]",
            )
        )
