"""What the loader must know of each data set to read it: store, variables with their decode rules, basins, chunks."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.freshness import refuse_stale
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
        key = basin_chunk << 32 | time_chunk
        row = int(np.searchsorted(self.key, key))
        if row == self.key.size or self.key[row] != key:
            return None
        return self.state[row].decode(), self.fingerprint[row].decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSource:
    """One data set as the reader sees it.

    Parameters
    ----------
    dataset_id, number
        Name and position among the loader's data sets.
    uri
        Time series store.
    basin_ids, store_rows, splits
        Of every basin of the data set, by basin number; store_rows int64.
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
    basin_ids: list[str]
    store_rows: NDArray[np.int64]
    splits: list[frozenset[str]]
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

    def in_split(self, split: str) -> NDArray[np.bool_]:
        """Return which basins belong to a split, bool [num_basins]."""
        return np.array([split in s for s in self.splits], dtype=bool)


def load_sources(index: Index, dataset_ids: tuple[str, ...]) -> list[DatasetSource]:
    """Read the tables ``datasets``, ``basins``, ``variables``, ``chunks`` and the areas of ``statics``.

    Raises
    ------
    SourceError
        A store is gone.
    StaleIndexError
        Metadata, coordinates or attributes of a store are not as they were indexed.
    """
    refuse_stale(index, dataset_ids)
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
                basin_ids=basins.column("basin_id").to_pylist(),
                store_rows=basins.column("store_row").to_numpy().astype(np.int64),
                splits=[frozenset(s.split(",")) for s in basins.column("splits").to_pylist()],
                inputs=columns["input"],
                targets=columns["target"],
                areas=_areas(index, dataset_id, basins.num_rows),
                chunks=_chunks(index, dataset_id, present),
                time_order=_time_order(index, dataset_id),
            )
        )
    return sources


def _variable(role: str, name: str, row: dict[str, object] | None) -> SourceVariable:
    if row is None or not row["present"]:
        fill = 0.0 if row is None else float(str(row["model_fill_value"]))
        return SourceVariable(name=name, role=role, array="", rule=None, fill_value=fill)
    rule = rule_from_json(str(row["decode_rule"]))
    return SourceVariable(name=name, role=role, array=str(row["array"]), rule=rule, fill_value=0.0)


def _areas(index: Index, dataset_id: str, num_basins: int) -> dict[str, NDArray[np.float64]]:
    table = index.fetch("statics", dataset_id=dataset_id)
    names = table.column("variable").to_numpy(zero_copy_only=False)
    areas = {}
    for name in sorted({n for n in names if n.startswith(AREA_PREFIX)}):
        rows = np.flatnonzero(names == name)
        area = np.full(num_basins, np.nan)
        area[table.column("basin").to_numpy()[rows]] = table.column("value").to_numpy()[rows]
        areas[name.removeprefix(AREA_PREFIX)] = area
    return areas


def _time_order(index: Index, dataset_id: str) -> NDArray[np.int64] | None:
    order = index.fetch("time_order", dataset_id=dataset_id).column("store_step").to_numpy()
    return order.astype(np.int64) if order.size else None


def _chunks(index: Index, dataset_id: str, variables: list[str]) -> dict[str, ChunkFacts]:
    table = index.fetch("chunks", dataset_id=dataset_id, variables=variables)
    names = table.column("variable").to_numpy(zero_copy_only=False)
    facts = {}
    for name in variables:
        rows = np.flatnonzero(names == name)
        part = table.slice(int(rows[0]), rows.size) if rows.size else table.slice(0, 0)
        key = part.column("basin_chunk").to_numpy().astype(np.int64) << 32 | part.column("time_chunk").to_numpy()
        order = np.argsort(key, kind="stable")
        facts[name] = ChunkFacts(
            key=key[order],
            state=_as_bytes(part, "state")[order],
            fingerprint=_as_bytes(part, "fingerprint")[order],
        )
    return facts


def _as_bytes(table: pa.Table, name: str) -> NDArray[np.bytes_]:
    values: NDArray[np.bytes_] = table.column(name).to_numpy(zero_copy_only=False).astype(np.bytes_)
    return values
