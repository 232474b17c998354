"""What the inventory found out about the configured data sets: the plan, the fold and the tables read only this."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headrace.indexer.selection import Basins
from headrace.schemas.config import Config, DatasetConfig, Split
from headrace.schemas.time_axis import TimeAxis
from headrace.schemas.variables import DecodeRule, Role, VariableConfig
from headrace.schemas.windows import TimeRange
from headrace.snapshot import ArraySnapshot, digest
from headrace.store import StoredArray


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableFacts:
    """One variable of one data set, resolved against its store.

    Parameters
    ----------
    name, role, position
        Canonical name, role, and place in the order of its role over the whole configuration.
    config
        What the user wrote.
    stored
        The array; None where an optional variable is not there.
    rule
        How raw values decode.
    missing_rule
        Words for ``rule``'s origin.
    unit
        Unit of the canonical values; '' where neither configuration nor store name one.
    area
        float64 [store rows], area of each basin with ``per_area``; None otherwise.
    """

    name: str
    role: Role
    position: int
    config: VariableConfig
    stored: StoredArray | None = None
    rule: DecodeRule = field(default_factory=DecodeRule)
    missing_rule: str = ""
    unit: str = ""
    area: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """One data set, resolved against its stores.

    Parameters
    ----------
    dataset_id, config
        Name and settings.
    axis
        Its time axis.
    basins
        Configured basins in store order; positions are the ``basin`` of the tables.
    num_store_rows
        Basins in the store.
    periods
        Steps of each configured split, clipped to the record.
    variables
        Inputs, targets and statics; absent optional ones have no ``stored``.
    statics
        Variable name (or ``@area:NAME``) to float64 [num_basins].
    snapshots
        What every array that the index rests on looked like.
    time_order
        int64 [steps], stored step of each step; None where they are the same.
    """

    dataset_id: str
    config: DatasetConfig
    axis: TimeAxis
    basins: Basins
    num_store_rows: int
    periods: Mapping[Split, TimeRange]
    variables: tuple[VariableFacts, ...]
    statics: Mapping[str, NDArray[np.float64]]
    snapshots: tuple[ArraySnapshot, ...]
    time_order: NDArray[np.int64] | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of the metadata, coordinates and attributes that the index rests on, wherever the stores lie."""
        return digest(sorted(s.identity() for s in self.snapshots))

    def series(self) -> list[VariableFacts]:
        """Return the inputs and targets that the store has, sorted by name as the tables are."""
        found = [v for v in self.variables if v.role != "static" and v.stored is not None]
        return sorted(found, key=lambda v: v.name)

    def of_role(self, role: Role) -> list[VariableFacts]:
        """Return the variables of a role that the store has."""
        return [v for v in self.variables if v.role == role and v.stored is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All data sets, sorted by id, the configuration they come from, and remarks that stop nothing."""

    config: Config
    datasets: tuple[DatasetFacts, ...]
    remarks: tuple[str, ...]
