"""Fill what a configuration leaves out: store names from ``~/hydro_setting.yml``, arrays and units from presets.

Works on the plain values of a configuration before they are checked, and leaves whatever it does not understand to
that check. What is filled in is complete: a configuration that was resolved once is resolved again to the same.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast, get_args

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.hydro_setting import HydroSetting, Source, read_hydro_setting
from headrace.schemas.presets import Preset, Series, preset_of

_STORES = ("timeseries", "attributes")
_ROLES = ("relevant", "target", "constant")
_FORCINGS = ("precipitation", "temperature_max", "temperature_min", "solar_radiation", "potential_evapotranspiration")
_TARGET = "streamflow"
_VOLUMES = ("m^3/s", "L/s", "ML/day")
_DEPTH = "mm/day"


def fill_left_out(data: dict[str, Any]) -> None:
    """Fill in stores, variables and periods, in place.

    - A data set without ``timeseries`` gets the store names of its preset, or ``<id>_timeseries.zarr`` and
      ``<id>_attributes.zarr``, in the folder or bucket that ``~/hydro_setting.yml`` names.
    - With ``storage.source: cloud`` a relative store name is one in that bucket.
    - A list of names becomes array and unit of each where the data set has a preset; other names are arrays.
    - A data set with a preset and without ``variables`` or periods gets the preset's.

    Raises
    ------
    ConfigError
        The settings file does not fit or does not say where stores lie, or a preset does not decide for a name.
    """
    datasets, storage = data.get("datasets"), data.get("storage")
    if not isinstance(datasets, dict):
        return
    chosen = storage.get("source") if isinstance(storage, dict) else None
    places = _Places(chosen if chosen in get_args(Source) else None)
    unspoken: dict[str, Preset] = {}
    for dataset_id, given in list(datasets.items()):
        preset = preset_of(str(dataset_id))
        entry = {} if given is None and preset is not None else given
        if not isinstance(entry, dict):
            continue
        datasets[dataset_id] = entry
        _fill_stores(entry, str(dataset_id), preset, places)
        if preset is None:
            continue
        if entry.get("variables") is None:
            _need_series(str(dataset_id), preset)
            unspoken[dataset_id] = preset
        elif isinstance(entry["variables"], dict):
            _name_arrays(entry["variables"], str(dataset_id), preset)
        if not any(entry.get(f"t_range_{split}") for split in ("train", "valid", "test")):
            entry |= {f"t_range_{split}": list(period) for split, period in preset.periods().items()}
    _fill_variables(datasets, unspoken)


class _Places:
    """Where stores lie; the settings file is read when it is first needed."""

    def __init__(self, chosen: Source | None) -> None:
        self.chosen = chosen

    @cached_property
    def setting(self) -> HydroSetting:
        return read_hydro_setting()

    @cached_property
    def folder(self) -> str:
        """Folder or URL of the source: the chosen one, or the file's default."""
        return self.setting.store_folder(self.chosen or self.setting.storage.default_source)

    def known(self) -> bool:
        """Return whether the file says anything of the source."""
        return self.setting.says(self.chosen or self.setting.storage.default_source)


def _fill_stores(entry: dict[str, Any], dataset_id: str, preset: Preset | None, places: _Places) -> None:
    if entry.get("timeseries") is None:
        if preset is None and not places.known():
            return  # the check says that timeseries is missing
        names = (preset.timeseries, preset.attributes) if preset else [f"{dataset_id}_{k}.zarr" for k in _STORES]
        for kind, name in zip(_STORES, names, strict=True):
            if entry.get(kind) is None:
                entry[kind] = f"{places.folder}/{name}"
    elif places.chosen == "cloud":
        for kind in _STORES:
            given = entry.get(kind)
            if isinstance(given, str) and "://" not in given and not given.startswith(("/", "~")):
                entry[kind] = f"{places.folder}/{given.removeprefix('./')}"


def _need_series(dataset_id: str, preset: Preset) -> None:
    if _TARGET in preset.series and any(name in preset.series for name in _FORCINGS):
        return
    raise ConfigError(
        describe(
            "the preset of this data set cannot be trained from without more settings",
            where=f"datasets.{dataset_id}",
            expected=f"{_TARGET} and at least one of {', '.join(_FORCINGS)}",
            got=", ".join(preset.series) or "no variable",
            fix=f"name arrays under datasets.{dataset_id}.variables",
        )
    )


