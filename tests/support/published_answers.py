"""What an index of published records must say, worked out from the records: runs, windows, drops, statistics.

A configuration is read here as plain YAML, and each rule is written once more in its plainest form: booleans over the
whole record and their cumulative sums. Nothing here calls the package under test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from published_sources import Source

SPLITS = ("train", "valid", "test")
DEPTH_MM_PER_DAY = {"m3/s": 86.4, "ft3/s": 86.4 * 0.3048**3, "L/s": 0.0864, "ML/day": 1.0}
"""One unit of flow from one square kilometre, in mm/day."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """One data set of a configuration, as published.

    Parameters
    ----------
    basins
        Configured ids, in the store's order.
    splits
        Split to the positions of its basins.
    periods
        Split to steps [start, stop).
    inputs, targets
        Name to float32 [basins, steps], NaN missing; a variable that the source lacks is left out.
    statics
        Name to float32 [basins].
    own_policy
        Input to the missing policy that it has of its own, where it has one.
    """

    basins: list[str]
    splits: dict[str, list[int]]
    periods: dict[str, tuple[int, int]]
    inputs: dict[str, NDArray[np.float32]]
    targets: dict[str, NDArray[np.float32]]
    statics: dict[str, NDArray[np.float32]]
    own_policy: dict[str, str]

    @property
    def series(self) -> dict[str, NDArray[np.float32]]:
        """Inputs and targets."""
        return {**self.inputs, **self.targets}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Lengths of a window in steps."""

    length: int
    warmup: int
    stride: int


