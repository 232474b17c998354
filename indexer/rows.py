"""Folded results to Arrow tables, exactly as :mod:`headrace.schemas.tables` declares them, sorted by their keys."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.indexer.facts import DatasetFacts, VariableFacts
from headrace.indexer.fold import DatasetResult, Folded
from headrace.indexer.stretches import Columns, stretches
from headrace.schemas.dates import iso_text
from headrace.schemas.moments import Moments
from headrace.schemas.variables import rule_to_json


def all_tables(folded: Folded) -> dict[str, Iterator[pa.Table]]:
    """Return every table of the index by name, in stretches of rows that are made as they are asked for."""
    makers = {
        "datasets": _dataset,
        "segments": _segments,
        "time_order": _time_order,
        "periods": _periods,
        "basins": _basins,
        "variables": _variables,
        "arrays": _arrays,
        "chunks": _chunks,
        "runs": _runs,
        "windows": _windows,
        "dropped": _dropped,
        "moments": _moments,
        "statics": _statics,
    }
    tables = {name: stretches(name, [p for d in folded.datasets for p in make(d)]) for name, make in makers.items()}
    return {**tables, "stats": stretches("stats", list(_stats(folded)))}


def _records(rows: Iterable[Columns]) -> Sequence[Columns]:
    """Turn row mappings into one piece."""
    listed = list(rows)
    return [{name: [row[name] for row in listed] for name in listed[0]}] if listed else []


def _dataset(result: DatasetResult) -> Sequence[Columns]:
    facts = result.facts
    return [
        {
            "dataset_id": facts.dataset_id,
            "timeseries_uri": facts.config.timeseries,
            "attributes_uri": facts.config.attributes or "",
            "num_basins": len(facts.basins.ids),
            "num_steps": facts.axis.num_steps,
            "time_start": iso_text(facts.axis.segments[0].seconds, facts.axis.calendar),
            "step_seconds": facts.axis.step_seconds,
            "calendar": facts.axis.calendar,
            "weight": facts.config.weight,
            "fingerprint": facts.fingerprint,
        }
    ]


def _segments(result: DatasetResult) -> Sequence[Columns]:
    axis = result.facts.axis
    return _records(
        {
            "dataset_id": result.facts.dataset_id,
            "segment": i,
            "start": s.start,
            "stop": s.stop,
            "time_start": iso_text(s.seconds, axis.calendar),
        }
        for i, s in enumerate(axis.segments)
    )


def _time_order(result: DatasetResult) -> Sequence[Columns]:
    order = result.facts.time_order
    if order is None:
        return []
    step = np.arange(order.size, dtype=np.int32)
    return [{"dataset_id": result.facts.dataset_id, "step": step, "store_step": order.astype(np.int32)}]


def _periods(result: DatasetResult) -> Sequence[Columns]:
    axis, seconds = result.facts.axis, result.facts.axis.seconds()
    return _records(
        {
            "dataset_id": result.facts.dataset_id,
            "split": split,
            "start": p.start,
            "stop": p.stop,
            "time_start": iso_text(int(seconds[p.start]), axis.calendar),
            "time_last": iso_text(int(seconds[p.stop - 1]), axis.calendar),
        }
        for split, p in result.facts.periods.items()
    )


def _basins(result: DatasetResult) -> Sequence[Columns]:
    basins = result.facts.basins
    number = np.arange(len(basins.ids), dtype=np.int32)
    return [
        {
            "dataset_id": result.facts.dataset_id,
            "basin": number,
            "basin_id": list(basins.ids),
            "store_row": list(basins.rows),
            "splits": list(basins.splits),
        }
    ]


def _variables(result: DatasetResult) -> Sequence[Columns]:
    return _records(_variable(result.facts, v) for v in result.facts.variables)


def _arrays(result: DatasetResult) -> Sequence[Columns]:
    facts = result.facts
    return _records({"dataset_id": facts.dataset_id, **asdict(snapshot)} for snapshot in facts.snapshots)


def _variable(facts: DatasetFacts, variable: VariableFacts) -> Columns:
    config, stored = variable.config, variable.stored
    row: dict[str, Any] = {
        "dataset_id": facts.dataset_id,
        "variable": variable.name,
        "role": variable.role,
        "unit": variable.unit,
        "scale": config.scale,
        "offset": config.offset,
        "model_fill_value": config.fill_value,
        "position": variable.position,
    }
    if stored is None:
        texts = (
            "array",
            "storage_fill_value",
            "dtype",
            "dims",
            "chunk_shape",
            "shard_shape",
            "missing_rule",
            "decode_digest",
            "decode_rule",
        )
        return {**row, "present": False, **dict.fromkeys(texts, "")}
    fill = stored.array.metadata.fill_value
    return {
        **row,
        "present": True,
        "array": stored.name,
        "storage_fill_value": "" if fill is None else repr(fill.item() if hasattr(fill, "item") else fill),
        "dtype": str(stored.dtype),
        "dims": ",".join(stored.dims),
        "chunk_shape": _shape(stored.array.chunks),
        "shard_shape": "" if stored.array.shards is None else _shape(stored.array.shards),
        "missing_rule": variable.missing_rule,
        "decode_digest": variable.rule.digest(),
        "decode_rule": rule_to_json(variable.rule),
    }


def _shape(sizes: Sequence[int]) -> str:
    return ",".join(str(s) for s in sizes)


def _chunks(result: DatasetResult) -> Sequence[Columns]:
    pieces = []
    for name, found in result.series.items():
        fields = {found.chunks.type.field(i).name: found.chunks.field(i) for i in range(found.chunks.type.num_fields)}
        pieces.append({"dataset_id": result.facts.dataset_id, "variable": name, **fields})
    return pieces


def _runs(result: DatasetResult) -> Sequence[Columns]:
    return [
        {
            "dataset_id": result.facts.dataset_id,
            "variable": name,
            "basin": f.runs.row,
            "start": f.runs.start,
            "stop": f.runs.stop,
        }
        for name, f in result.series.items()
    ]


def _windows(result: DatasetResult) -> Sequence[Columns]:
    return [
        {
            "dataset_id": result.facts.dataset_id,
            "split": split,
            "segment": w.runs.segment,
            "basin": w.runs.basin,
            "start": w.runs.start,
            "stop": w.runs.stop,
            "num_windows": w.runs.num_windows,
        }
        for split, w in sorted(result.windows.items())
    ]


def _dropped(result: DatasetResult) -> Sequence[Columns]:
    pieces = []
    for split, found in result.windows.items():
        for reason, counts in found.dropped.items():
            basin = np.flatnonzero(counts)
            pieces.append(
                {
                    "dataset_id": result.facts.dataset_id,
                    "split": split,
                    "basin": basin.astype(np.int32),
                    "reason": reason,
                    "num_windows": counts[basin],
                }
            )
    return pieces


def _moments(result: DatasetResult) -> Sequence[Columns]:
    pieces = []
    for name, f in result.series.items():
        m = f.moments
        place = {
            "dataset_id": result.facts.dataset_id,
            "variable": name,
            "basin": f.basin,
            "start": f.start,
            "stop": f.stop,
        }
        pieces.append({**place, "count": m.count, "mean": m.mean, "m2": m.m2, "min": m.low, "max": m.high})
    return pieces


def _statics(result: DatasetResult) -> Sequence[Columns]:
    number = np.arange(len(result.facts.basins.ids), dtype=np.int32)
    return [
        {"dataset_id": result.facts.dataset_id, "basin": number, "variable": name, "value": values}
        for name, values in result.facts.statics.items()
    ]


def _stats(folded: Folded) -> Iterable[Columns]:
    for name, whole in folded.overall.items():
        yield _stat("global", "", name, np.array([-1], dtype=np.int32), whole)
    for result in folded.datasets:
        for name, found in result.statistics.items():
            yield _stat("dataset", result.facts.dataset_id, name, np.array([-1], dtype=np.int32), found.of_dataset)
            if name in result.series:
                yield _stat("basin", result.facts.dataset_id, name, found.basins, found.by_basin)


def _stat(scope: str, dataset_id: str, variable: str, basin: NDArray[np.int32], m: Moments) -> Columns:
    return {
        "scope": scope,
        "dataset_id": dataset_id,
        "basin": basin,
        "variable": variable,
        "count": m.count,
        "mean": m.mean,
        "std": m.std,
        "min": m.low,
        "max": m.high,
    }
