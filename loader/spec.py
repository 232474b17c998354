"""What a loader is asked to serve: the index's configuration with the caller's changes, checked and digested."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from headrace.loader.arguments import is_above_zero, opened, yes_or_no
from headrace.loader.catalog import Index, check_split
from headrace.loader.columns import numbers
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
    columns
        Inputs with their missing policy, then targets, then statics: what the columns of a batch are.
    weights
        Of every data set, above 0; they count in the mode ``weighted_by_dataset``.
    """

    split: Split
    window: WindowSpec
    missing: MissingConfig
    normalization: NormalizationConfig
    sampling: SamplingConfig
    dataset_ids: tuple[str, ...]
    basins: tuple[NDArray[np.int32], ...]
    shuffle: bool
    columns: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...]

    def digest(self) -> str:
        """Return 16 hex digits that change when any served value or the order could change."""
        data: dict[str, Any] = {
            "split": self.split,
            "datasets": self.dataset_ids,
            "columns": self.columns,
            "window": asdict(self.window),
            "missing": self.missing.model_dump(mode="json"),
            "normalization": self.normalization.model_dump(mode="json"),
            "sampling": self.sampling.model_dump(mode="json"),
            "basins": {d: b.tolist() for d, b in zip(self.dataset_ids, self.basins, strict=True)},
            "shuffle": self.shuffle,
        }
        if self.sampling.mode == "weighted_by_dataset":
            data["weights"] = self.weights
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
    weights: Mapping[str, float] | None = None,
) -> ServeSpec:
    """Combine the index's configuration with what a caller changes; None keeps the index's value.

    Raises
    ------
    ConfigError
        A split, data set, basin, key or value does not exist or fit.
    """
    known = check_split(split)
    config = opened(index).config
    chosen = _choose_datasets(index, datasets)
    if isinstance(window, WindowSpec):
        spec = window
    else:
        spec = _section(config.window, window, "window").spec()
    sampled = _section(config.sampling, sampling, "sampling")
    spec_out = ServeSpec(
        split=known,
        window=spec,
        missing=_section(config.missing, missing, "missing"),
        normalization=_section(config.normalization, normalization, "normalization"),
        sampling=sampled,
        dataset_ids=chosen,
        basins=_choose_basins(index, chosen, basins),
        shuffle=known == "train" if shuffle is None else yes_or_no("shuffle", shuffle),
        columns=_columns(config, chosen),
        weights=_weights(config, chosen, weights),
    )
    _refuse_mixed_steps(index, config, chosen)
    _refuse_other_index(config.missing, spec_out.missing)
    return spec_out


