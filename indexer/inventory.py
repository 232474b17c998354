"""Open every configured data set once and resolve names, dates and rules to rows, steps and numbers.

All data sets are looked at before anything is said: one error lists everything that is wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.coordinates import read_basin_ids
from headrace.indexer.arrays import check_extent, find_array, resolve, variable_key
from headrace.indexer.attributes import Attributes, look_at_attributes
from headrace.indexer.coordinates import StoreTime, read_time, unique_rows
from headrace.indexer.facts import DatasetFacts, Inventory, VariableFacts
from headrace.indexer.problems import Problems
from headrace.indexer.selection import (
    Basins,
    basin_remarks,
    overlap_remarks,
    room_remarks,
    select_basins,
    select_periods,
    step_remarks,
)
from headrace.indexer.statics import check_static_missing
from headrace.indexer.unit_check import check_units
from headrace.objects import is_remote
from headrace.objects.at_once import at_once, begin
from headrace.objects.zarr_store import ask_ahead
from headrace.open_store import open_group
from headrace.schemas.config import Config, DatasetConfig, Split
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.units import per_area_factor
from headrace.schemas.variables import Role
from headrace.schemas.windows import TimeRange
from headrace.snapshot import ArraySnapshot, ids_content, look_at, series_snapshot
from headrace.static_rows import AREA_PREFIX
from headrace.store import BASIN_DIM, TIME_DIM

_SERIES: tuple[Role, ...] = ("input", "target")


def take_inventory(config: Config) -> Inventory:
    """Look at every data set.

    Raises
    ------
    ConfigError, SourceError
        One error that lists every problem of every data set.
    """
    problems = Problems()
    found: list[DatasetFacts] = []
    remote = any(is_remote(d.timeseries) for d in config.datasets.values())
    for own, facts in at_once([partial(_looked_at, config, d) for d in sorted(config.datasets)], remote=remote):
        problems.take(own)
        if facts is not None:
            found.append(facts)
    with problems.collecting():
        problems.remarks += check_units(found, config.missing.unit_mismatch_policy)
    axes = {facts.dataset_id: facts.axis for facts in found}
    problems.remarks += step_remarks(axes, allowed=config.loader.allow_mixed_time_steps)
    problems.raise_if_any()
    return Inventory(config=config, datasets=tuple(found), remarks=tuple(problems.remarks))


@dataclass(frozen=True, slots=True)
class _Coordinates:
    ids: list[str]
    basins: Basins
    time: StoreTime
    snapshots: tuple[ArraySnapshot, ...]


def _looked_at(config: Config, dataset_id: str) -> tuple[Problems, DatasetFacts | None]:
    problems = Problems()
    with problems.collecting():
        _check_declared(config, dataset_id)
    return problems, _look_at(config, dataset_id, problems)


def _attributes(config: Config, dataset_id: str) -> tuple[Problems, Attributes | None]:
    problems = Problems()
    with problems.collecting():
        return problems, look_at_attributes(config, dataset_id, problems)
    return problems, None


def _look_at(config: Config, dataset_id: str, problems: Problems) -> DatasetFacts | None:
    """Return the facts of one data set, or None where something is wrong with it (said in ``problems``)."""
    before = len(problems.errors)
    settings, key = config.datasets[dataset_id], f"datasets.{dataset_id}"
    coordinates: _Coordinates | None = None
    time: StoreTime | None = None
    series: list[VariableFacts] = []
    attributes_looked_at = begin(partial(_attributes, config, dataset_id), remote=is_remote(settings.timeseries))
    periods: dict[Split, TimeRange] = {}
    with problems.collecting():
        group = open_group(settings.timeseries, config.storage, key=f"{key}.timeseries")
        names = (v.physical for role in _SERIES for v in config.variables_of(dataset_id, role).values())
        wanted = {BASIN_DIM, TIME_DIM, *names}
        ask_ahead(group, wanted, listed=wanted, read=(BASIN_DIM, TIME_DIM))
        time = _look_at_time(group, settings, key, problems)
        coordinates = _look_at_basins(group, settings, key, time, problems)
        series = _look_at_series(group, config, dataset_id, coordinates, problems)
    if time is not None:
        periods = select_periods(settings, time.axis, key=key, problems=problems)
        problems.remarks += room_remarks(periods, time.axis, config.window.spec(), key=key)
    of_attributes, attributes = attributes_looked_at()
    problems.take(of_attributes)
    if coordinates is None or attributes is None:
        return None
    ids, basins = coordinates.ids, coordinates.basins
    areas = {name: attributes.aligned(area.values, ids) for name, area in attributes.areas.items()}
    statics = {name: attributes.aligned(read, list(basins.ids)) for name, read in attributes.values.items()}
    statics |= {AREA_PREFIX + name: area[list(basins.rows)] for name, area in areas.items()}
    with problems.collecting():
        dropped = check_static_missing(statics, basins.ids, policy=config.missing.static_missing, key=key)
        problems.remarks += _dropped_remark(key, basins, dropped)
        basins, statics = basins.without(dropped), {name: np.delete(v, dropped) for name, v in statics.items()}
        _check_some_left(basins, key)
        problems.remarks += overlap_remarks(periods, basins, key=key)
    for i, variable in enumerate(series):
        with problems.collecting():
            series[i] = _with_area(variable, attributes, areas, variable_key(key, variable.role, variable.name))
    if len(problems.errors) > before:
        return None
    variables = (*series, *attributes.constants)
    return DatasetFacts(
        dataset_id=dataset_id,
        config=settings,
        axis=coordinates.time.axis,
        basins=basins,
        num_store_rows=len(ids),
        periods=periods,
        variables=variables,
        statics=statics,
        snapshots=(*coordinates.snapshots, *_series_snapshots(series), *attributes.snapshots),
        time_order=coordinates.time.order,
    )


def _look_at_time(group: zarr.Group, settings: DatasetConfig, key: str, problems: Problems) -> StoreTime | None:
    with problems.collecting():
        time = read_time(group, settings.timeseries, settings.fix_time)
        problems.remarks += _mended_remark(key, settings.fix_time, time)
        return time
    return None


def _look_at_basins(
    group: zarr.Group, settings: DatasetConfig, key: str, time: StoreTime | None, problems: Problems
) -> _Coordinates | None:
    """Return the chosen basins with the time axis, or None where one of them is wrong."""
    uri = settings.timeseries
    with problems.collecting():
        seen = look_at(group, uri, "timeseries", BASIN_DIM, "basin")
        ids = read_basin_ids(group, uri, id_width=settings.id_width, key=key)
        rows = unique_rows(ids, policy=settings.duplicate_basins, where=uri, key=key)
        basins = select_basins(rows, settings, key=key, uri=uri)
        problems.remarks += basin_remarks(rows, settings, key=key)
        if time is not None:
            return _Coordinates(ids, basins, time, (replace(seen, content=ids_content(ids)), time.snapshot))
    return None


def _look_at_series(
    group: zarr.Group, config: Config, dataset_id: str, coordinates: _Coordinates | None, problems: Problems
) -> list[VariableFacts]:
    settings, key = config.datasets[dataset_id], f"datasets.{dataset_id}"
    found = []
    for role in _SERIES:
        positions = {name: i for i, name in enumerate(config.names(role))}
        for name, wanted in config.variables_of(dataset_id, role).items():
            where = variable_key(key, role, name)
            with problems.collecting():
                stored = find_array(
                    group, settings.timeseries, wanted.physical, role=role, where=where, required=wanted.required
                )
                place = positions[name]
                if stored is None:
                    facts = VariableFacts(name=name, role=role, position=place, config=wanted, unit=wanted.unit or "")
                else:
                    if coordinates is not None:
                        check_extent(stored, rows=len(coordinates.ids), steps=coordinates.time.num_stored)
                    absent = config.missing.absent_chunk
                    facts = resolve(stored, name=name, role=role, position=place, config=wanted, absent=absent)
                found.append(facts)
    return found


def _series_snapshots(series: Sequence[VariableFacts]) -> list[ArraySnapshot]:
    """Describe the arrays of inputs and targets once each, those that are not there included."""
    arrays = {v.config.physical: None if v.stored is None else v.stored.array for v in series}
    return [series_snapshot(name, array) for name, array in arrays.items()]


def _with_area(
    facts: VariableFacts, attributes: Attributes, areas: Mapping[str, NDArray[np.float64]], where: str
) -> VariableFacts:
    """Add areas and the unit factor to a variable configured with ``per_area``."""
    text = facts.config.per_area
    if text is None or facts.stored is None or text not in attributes.areas:
        return facts  # an area that could not be read is among the problems already
    flow = str(facts.stored.attributes.get("units", ""))
    factor = per_area_factor(flow, attributes.areas[text].unit, facts.unit, where, text)
    rule = replace(facts.rule, area_factor=factor, area_array=text)
    return replace(facts, rule=rule, area=areas[text])


def _check_declared(config: Config, dataset_id: str) -> None:
    """Refuse a name used as series and as static, and a variable that only other data sets declare."""
    key = f"datasets.{dataset_id}"
    static = set(config.variables_of(dataset_id, "static"))
    both = sorted(static & {*config.variables_of(dataset_id, "input"), *config.variables_of(dataset_id, "target")})
    if both:
        raise ConfigError(
            describe(
                "one name stands for a time series and a constant",
                where=f"{key}.variables",
                expected="different names",
                got=", ".join(both),
                fix="rename the constant",
            )
        )
    roles: Sequence[Role] = (*_SERIES, "static")
    lacking = [
        variable_key(key, role, name)
        for role in roles
        for name in config.names(role)
        if name not in config.variables_of(dataset_id, role)
    ]
    if lacking:
        raise ConfigError(
            describe(
                "data set does not declare a variable that another one has",
                where=", ".join(lacking),
                expected="the same variables in every data set",
                got="nothing",
                fix="name the array, or declare the variable with required: false, so that it is filled on purpose",
            )
        )


def _mended_remark(key: str, fix_time: str, time: StoreTime) -> list[str]:
    if time.order is None:
        return []
    moved = int(np.flatnonzero(time.order != np.arange(time.order.size)).size)
    return [
        f"{key}: time axis mended by fix_time: {fix_time}; {time.num_stored - time.order.size} of {time.num_stored} "
        f"stored steps left out, {moved} not in their place"
    ]


def _dropped_remark(key: str, basins: Basins, dropped: list[int]) -> list[str]:
    if not dropped:
        return []
    named = ", ".join(basins.ids[i] for i in dropped[:8]) + (
        f" and {len(dropped) - 8} more" if len(dropped) > 8 else ""
    )
    how_many = "1 basin" if len(dropped) == 1 else f"{len(dropped):,} basins"
    return [f"{key}: {how_many} left out, because a static value is missing: {named}"]


def _check_some_left(basins: Basins, key: str) -> None:
    if not basins.ids:
        raise ConfigError(
            describe(
                "no basin has all its static values",
                where=key,
                expected="at least one basin",
                got="none left by static_missing: drop",
                fix="choose other constants, or static_missing: impute",
            )
        )
