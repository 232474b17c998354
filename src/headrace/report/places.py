"""Where basins lie: from statics of the index, or from the attributes stores beside it.

Coordinates are seldom inputs of a model, so that an index mostly lacks them while the attributes store has them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.coordinates import read_basin_ids
from headrace.loader import Index
from headrace.members import find_member
from headrace.open_store import open_group
from headrace.report.questions import rows_of
from headrace.schemas.errors import HeadraceError

LATITUDES = (
    "gauge_lat",
    "lat_gauge",
    "gauge_latitude",
    "latitude",
    "lat",
    "outlet_lat",
    "pour_point_lat",
    "dec_lat_va",
)
LONGITUDES = ("gauge_lon", "lon_gauge", "gauge_longitude", "longitude", "lon", "outlet_lon", "pour_point_lon",
              "dec_long_va")  # fmt: skip

Place = tuple[float, float]
"""Latitude and longitude, degrees."""


def basin_places(index: Index) -> tuple[dict[tuple[str, str], Place], str]:
    """Return (data set, basin id) → place, and a sentence on data sets that have none.

    Stores that cannot be reached are left out: a page about a run must not fail for a map.
    """
    found: dict[tuple[str, str], Place] = {}
    lacking = []
    for name in index.dataset_ids:
        places = _of_index(index, name) or _of_store(index, name)
        if not places:
            lacking.append(name)
        found.update({(name, basin_id): place for basin_id, place in places.items()})
    if not lacking:
        return found, ""
    return found, (
        f"No coordinates of {', '.join(lacking)}: neither the index nor the attributes store has a pair such as "
        f"{LATITUDES[0]} and {LONGITUDES[0]}."
    )


def _of_index(index: Index, dataset_id: str) -> dict[str, Place]:
    text = """SELECT DISTINCT variable, "array" AS array_name FROM variables
    WHERE dataset_id = $name AND role = 'static' AND present"""
    by_name = {n.lower(): r["variable"] for r in rows_of(index, text, name=dataset_id) for n in r.values()}
    pair = _pair(by_name.get)
    if pair is None:
        return {}
    text = """SELECT b.basin_id, x.value AS latitude, y.value AS longitude FROM basins AS b
    JOIN statics AS x ON x.dataset_id = b.dataset_id AND x.basin = b.basin AND x.variable = $latitude
    JOIN statics AS y ON y.dataset_id = b.dataset_id AND y.basin = b.basin AND y.variable = $longitude
    WHERE b.dataset_id = $name"""
    rows = rows_of(index, text, name=dataset_id, latitude=pair[0], longitude=pair[1])
    return _known((r["basin_id"], r["latitude"], r["longitude"]) for r in rows)


def _of_store(index: Index, dataset_id: str) -> dict[str, Place]:
    settings = index.config.datasets[dataset_id]
    if settings.attributes is None:
        return {}
    try:
        group = open_group(settings.attributes, index.config.storage)
        pair = _pair(lambda name: find_member(group, settings.attributes or "", name))
        if pair is None:
            return {}
        ids: Sequence[str] = read_basin_ids(
            group, settings.attributes, id_width=settings.id_width, key=f"datasets.{dataset_id}"
        )
        latitude, longitude = (_numbers(array) for array in pair)
    except (HeadraceError, OSError, ValueError):
        return {}
    return _known(zip(ids, latitude.tolist(), longitude.tolist(), strict=False))


def _numbers(array: Any) -> NDArray[np.float64]:
    return np.asarray(array[:], dtype=np.float64).ravel()


def _pair(look: Callable[[str], Any]) -> tuple[Any, Any] | None:
    """Return what the first pair of names stands for."""
    for latitude, longitude in zip(LATITUDES, LONGITUDES, strict=True):
        both = look(latitude), look(longitude)
        if both[0] is not None and both[1] is not None:
            return both
    return None


def _known(rows: Iterable[tuple[str, float, float]]) -> dict[str, Place]:
    return {name: (lat, lon) for name, lat, lon in rows if -90 <= lat <= 90 and -180 <= lon <= 360}