def _columns(config: Config, dataset_ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    policies = tuple(
        f"{d}.{name}: {v.missing_policy}" for d in dataset_ids for name, v in config.variables_of(d, "input").items()
    )
    return config.names("input"), policies, config.names("target"), config.names("static")


def _weights(config: Config, chosen: Sequence[str], given: object) -> tuple[float, ...]:
    """Return the data sets' weights: those given, else the configuration's."""
    wanted = {} if given is None else given
    if not isinstance(wanted, Mapping):
        raise ConfigError(
            describe(
                "weights are not valid",
                where="WindowLoader, weights",
                expected="a mapping data set → number above 0",
                got=repr(wanted)[:200],
                fix="correct the argument",
            )
        )
    unknown = [d for d in wanted if d not in config.datasets]
    wrong = [f"{d}: {w!r}" for d, w in wanted.items() if not is_above_zero(w)]
    if unknown or wrong:
        raise ConfigError(
            describe(
                "weight is not valid",
                where="WindowLoader, weights",
                expected=f"numbers above 0 for {', '.join(config.datasets)}",
                got=", ".join([*unknown, *wrong]),
                fix="correct the argument",
            )
        )
    return tuple(float(wanted.get(d, config.datasets[d].weight)) for d in chosen)


def _refuse_other_index(built: MissingConfig, asked: MissingConfig) -> None:
    """Refuse what only a new index can change: the scan, not the loader, decides what such values mean."""
    fixed = ("absent_chunk", "static_missing", "on_bad_chunk")
    changed = [name for name in fixed if getattr(built, name) != getattr(asked, name)]
    if changed:
        raise ConfigError(
            describe(
                "setting belongs to the index",
                where=", ".join(f"missing.{name}" for name in changed),
                expected=", ".join(f"{name}: {getattr(built, name)}, as the index was built" for name in changed),
                got=", ".join(f"{name}: {getattr(asked, name)}" for name in changed),
                fix="build an index with this setting: headrace build-index CONFIG --out DIR",
            )
        )


def _section(default: Section, given: Section | Mapping[str, Any] | None, name: str) -> Section:
    if given is None:
        return default
    if isinstance(given, type(default)):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(_not_valid(name, default, repr(given)[:200]))
    try:
        return type(default).model_validate({**default.model_dump(), **given})
    except ValidationError as error:
        problem = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
        raise ConfigError(_not_valid(name, default, problem)) from None


def _not_valid(name: str, section: BaseModel, got: str) -> str:
    return describe(
        "loader argument is not valid",
        where=f"WindowLoader({name}=…)",
        expected=f"a mapping with keys of {', '.join(type(section).model_fields)}",
        got=got,
        fix="correct the argument",
    )


def _choose_datasets(index: Index, datasets: Sequence[str] | None) -> tuple[str, ...]:
    known = index.dataset_ids
    if datasets is None:
        return tuple(known)
    wanted = _listed(datasets, "datasets")
    unknown = [d for d in wanted if d not in known]
    if unknown or not wanted:
        raise ConfigError(
            describe(
                "no such data set",
                where="datasets",
                expected=", ".join(known),
                got=", ".join(unknown) or "none",
                fix="correct the name, or build the index with it",
            )
        )
    return tuple(d for d in known if d in wanted)


def _listed(names: object, where: str) -> list[str]:
    """Return names as a list of text; a bare text would be taken letter by letter."""
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(n, str) for n in names):
        raise ConfigError(
            describe(
                "not a list of names",
                where=where,
                expected="a list of texts (ids are text, leading zeros count)",
                got=repr(names)[:80],
                fix="put the names in quotes and in a list",
            )
        )
    return list(names)


def _choose_basins(index: Index, chosen: Sequence[str], basins: BasinChoice) -> tuple[NDArray[np.int32], ...]:
    """Return the chosen basin numbers of every data set; refuse an id that is nowhere, and an unknown data set."""
    tables = {d: index.fetch("basins", dataset_id=d) for d in chosen}
    known = {d: numbers(table, "basin") for d, table in tables.items()}
    if basins is None:
        return tuple(known.values())
    places = {d: {t: i for i, t in enumerate(table.column("basin_id").to_pylist())} for d, table in tables.items()}
    if isinstance(basins, Mapping):
        _choose_datasets(index, list(basins) or None)
        wanted = {d: _listed(basins[d], f"basins[{d!r}]") if d in basins else list(places[d]) for d in chosen}
        unknown = {d: [b for b in wanted[d] if b not in places[d]] for d in chosen}
    else:
        wanted = dict.fromkeys(chosen, _listed(basins, "basins"))
        nowhere = [b for b in _listed(basins, "basins") if not any(b in place for place in places.values())]
        unknown = {", ".join(chosen): nowhere}
    for where, ids in unknown.items():
        if ids:
            some = [b for place in places.values() for b in place][:3]
            raise ConfigError(
                describe(
                    "basin is not in the index",
                    where=f"data set {where}",
                    expected=f"ids such as {', '.join(some)}",
                    got=", ".join(ids[:5]),
                    fix="correct the id (ids are text, leading zeros count)",
                )
            )
    rows = {d: np.unique([places[d][b] for b in wanted[d] if b in places[d]]).astype(np.int64) for d in chosen}
    return tuple(known[d][rows[d]] for d in chosen)


def _refuse_mixed_steps(index: Index, config: Config, chosen: Sequence[str]) -> None:
    rows = [r for r in index.fetch("datasets").to_pylist() if r["dataset_id"] in chosen]
    steps = {r["dataset_id"]: r["step_seconds"] for r in rows}
    if len(set(steps.values())) > 1 and not config.loader.allow_mixed_time_steps:
        alike = [name for name in chosen if steps[name] == steps[chosen[0]]]
        raise ConfigError(
            describe(
                "data sets have different time steps",
                where="datasets",
                expected="one time step, or loader.allow_mixed_time_steps: true",
                got=", ".join(f"{d} {s} s" for d, s in steps.items()),
                fix=f"choose data sets of one step: --datasets {','.join(alike)}, in Python datasets={alike}; to serve "
                "all together set loader.allow_mixed_time_steps: true and run build-index again, which scans nothing",
            )
        )
