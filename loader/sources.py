"""What the loader must know of each data set to read it: store, variables with their decode rules, basins, chunks."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.columns import numbers, texts
from headrace.schemas.config import SPLITS
from headrace.schemas.storage_config import StorageConfig
from headrace.schemas.variables import DecodeRule, rule_from_json
from headrace.static_rows import AREA_PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVariable:
    """One input or target of one data set.

    Parameters
    ----------
    name, role
        Canonical name; input or target.
    array
        Name in the store; '' when the data set lacks it.
    rule
        What its raw values mean; None when the data set lacks it.
    fill_value
        Value after normalisation where the data set lacks the variable.
    """

    name: str
    role: str
    array: str
    rule: DecodeRule | None
    fill_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFacts:
    """State and fingerprint of the stored objects of one variable, as the scan saw them; a few flat arrays.

    Parameters
    ----------
    key
        int64 [N], ``basin chunk << 32 | time chunk``, ascending.
    state, fingerprint
        Bytes of fixed width [N].
    """

    key: NDArray[np.int64]
    state: NDArray[np.bytes_]
    fingerprint: NDArray[np.bytes_]

    def look_up(self, basin_chunk: int, time_chunk: int) -> tuple[str, str] | None:
        """Return (state, fingerprint), or None for an object that the scan did not look at."""
        return self.look_up_all(basin_chunk, range(time_chunk, time_chunk + 1))[0]

    def look_up_all(self, basin_chunk: int, time_chunks: range) -> list[tuple[str, str] | None]:
        """Return what :meth:`look_up` does, for neighbouring time chunks."""
        first = (basin_chunk << 32) + time_chunks.start
        if len(time_chunks) == 1:
            row = int(self.key.searchsorted(first))
            rows = [row if row < self.key.size and self.key[row] == first else -1]
        else:
            rows = self.rows_of(first + np.arange(len(time_chunks))).tolist()
        return [None if row < 0 else (self.state[row].decode(), self.fingerprint[row].decode()) for row in rows]

    def rows_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of every key; -1 for objects that the scan did not look at."""
        if self.key.size == 0:
            return np.full(keys.size, -1)
        row = np.minimum(np.searchsorted(self.key, keys), self.key.size - 1)
        return np.where(self.key[row] == keys, row, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSource:
    """One data set as the reader sees it.

    Parameters
    ----------
    dataset_id, number
        Name and position among the loader's data sets.
    uri, storage
        Time series store, and how it is reached if it is in a bucket; no secrets.
    basin_ids, store_rows
        Of every basin of the data set, by basin number; store_rows int64.
    splits
        Split → which basins belong to it, bool [num_basins].
    inputs, targets
        Variables in the model's column order.
    areas
        Area array → float64 [num_basins].
    chunks
        Variable name → facts of its stored objects.
    time_order
        int64 [steps], stored step of each step, where the time axis was mended; None where they are the same.
    """

    dataset_id: str
    number: int
    uri: str
    storage: StorageConfig
    basin_ids: list[str]
    store_rows: NDArray[np.int64]
    splits: dict[str, NDArray[np.bool_]]
    inputs: tuple[SourceVariable, ...]
    targets: tuple[SourceVariable, ...]
    areas: dict[str, NDArray[np.float64]]
    chunks: dict[str, ChunkFacts]
    time_order: NDArray[np.int64] | None = None

    @property
    def num_basins(self) -> int:
        """Basins of the data set."""
        return len(self.basin_ids)

    def present(self) -> list[SourceVariable]:
        """Return the variables that the store holds, inputs first."""
        return [v for v in (*self.inputs, *self.targets) if v.rule is not None]


def load_sources(index: Index, dataset_ids: tuple[str, ...]) -> list[DatasetSource]:
    """Read the tables ``datasets``, ``basins``, ``variables``, ``chunks`` and the areas of ``statics``."""
    uris = {r["dataset_id"]: r["timeseries_uri"] for r in index.fetch("datasets").to_pylist()}
    rows = index.fetch("variables").to_pylist()
    names = {"input": index.config.names("input"), "target": index.config.names("target")}
    sources = []
    for number, dataset_id in enumerate(dataset_ids):
        own = {(r["role"], r["variable"]): r for r in rows if r["dataset_id"] == dataset_id}
        columns = {role: tuple(_variable(role, n, own.get((role, n))) for n in names[role]) for role in names}
        basins = index.fetch("basins", dataset_id=dataset_id)
        present = [v.name for role in columns.values() for v in role if v.rule is not None]
        sources.append(
            DatasetSource(
                dataset_id=dataset_id,
                number=number,
                uri=uris[dataset_id],
                storage=index.config.storage,
                basin_ids=basins.column("basin_id").to_pylist(),
                store_rows=numbers(basins, "store_row").astype(np.int64),
                splits=members_of_splits(basins),
                inputs=columns["input"],
                targets=columns["target"],
                areas=_areas(index, dataset_id, basins.num_rows),
                chunks=_chunks(index, dataset_id, present),
                time_order=_time_order(index, dataset_id),
            )
        )
    return sources


def members_of_splits(basins: pa.Table) -> dict[str, NDArray[np.bool_]]:
    """Return which rows of table ``basins`` belong to each split."""
    kinds, of_row = texts(basins, "splits")
    return {split: np.array([split in kind.split(",") for kind in kinds], dtype=bool)[of_row] for split in SPLITS}


def _variable(role: str, name: str, row: dict[str, object] | None) -> SourceVariable:
    if row is None or not row["present"]:
        fill = 0.0 if row is None else float(str(row["model_fill_value"]))
        return SourceVariable(name=name, role=role, array="", rule=None, fill_value=fill)
    rule = rule_from_json(str(row["decode_rule"]))
    return SourceVariable(name=name, role=role, array=str(row["array"]), rule=rule, fill_value=0.0)


def _areas(index: Index, dataset_id: str, num_basins: int) -> dict[str, NDArray[np.float64]]:
    table = index.fetch("statics", dataset_id=dataset_id)
    names, of_row = texts(table, "variable")
    basin, value = numbers(table, "basin"), numbers(table, "value")
    areas = {}
    for number, name in enumerate(names):
        if name.startswith(AREA_PREFIX):
            rows = of_row == number
            area = np.full(num_basins, np.nan)
            area[basin[rows]] = value[rows]
            areas[name.removeprefix(AREA_PREFIX)] = area
    return areas


def _time_order(index: Index, dataset_id: str) -> NDArray[np.int64] | None:
    order = numbers(index.fetch("time_order", dataset_id=dataset_id), "store_step")
    return order.astype(np.int64) if order.size else None


def _chunks(index: Index, dataset_id: str, variables: list[str]) -> dict[str, ChunkFacts]:
    table = index.fetch("chunks", dataset_id=dataset_id, variables=variables)
    key = numbers(table, "basin_chunk").astype(np.int64) << 32 | numbers(table, "time_chunk")
    names, of_row = texts(table, "variable")
    facts = {}
    for name in variables:
        rows = np.flatnonzero(of_row == names.index(name)) if name in names else np.zeros(0, np.int64)
        part = table.slice(int(rows[0]), rows.size) if rows.size else table.slice(0, 0)
        facts[name] = ChunkFacts(
            key=key[rows], state=_as_bytes(part, "state"), fingerprint=_as_bytes(part, "fingerprint")
        )
    return facts


def _as_bytes(table: pa.Table, name: str) -> NDArray[np.bytes_]:
    return np.array(table.column(name).to_pylist(), dtype=np.bytes_)
