"""A configuration to start from, for a data set that no preset knows: what its store holds, written as YAML."""

from collections.abc import Iterator
from itertools import pairwise

import zarr

from headrace.coordinates import read_times
from headrace.members import array_names
from headrace.open_store import open_group
from headrace.schemas.config import SPLITS
from headrace.schemas.dates import iso_text
from headrace.schemas.errors import HeadraceError, StoreNotFoundError
from headrace.schemas.storage_config import StorageConfig
from headrace.store import BASIN_DIM, TIME_DIM, dimension_names

_DAY = 86400
_SHARES = (0.0, 0.6, 0.8, 1.0)
"""Edges of the splits, as shares of the record."""


def write_skeleton(dataset_id: str, series: str, attributes: str, storage: StorageConfig) -> str | None:
    """Return a configuration with every numeric array of a data set's stores; None where there is no such store.

    Parameters
    ----------
    dataset_id
        Its id.
    series, attributes
        Path or URL of its stores.
    storage
        How object stores are reached.

    Raises
    ------
    SourceError
        The store is there and cannot be opened.
    """
    try:
        group = open_group(series, storage)
    except StoreNotFoundError:
        return None
    try:
        statics: zarr.Group | None = open_group(attributes, storage)
    except HeadraceError:
        statics = None
    lines = [
        "datasets:",
        f"  {dataset_id}:",
        f"    timeseries: {series}",
        *([] if statics is None else [f"    attributes: {attributes}"]),
        *_periods(group, series),
        "    variables:",
        "      relevant:   # inputs; left: a name of your choice, right: the array",
        *_arrays(group, series=True),
        "      target: {}  # move what is to be predicted here",
        "      constant:" + (" {}" if statics is None else ""),
        *([] if statics is None else _arrays(statics, series=False)),
    ]
    return "\n".join(lines) + "\n"


def _periods(group: zarr.Group, uri: str) -> Iterator[str]:
    """Yield a period of each split that cuts the record 60, 20, 20; dates to fill in where the record is not clear."""
    try:
        times = read_times(group, uri)
        seconds = times.seconds()
        first, stop = int(seconds.min()) // _DAY, int(seconds.max()) // _DAY + 1
        cuts = [first + round(share * (stop - first)) for share in _SHARES]
        text = [[iso_text(day * _DAY, times.calendar)[:10] for day in (cut, end - 1)] for cut, end in pairwise(cuts)]
    except (HeadraceError, ValueError):
        text = [["YYYY-MM-DD", "YYYY-MM-DD"]] * len(SPLITS)
    for split, (begin, end) in zip(SPLITS, text, strict=True):
        yield f'    t_range_{split}: ["{begin}", "{end}"]'


def _arrays(group: zarr.Group, *, series: bool) -> Iterator[str]:
    """Yield a line for each array: its name twice, dimensions, type and unit; those that cannot serve as a comment."""
    wanted = {BASIN_DIM, TIME_DIM} if series else {BASIN_DIM}
    for name in array_names(group):
        array = group[name]
        if name in (BASIN_DIM, TIME_DIM) or name.startswith("_") or not isinstance(array, zarr.Array):
            continue
        dims = dimension_names(array)
        unit = array.attrs.get("units")
        fits = set(dims) == wanted and array.dtype.kind in "iuf"
        about = f"{' × '.join(dims) or 'no dimensions'}, {array.dtype}" + (f", {unit}" if unit else "")
        yield f"        {'' if fits else '# '}{name}: {name}  # {about}"
