"""Compare the unit of each variable between data sets: values in different units must not be mixed unsaid."""

from collections.abc import Sequence
from typing import Literal

from headrace.indexer.facts import DatasetFacts
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.units import same_unit


def check_units(datasets: Sequence[DatasetFacts], policy: Literal["warn", "error", "ignore"]) -> list[str]:
    """Return a remark per variable whose units differ; unknown units are not compared.

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
    return [f"units differ: {text}" for text in listed]