class _TextLoader(yaml.SafeLoader):
    """Leaves dates as they are written."""


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if not tag.endswith("timestamp")]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_config(path: Path) -> Any:
    """Read a configuration as plain YAML."""
    return yaml.load(path.read_text(encoding="utf-8"), _TextLoader)


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Return the window of a configuration; unless it says otherwise, all steps but the last are warm-up."""
    window = config["window"]
    length = window["hindcast_length"] + window["forecast_length"]
    return Shape(length=length, warmup=window.get("warmup_length", length - 1), stride=window.get("stride", 1))


def source_name(uri: str) -> str:
    """Return the source that a store of a configuration was made from."""
    return Path(uri).name.removesuffix(".zarr").removesuffix("_timeseries").removesuffix("_attributes")


def answers(dataset: Mapping[str, Any], sources: Mapping[str, Source]) -> Answers:
    """Work out one data set of a configuration."""
    source = sources[source_name(dataset["timeseries"])]
    static_source = sources[source_name(dataset["attributes"])] if "attributes" in dataset else None
    splits = _splits(dataset.get("basins", "all"), source.basins)
    rows = sorted({row for chosen in splits.values() for row in chosen})
    basins = [source.basins[row] for row in rows]
    variables = {role: _settings(dataset["variables"].get(role, {})) for role in ("relevant", "target", "constant")}
    statics = {}
    for name, settings in variables["constant"].items():
        assert static_source is not None
        statics[name] = _static(static_source, settings["physical"], basins).astype(np.float32)
    series = {
        role: {
            name: _canonical(source, settings, rows, static_source, variables["constant"])
            for name, settings in variables[role].items()
            if settings["physical"] in source.values
        }
        for role in ("relevant", "target")
    }
    return Answers(
        basins=basins,
        splits={split: [rows.index(row) for row in sorted(chosen)] for split, chosen in splits.items()},
        periods={s: source.period(*map(str, dataset[f"t_range_{s}"])) for s in SPLITS if f"t_range_{s}" in dataset},
        inputs=series["relevant"],
        targets=series["target"],
        statics=statics,
        own_policy={n: s["missing_policy"] for n, s in variables["relevant"].items() if "missing_policy" in s},
    )


def _splits(wanted: Any, known: list[str]) -> dict[str, list[int]]:
    per_split = wanted if isinstance(wanted, dict) else dict.fromkeys(SPLITS, wanted)
    return {
        split: list(range(len(known))) if names == "all" else [known.index(str(name)) for name in names]
        for split, names in per_split.items()
    }


def _settings(variables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {"physical": s} if isinstance(s, str) else s for name, s in variables.items()}


def _static(source: Source, name: str, basins: list[str]) -> NDArray[np.float64]:
    return np.array([source.attributes[name].get(basin, np.nan) for basin in basins])


def _canonical(
    source: Source, settings: Mapping[str, Any], rows: list[int], areas: Source | None, constants: Mapping[str, Any]
) -> NDArray[np.float32]:
    """Return published values as the model is to see them: flags away, scaled, per area, within bounds, float32."""
    raw = source.values[settings["physical"]][rows]
    flags = np.atleast_1d(settings.get("missing_values", []))
    values = np.where(np.isin(raw, flags), np.nan, raw) * settings.get("scale", 1.0) + settings.get("offset", 0.0)
    if "per_area" in settings:
        assert areas is not None
        assert settings["unit"] == "mm/day"
        text = settings["per_area"]
        name = constants.get(text, {"physical": text})["physical"]
        area = _static(areas, name, [source.basins[row] for row in rows]).astype(
            np.float32
        )  # km², in single precision like every static
        values = values * (DEPTH_MM_PER_DAY[source.units[settings["physical"]]] / area.astype(np.float64))[:, None]
    bounds = settings.get("valid_min", -np.inf), settings.get("valid_max", np.inf)
    with np.errstate(invalid="ignore"):
        return np.where((values >= bounds[0]) & (values <= bounds[1]), values, np.nan).astype(np.float32)


def runs(values: NDArray[np.float32]) -> list[tuple[int, int, int]]:
    """Return (basin, start, stop) of every unbroken stretch of observed steps."""
    edges = np.diff(np.pad(~np.isnan(values), ((0, 0), (1, 1))).astype(np.int8), axis=1)
    basin, start = np.nonzero(edges == 1)
    stop = np.nonzero(edges == -1)[1]
    return list(zip(basin.tolist(), start.tolist(), stop.tolist(), strict=True))


def _missing_before(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return how many of the first n steps are missing, [basins, steps + 1]."""
    return np.pad(np.cumsum(np.isnan(values), axis=1, dtype=np.int64), ((0, 0), (1, 0)))


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Windows of one split: basin to the starts that are served, and (basin, reason) to a count of the others."""

    starts: dict[int, NDArray[np.int64]]
    dropped: dict[tuple[int, str], int]


def windows(found: Answers, split: str, shape: Shape, *, target_policy: str, input_policy: str) -> Windows:
    """Try every start whose target steps lie in the period; the axis of published records has no gap."""
    first, last = found.periods[split][0] - shape.warmup, found.periods[split][1] - shape.length
    early = len(range(first, min(0, last + 1), shape.stride))
    start = np.arange(max(first, 0), last + 1, shape.stride)
    basins = found.splits.get(split, [])
    target, given = (np.ones((len(found.basins), start.size), dtype=bool) for _ in range(2))
    policy = target_policy if split == "train" else "keep"
    if policy != "keep" and found.targets:
        observed = [~np.isnan(values) for values in found.targets.values()]
        both = np.logical_and.reduce(observed) if policy == "drop_any_nan" else np.logical_or.reduce(observed)
        gone = _missing_before(np.where(both, np.float32(0), np.float32(np.nan)))
        gone_in_window = gone[:, start + shape.length] - gone[:, start + shape.warmup]
        target = gone_in_window < (1 if policy == "drop_any_nan" else shape.length - shape.warmup)
    for name, values in found.inputs.items():
        if found.own_policy.get(name, input_policy) == "drop":
            gone = _missing_before(values)
            given &= gone[:, start + shape.length] == gone[:, start]
    dropped: dict[tuple[int, str], int] = {}
    for basin in basins:
        for reason, count in (
            ("record_too_short", early),
            ("target_missing", int((~target[basin]).sum())),
            ("input_missing", int((target[basin] & ~given[basin]).sum())),
        ):
            if count:
                dropped[basin, reason] = count
    return Windows(starts={basin: start[target[basin] & given[basin]] for basin in basins}, dropped=dropped)


def training_values(found: Answers, name: str) -> dict[int, NDArray[np.float64]]:
    """Return the observed values of each training basin in the training period."""
    first, last = found.periods["train"]
    values = {basin: found.series[name][basin, first:last].astype(np.float64) for basin in found.splits["train"]}
    return {basin: line[~np.isnan(line)] for basin, line in values.items()}
