"""Hypothesis strategies: random small store layouts, window specs and periods.

A `StoreLayout` is plain data; `write` turns it into files. Layouts stay small (7 basins, 60 steps,
4 variables), so every window of a store can be checked against a slow, obvious answer.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from synthetic import ArrayLayout, SyntheticStore, write_store

NAMES = ("precipitation", "temperature", "streamflow", "radiation")
PATTERNS = ("none", "all", "random", "alternating", "edges", "block", "one_basin")


@dataclass(frozen=True, kw_only=True)
class StoreLayout:
    """Everything `write_store` needs except a path."""

    basins: int
    steps: int
    zarr_format: int
    variables: dict[str, ArrayLayout]
    missing: dict[str, NDArray[np.bool_]] = field(repr=False)
    patterns: dict[str, str]
    gaps: dict[int, int]
    time_unit: str
    id_dtype: str
    consolidated: bool

    def write(self, path: Path, **changes: Any) -> SyntheticStore:
        """Write the store at `path`; `changes` go to `write_store`."""
        settings: dict[str, Any] = {
            "basins": self.basins,
            "steps": self.steps,
            "variables": self.variables,
            "zarr_format": self.zarr_format,
            "missing": self.missing,
            "gaps": self.gaps,
            "time_unit": self.time_unit,
            "id_dtype": self.id_dtype,
            "consolidated": self.consolidated,
        }
        return write_store(path, **{**settings, **changes})


class Window(NamedTuple):
    """Lengths in steps: L = hindcast + forecast inputs, the last L - warmup are targets."""

    hindcast_length: int
    forecast_length: int
    warmup_length: int
    stride: int


def missing_pattern(kind: str, basins: int, steps: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return bool [basins, steps], true where missing, in one of `PATTERNS`."""
    mask = np.zeros((basins, steps), dtype=bool)
    if kind == "all":
        mask[:] = True
    elif kind == "random":
        mask = rng.random((basins, steps)) < rng.choice([0.05, 0.3, 0.8])
    elif kind == "alternating":
        mask[:, :: int(rng.integers(2, 6))] = True
    elif kind == "edges":
        mask[:, : int(rng.integers(0, steps + 1))] = True
        mask[:, steps - int(rng.integers(0, steps + 1)) :] = True
        mask[:, steps // 2] = False
    elif kind == "block":
        start = int(rng.integers(0, steps))
        mask[:, start : start + int(rng.integers(1, steps + 1))] = True
    elif kind == "one_basin":
        mask[int(rng.integers(0, basins))] = True
    return mask


@st.composite
def store_layouts(
    draw: st.DrawFn,
    *,
    max_basins: int = 7,
    max_steps: int = 60,
    max_variables: int = 4,
    zarr_formats: tuple[int, ...] = (2, 3),
    with_gaps: bool = True,
    with_flags: bool = True,
    with_absent: bool = True,
) -> StoreLayout:
    """Random layouts; chunk shapes, dims order and missing pattern differ between variables."""
    basins = draw(st.integers(1, max_basins))
    steps = draw(st.integers(1, max_steps))
    zarr_format = draw(st.sampled_from(zarr_formats))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    variables, missing, patterns = {}, {}, {}
    for name in NAMES[: draw(st.integers(1, max_variables))]:
        patterns[name] = draw(st.sampled_from(PATTERNS))
        missing[name] = missing_pattern(patterns[name], basins, steps, rng)
        variables[name] = draw(_array_layouts(basins, steps, zarr_format, with_flags, with_absent))
    gaps: dict[int, int] = {}
    if with_gaps and steps > 1:
        places = st.integers(0, steps - 2)
        # One pair of neighbours stays a step apart: without it the axis would be one of longer steps, or of none.
        gaps = draw(st.dictionaries(places, st.integers(1, 5), max_size=min(2, steps - 2)))
    return StoreLayout(
        basins=basins,
        steps=steps,
        zarr_format=zarr_format,
        variables=variables,
        missing=missing,
        patterns=patterns,
        gaps=gaps,
        time_unit=draw(st.sampled_from(["days", "hours", "seconds", "nanoseconds"])),
        id_dtype=draw(st.sampled_from(["str", "U", "S"])),
        consolidated=draw(st.booleans()),
    )


@st.composite
def _array_layouts(
    draw: st.DrawFn,
    basins: int,
    steps: int,
    zarr_format: int,
    with_flags: bool,
    with_absent: bool,
) -> ArrayLayout:
    dims = draw(st.sampled_from([("basin", "time"), ("time", "basin")]))
    shape = (basins, steps) if dims[0] == "basin" else (steps, basins)
    chunks = tuple(draw(st.integers(1, size)) for size in shape)
    # A tiny inner chunk over a long axis makes hundreds of files: keep examples fast.
    chunks = tuple(max(c, -(-size // 12)) for c, size in zip(chunks, shape, strict=True))
    shards = None
    if zarr_format == 3 and draw(st.booleans()):
        shards = tuple(c * draw(st.integers(1, 3)) for c in chunks)
    fill_value = draw(st.sampled_from([float("nan"), 0.0, -999.0]))
    missing_as: str | float = "nan"
    if with_flags and draw(st.booleans()):
        missing_as = -999.0
    absent: tuple[tuple[int, ...], ...] = ()
    if with_absent and draw(st.integers(0, 3)) == 0:
        stored = shards or chunks
        absent = (tuple(draw(st.integers(0, -(-size // c) - 1)) for size, c in zip(shape, stored, strict=True)),)
    return ArrayLayout(
        dims=dims,
        chunks=chunks,
        shards=shards,
        dtype=draw(st.sampled_from(["float32", "float64"])),
        fill_value=fill_value,
        missing_as=missing_as,
        flag_attribute=draw(st.sampled_from(["_FillValue", "missing_value"])),
        absent_chunks=absent,
    )


@st.composite
def window_specs(draw: st.DrawFn, *, max_length: int = 20) -> Window:
    """Random window specs with 0 <= W < L <= `max_length` and stride 1–4."""
    length = draw(st.integers(1, max_length))
    forecast = draw(st.integers(0, length - 1))
    return Window(
        hindcast_length=length - forecast,
        forecast_length=forecast,
        warmup_length=draw(st.integers(0, length - 1)),
        stride=draw(st.integers(1, 4)),
    )


@st.composite
def periods(draw: st.DrawFn, steps: int) -> tuple[int, int]:
    """Random non-empty periods ``[start, stop)`` inside ``[0, steps)``, often the whole axis."""
    if draw(st.integers(0, 3)) == 0:
        return 0, steps
    start = draw(st.integers(0, steps - 1))
    return start, draw(st.integers(start + 1, steps))