def _name_arrays(variables: dict[str, Any], dataset_id: str, preset: Preset) -> None:
    """Turn lists of names into mappings."""
    for role in _ROLES:
        names = variables.get(role)
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            key = f"datasets.{dataset_id}.variables.{role}"
            constant = role == "constant"
            variables[role] = {
                name: _constant(preset, name) if constant else _array(preset, name, key) for name in names
            }


def _constant(preset: Preset, name: str) -> dict[str, Any]:
    static = preset.statics.get(name)
    return {"physical": name} if static is None else {"physical": static.physical, "unit": static.unit}


def _array(preset: Preset, name: str, key: str) -> dict[str, Any]:
    series = preset.series.get(name)
    return {"physical": name} if series is None else _of_default_source(series, name, key)


def _of_default_source(series: Series, name: str, key: str) -> dict[str, Any]:
    if series.default is None:
        arrays = ", ".join(f"{a.physical} ({source})" for source, a in series.sources.items())
        raise ConfigError(
            describe(
                f"{name} has several sources and none of them is the usual one",
                where=key,
                expected=f"a mapping with the array that is meant: {{{name}: …}}",
                got=f"a list; arrays: {arrays}",
                fix="write a mapping name → array",
            )
        )
    return series.sources[series.default].model_dump()


def _fill_variables(datasets: dict[str, Any], unspoken: dict[str, Preset]) -> None:
    """Give data sets without ``variables`` the usual ones; a name that only others have is filled, not required."""
    chosen = {dataset_id: _usual(preset) for dataset_id, preset in unspoken.items()}
    _agree_on_flow(chosen, unspoken)
    named = {role: _names(role, [*datasets.values(), *({"variables": c} for c in chosen.values())]) for role in _ROLES}
    for dataset_id, variables in chosen.items():
        for role in ("relevant", "constant"):
            lacking = [name for name in named[role] if name not in variables[role]]
            variables[role] |= {name: {"physical": name, "required": False} for name in lacking}
        datasets[dataset_id]["variables"] = variables


def _usual(preset: Preset) -> dict[str, dict[str, Any]]:
    forcings = [name for name in _FORCINGS if name in preset.series]
    if "temperature_max" not in forcings and "temperature_mean" in preset.series:
        forcings = [name for name in forcings if name != "temperature_min"]
        forcings.insert(forcings.index("precipitation") + 1 if "precipitation" in forcings else 0, "temperature_mean")
    found = {name: preset.series[name] for name in [*forcings, _TARGET]}
    arrays = {name: _of_default_source(series, name, name) for name, series in found.items()}
    fit = [name for name, static in preset.statics.items() if static.numeric and not static.from_flow]
    return {
        "relevant": {name: arrays[name] for name in forcings},
        "target": {_TARGET: arrays[_TARGET]},
        "constant": {name: _constant(preset, name) for name in fit},
    }


def _agree_on_flow(chosen: dict[str, Any], presets: dict[str, Preset]) -> None:
    """Turn volumes into depths where the data sets' flows have different units and the basins' areas are known."""
    flows = {dataset_id: variables["target"][_TARGET] for dataset_id, variables in chosen.items()}
    if len({flow["unit"] for flow in flows.values()}) < 2:
        return
    for dataset_id, flow in flows.items():
        area = presets[dataset_id].statics.get("area")
        if flow["unit"] in _VOLUMES and area is not None:
            flow |= {"per_area": area.physical, "unit": _DEPTH}


def _names(role: str, entries: Iterable[object]) -> list[str]:
    """Return the names that any data set has in a role, in order of first appearance."""
    found: dict[str, None] = {}
    for entry in entries:
        variables = entry.get("variables") if isinstance(entry, dict) else None
        names = variables.get(role) if isinstance(variables, dict) else None
        if isinstance(names, dict | list):
            found |= dict.fromkeys(cast("Iterable[str]", names))
    return list(found)
