"""Who is measured: each contender at its defaults, and the grid from which its best settings are taken."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stores import StoreShape

Settings = dict[str, Any]
_WORKERS = (0, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One contender.

    Parameters
    ----------
    name
        As tables show it.
    program
        Module in ``rivals``, without ``_side``.
    defaults
        Settings that a user gets who sets nothing.
    grid
        Settings to choose the best from; empty where there is nothing to choose.
    rival
        Key of :data:`rivals.environments.PACKAGES`; '' for what needs none.
    """

    name: str
    program: str
    defaults: Settings
    grid: Sequence[Settings] = field(default_factory=tuple)
    rival: str = ""


def all_sides(shape: StoreShape) -> list[Side]:
    """Return every contender for a store.

    neuralhydrology and xbatcher list every window before they serve one, which takes minutes and gigabytes for a whole
    store: they get as many basins as hold the windows below, and a smaller working set with it.
    """
    decoded_nbytes = shape.basins * shape.steps * shape.variables * 4
    loaded = [{"in_memory": True, "workers": n} for n in _WORKERS]
    some, few = ({"basins": min(max(n // shape.steps, 1), shape.basins)} for n in (1_300_000, 260_000))
    return [
        Side(name="bare index_select, 1 thread", program="bare", defaults={"threads": 1}),
        Side(name="bare index_select, 2 threads", program="bare", defaults={"threads": 2}),
        Side(name="Headrace", program="headrace", defaults={"memory_budget": "auto", "epoch": 0}),
        Side(
            name="Headrace, budget 1/8 of the split",
            program="headrace",
            defaults={"memory_budget": decoded_nbytes // 8, "epoch": 0},
        ),
        Side(name="Headrace, second epoch", program="headrace", defaults={"memory_budget": "auto", "epoch": 1}),
        Side(
            name="torchhydro CloudZarrLazyDataset",
            program="torchhydro",
            defaults={"cache_mb": 64, "workers": 0},
            grid=[{"cache_mb": mb, "workers": n} for mb in (64, 256, 1024) for n in _WORKERS],
            rival="torchhydro",
        ),
        Side(
            name="neuralhydrology BaseDataset, in memory",
            program="neuralhydrology",
            defaults={"workers": 0} | some,
            grid=[{"workers": n} | some for n in _WORKERS],
            rival="neuralhydrology",
        ),
        Side(name="xarray per window, in memory", program="xarray", defaults=loaded[0], grid=loaded),
        Side(name="xarray per window, lazy", program="xarray", defaults={"in_memory": False}),
        Side(
            name="xbatcher per window, in memory",
            program="xbatcher",
            defaults=loaded[0] | few,
            grid=[settings | few for settings in loaded],
            rival="xbatcher",
        ),
        Side(
            name="xbatcher per window, lazy",
            program="xbatcher",
            defaults={"in_memory": False} | few,
            rival="xbatcher",
        ),
    ]


def chosen(names: str | None, shape: StoreShape) -> list[Side]:
    """Return the sides whose program or name begins with one of the names in ``a,b``; all of them for None."""
    every = all_sides(shape)
    wanted = None if names is None else [name.strip().lower() for name in names.split(",") if name.strip()]
    if wanted is None:
        return every
    found = [s for s in every if any(s.program == name or s.name.lower().startswith(name) for name in wanted)]
    unknown = [n for n in wanted if not any(s.program == n or s.name.lower().startswith(n) for s in every)]
    if unknown or not found:
        raise SystemExit(f"no side {', '.join(unknown)}; there are {', '.join(s.name for s in every)}")
    return found
