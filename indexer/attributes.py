"""One look at the attributes store of a data set: its constants, and the areas that ``per_area`` asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.coordinates import read_basin_ids
from headrace.indexer.arrays import check_extent, find_array, resolve, variable_key
from headrace.indexer.coordinates import unique_rows
from headrace.indexer.facts import VariableFacts
from headrace.indexer.problems import Problems
from headrace.indexer.statics import align
from headrace.objects.zarr_store import ask_ahead
from headrace.open_store import open_group
from headrace.schemas.config import Config
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.variables import VariableConfig, rule_to_json
from headrace.snapshot import ArraySnapshot, ids_content, look_at, static_content
from headrace.static_rows import AREA_PREFIX, areas_of, read_static_rows
from headrace.store import BASIN_DIM, StoredArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Basin areas for one variable: float64 [rows of the attributes store], and their unit."""

    values: NDArray[np.float64]
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What the attributes store gave.

    Parameters
    ----------
    rows
        Basin id → row.
    constants
        Facts of every configured constant, absent optional ones included.
    values
        Name of each present constant → float64 [rows of the attributes store].
    areas
        Text written as ``per_area`` → area.
    snapshots
        What its arrays looked like.
    """

    rows: Mapping[str, int]
    constants: tuple[VariableFacts, ...]
    values: Mapping[str, NDArray[np.float64]]
    areas: Mapping[str, Area]
    snapshots: tuple[ArraySnapshot, ...] = ()

    def aligned(self, values: NDArray[np.float64], ids: list[str]) -> NDArray[np.float64]:
        """Return values in the order of the given basin ids, NaN for a basin without a row."""
        return align(values, dict(self.rows), ids)


def look_at_attributes(config: Config, dataset_id: str, problems: Problems) -> Attributes | None:
    """Read constants and areas; what is wrong goes to ``problems``, and None comes back if the store does not open."""
    settings = config.datasets[dataset_id]
    key = f"datasets.{dataset_id}"
    constants = config.variables_of(dataset_id, "static")
    wanted_areas = _wanted_areas(config, dataset_id)
    if not constants and not wanted_areas:
        return Attributes(rows={}, constants=(), values={}, areas={})
    if settings.attributes is None:
        asks = [*(f"constant {name}" for name in constants), *(f"per_area: {name}" for name in wanted_areas)]
        raise ConfigError(
            describe(
                "attributes store is not named",
                where=f"{key}.attributes",
                expected="the store that holds the basin attributes",
                got=f"none, but asked for {', '.join(asks[:8])}",
                fix=f"set {key}.attributes, or leave these out",
            )
        )
    uri = settings.attributes
    group = open_group(uri, config.storage, key=f"{key}.attributes")
    areas_as = [constants.get(text, VariableConfig(physical=text)) for text in wanted_areas]
    names = {BASIN_DIM, *(v.physical for v in [*constants.values(), *areas_as])}
    ask_ahead(group, names, listed=names, read=names)
    seen = look_at(group, uri, "attributes", BASIN_DIM, "basin")
    ids = read_basin_ids(group, uri, id_width=settings.id_width, key=key)
    snapshots = [replace(seen, content=ids_content(ids))]
    reader = _Reader(group, uri, len(ids), config, key)
    positions = {name: i for i, name in enumerate(config.names("static"))}
    facts: list[VariableFacts] = []
    values: dict[str, NDArray[np.float64]] = {}
    areas: dict[str, Area] = {}
    rows: dict[str, int] = {}
    with problems.collecting():
        rows = unique_rows(ids, policy=settings.duplicate_basins, where=uri, key=key)
    for name, wanted in constants.items():
        with problems.collecting():
            snapshots.append(look_at(group, uri, "attributes", wanted.physical, "static"))
            found = reader.constant(name, wanted, positions[name])
            facts.append(found)
            if found.stored is not None:
                values[name], snapshots[-1] = reader.read(found, snapshots[-1], name)
    for text in wanted_areas:
        with problems.collecting():
            wanted = constants.get(text, VariableConfig(physical=text))
            snapshots.append(look_at(group, uri, "attributes", wanted.physical, "static"))
            found = reader.constant(text, wanted, -1, required=True)
            read, snapshots[-1] = reader.read(found, snapshots[-1], AREA_PREFIX + text)
            areas[text] = Area(values=areas_of(read), unit=found.unit)
    return Attributes(
        rows=rows, constants=tuple(facts), values=values, areas=areas, snapshots=tuple(snapshots)
    )  # fmt: skip


def _wanted_areas(config: Config, dataset_id: str) -> list[str]:
    both = [*config.variables_of(dataset_id, "input").values(), *config.variables_of(dataset_id, "target").values()]
    return list(dict.fromkeys(v.per_area for v in both if v.per_area is not None))


@dataclass(frozen=True, slots=True)
class _Reader:
    group: zarr.Group
    uri: str
    num_rows: int
    config: Config
    key: str

    def constant(
        self, name: str, wanted: VariableConfig, position: int, *, required: bool | None = None
    ) -> VariableFacts:
        """Return the facts of one attribute; without ``stored`` where an optional one is not there."""
        where = variable_key(self.key, "static", name) if position >= 0 else f"{self.key}, per_area: {name}"
        needed = wanted.required if required is None else required
        stored: StoredArray | None = find_array(
            self.group, self.uri, wanted.physical, role="static", where=where, required=needed
        )
        if stored is None:
            return VariableFacts(name=name, role="static", position=position, config=wanted, unit=wanted.unit or "")
        check_extent(stored, rows=self.num_rows, steps=None)
        absent = self.config.missing.absent_chunk
        return resolve(stored, name=name, role="static", position=position, config=wanted, absent=absent)

    def read(
        self, facts: VariableFacts, seen: ArraySnapshot, variable: str
    ) -> tuple[NDArray[np.float64], ArraySnapshot]:
        """Return the canonical values of an attribute, float64 [rows], and its snapshot with their digest."""
        assert facts.stored is not None
        rows = read_static_rows(facts.stored, self.config.missing.on_bad_chunk)
        seen = replace(
            seen, variable=variable, content=static_content(rows), decode_rule=rule_to_json(facts.rule)
        )  # fmt: skip
        return rows.decoded(facts.rule), seen
