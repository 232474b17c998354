"""Compare the unit of each variable between data sets, and with its store: no unit is mixed, or named wrong, unsaid."""

from collections.abc import Sequence
from typing import Literal

from headrace.indexer.facts import DatasetFacts, VariableFacts
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.units import same_unit, surely_differ


def check_units(datasets: Sequence[DatasetFacts], policy: Literal["warn", "error", "ignore"]) -> list[str]:
    """Return a remark per variable whose units differ, or that has another unit in its store; unknown ones are let be.

    Raises
    ------
    ConfigError
        The policy is ``error`` and units differ.
    """
    if policy == "ignore":
        return []
    units: dict[str, list[tuple[str, str]]] = {}
    for dataset in datasets:
        for variable in dataset.variables:
            if variable.stored is not None and variable.unit:
                units.setdefault(variable.name, []).append((dataset.dataset_id, variable.unit))
    differing = {
        name: found for name, found in sorted(units.items()) if not all(same_unit(found[0][1], u) for _, u in found)
    }
    listed = [f"{name} has unit {', '.join(f'{u} in {d}' for d, u in found)}" for name, found in differing.items()]
    if listed and policy == "error":
        raise ConfigError(
            describe(
                "units differ between data sets",
                where="datasets",
                expected="one unit per variable",
                got="; ".join(listed),
                fix="convert with scale and offset and name the unit, or set missing.unit_mismatch_policy: warn",
            )
        )
    relabelled = [
        f"{d.dataset_id}.{v.name} is configured as {v.unit}, its store says {_stored_unit(v)}; nothing converts it"
        for d in datasets
        for v in d.variables
        if _is_plain(v) and surely_differ(v.unit, _stored_unit(v))
    ]
    return [f"units differ: {text}" for text in [*listed, *relabelled]]


def _is_plain(variable: VariableFacts) -> bool:
    config = variable.config
    return variable.stored is not None and (config.scale, config.offset, config.per_area) == (1.0, 0.0, None)


def _stored_unit(variable: VariableFacts) -> str:
    return "" if variable.stored is None else str(variable.stored.attributes.get("units", ""))
