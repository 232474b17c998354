"""One array of a synthetic store: its layout on disk and the values a right reader finds in it.

`ArrayLayout` says how the array lies in the store; `write_array` writes it and returns the truth,
computed from the raw values by the missing rule of DESIGN section 2, without any decoder.
"""

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

MAX_PACKED = 32_000
"""Packed int16 arrays hold ``(value - 1) % MAX_PACKED``: unique within 32,000 values of an array."""


@dataclass(frozen=True, kw_only=True)
class ArrayLayout:
    """How one variable lies in its store. Shapes and chunk keys are in the order of `dims`."""

    dims: tuple[str, ...] = ("basin", "time")
    """Any order of basin and time; every further name becomes a dimension of size 1."""
    chunks: tuple[int, ...] | None = None
    """Chunk shape, None: one chunk. Inner chunks where `shards` is given."""
    shards: tuple[int, ...] | None = None
    """Shard shape (format 3 only), a multiple of `chunks`."""
    dtype: str = "float32"
    fill_value: float | None = float("nan")
    """The storage fill value; None is allowed in format 2 only."""
    missing_as: str | float = "nan"
    """What a missing step holds: ``"nan"`` or a flag value."""
    flag_attribute: str | None = "_FillValue"
    """The attribute that declares the flag: `_FillValue`, `missing_value`, or None (undeclared)."""
    plain_fill_attribute: bool = False
    """Format 3: write `_FillValue` as a JSON number rather than in base64, as xarray does."""
    scale_factor: float | None = None
    add_offset: float | None = None
    absent_chunks: tuple[tuple[int, ...], ...] = ()
    """Keys of stored objects (shards where sharded) deleted after writing."""
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def packed(self) -> bool:
        """Whether stored numbers become values by CF scale and offset."""
        return self.scale_factor is not None or self.add_offset is not None


@dataclass(frozen=True, kw_only=True)
class WrittenArray:
    """What `write_array` put into the store, all ``[basin, step]`` whatever the order on disk."""

    raw: NDArray[Any]
    """Stored numbers, in the stored dtype, as a reader gets them (absent chunks: fill value)."""
    truth: NDArray[np.float32]
    """Values after the missing rule and CF unpacking, NaN missing; absent with fill 0 is 0."""
    absent: NDArray[np.bool_]
    """Where no chunk object is stored, because it was deleted or because zarr dropped it."""


def write_array(
    group: zarr.Group,
    name: str,
    values: NDArray[np.float32],
    missing: NDArray[np.bool_],
    layout: ArrayLayout,
    root: Path,
) -> WrittenArray:
    """Write `values` float32 [basin, step], missing where `missing`, as array `name` of `group`."""
    dtype = np.dtype(layout.dtype)
    stored = (values - 1) % MAX_PACKED if layout.packed else values
    if missing.any() and layout.missing_as == "nan" and dtype.kind != "f":
        raise ValueError(f"{name}: {dtype} cannot hold NaN, give missing_as a flag value")
    flag = np.nan if layout.missing_as == "nan" else float(layout.missing_as)
    raw = np.where(missing, flag, stored).astype(dtype)

    array = _create(group, name, raw.shape, layout)
    on_disk = raw if _basin_first(layout.dims) else raw.T
    array[...] = on_disk.reshape(array.shape)
    for key in layout.absent_chunks:
        _chunk_file(root, array, key).unlink(missing_ok=True)

    absent = _absent(root, array, layout)
    if absent.any():
        fill = 0 if layout.fill_value is None else layout.fill_value
        raw = np.where(absent, np.asarray(fill).astype(dtype), raw)
    return WrittenArray(raw=raw, truth=_truth(raw, absent, array, layout), absent=absent)


def _create(group: zarr.Group, name: str, shape: tuple[int, ...], layout: ArrayLayout) -> "zarr.Array[Any]":
    zarr_format = group.metadata.zarr_format
    sizes = dict(zip(("basin", "time"), shape, strict=True))
    full = tuple(sizes.get(dim, 1) for dim in layout.dims)
    packing = {"scale_factor": layout.scale_factor, "add_offset": layout.add_offset}
    attrs = dict(layout.attrs) | {key: number for key, number in packing.items() if number is not None}
    if layout.missing_as != "nan" and layout.flag_attribute:
        flag: Any = float(layout.missing_as)
        flag = flag if np.dtype(layout.dtype).kind == "f" else int(flag)
        coded = zarr_format == 3 and layout.flag_attribute == "_FillValue"
        if coded and not layout.plain_fill_attribute and isinstance(flag, float):
            flag = base64.standard_b64encode(struct.pack("<d", np.dtype(layout.dtype).type(flag))).decode()
        attrs[layout.flag_attribute] = flag
    if zarr_format == 2:
        attrs["_ARRAY_DIMENSIONS"] = list(layout.dims)
    return group.create_array(
        name,
        shape=full,
        chunks=layout.chunks or tuple(max(1, size) for size in full),
        shards=layout.shards,
        dtype=layout.dtype,
        fill_value=layout.fill_value,
        dimension_names=layout.dims if zarr_format == 3 else None,
        attributes=attrs,
    )


def _basin_first(dims: tuple[str, ...]) -> bool:
    return dims.index("basin") < dims.index("time")


def _chunk_file(root: Path, array: "zarr.Array[Any]", key: tuple[int, ...]) -> Path:
    return root / array.path / array.metadata.encode_chunk_key(key)


def _absent(root: Path, array: "zarr.Array[Any]", layout: ArrayLayout) -> NDArray[np.bool_]:
    """Return bool [basin, step], true where the stored object is not there."""
    size = array.shards or array.chunks
    mask = np.zeros(array.shape, dtype=bool)
    grid = tuple(-(-n // c) for n, c in zip(array.shape, size, strict=True))
    for key in np.ndindex(*grid):
        if not _chunk_file(root, array, key).exists():
            mask[tuple(slice(k * c, (k + 1) * c) for k, c in zip(key, size, strict=True))] = True
    drop = tuple(i for i, dim in enumerate(layout.dims) if dim not in ("basin", "time"))
    flat = mask.squeeze(axis=drop)
    return flat if _basin_first(layout.dims) else flat.T


def _truth(
    raw: NDArray[Any], absent: NDArray[np.bool_], array: "zarr.Array[Any]", layout: ArrayLayout
) -> NDArray[np.float32]:
    exact = raw.astype(np.float64)
    missing = ~np.isfinite(exact)
    fill = layout.fill_value
    if layout.missing_as != "nan" and layout.flag_attribute:
        missing |= raw == raw.dtype.type(layout.missing_as)
    if array.metadata.zarr_format == 2 and fill is not None and fill != 0:
        missing |= raw == raw.dtype.type(fill)
    if fill is not None and fill != 0:
        missing |= absent
    scale = 1.0 if layout.scale_factor is None else layout.scale_factor
    offset = 0.0 if layout.add_offset is None else layout.add_offset
    return np.where(missing, np.nan, exact * scale + offset).astype(np.float32)
