"""Where a store's bytes lie: a map of the stored objects of each variable, and what reading them costs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.loader import Index
from headrace.report.chunk_advice import Advice, ChunkCost, advise
from headrace.report.heat_map import Field, heat_map
from headrace.report.numbers import count, plural, size, value
from headrace.report.overview import Dataset
from headrace.report.plot import DataTable, Plot, Tick
from headrace.report.questions import Row, ask
from headrace.schemas.dates import iso_text
from headrace.schemas.time_axis import TimeAxis

MOST_SIDE = 60
MOST_CELLS = 60_000
STATES = (("absent", "never written"), ("flags", "only missing values"), ("error", "cannot be read"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSection:
    """What the page says of the chunks of one data set."""

    dataset_id: str
    table: DataTable
    advice: list[Advice]
    states: list[tuple[str, str]]
    plots: list[Plot]


def chunk_sections(index: Index, datasets: Sequence[Dataset]) -> Iterator[ChunkSection]:
    """Yield a section per data set."""
    rows = ask(index, "chunk_cost")
    length = index.config.window.spec().length
    side = int(min(MOST_SIDE, max(8, (MOST_CELLS / max(len(rows), 1)) ** 0.5)))
    for dataset in datasets:
        mine = [row for row in rows if row["dataset_id"] == dataset.dataset_id]
        if not mine:
            continue
        costs = [_cost(row, dataset) for row in mine]
        axis = index.time_axis(dataset.dataset_id)
        yield ChunkSection(
            dataset_id=dataset.dataset_id,
            table=_table(costs, length),
            advice=advise(costs),
            states=[state for state, n in zip(STATES, _without_data(costs), strict=True) if n],
            plots=[_map(index, row, cost, axis, side) for row, cost in zip(mine, costs, strict=True)],
        )


def _cost(row: Row, dataset: Dataset) -> ChunkCost:
    names = ("chunk_basins", "chunk_steps", "objects", "absent", "only_missing", "unreadable", "stored_nbytes",
             "decoded_nbytes")  # fmt: skip
    return ChunkCost(
        dataset_id=row["dataset_id"],
        variable=row["variable"],
        array=row["array_name"],
        num_basins=dataset.num_basins,
        num_steps=dataset.num_steps,
        sharded=bool(row["shard_shape"]),
        **{name: int(row[name]) for name in names},
    )


def _without_data(costs: Sequence[ChunkCost]) -> tuple[int, int, int]:
    """Return how many objects are in each of :data:`STATES`."""
    return sum(c.absent for c in costs), sum(c.only_missing for c in costs), sum(c.unreadable for c in costs)


def _table(costs: Sequence[ChunkCost], window_length: int) -> DataTable:
    rows = []
    for c in costs:
        odd = [f"{count(n)} {name}" for n, (_, name) in zip(_without_data([c]), STATES, strict=True) if n]
        rows.append(
            (
                c.variable,
                f"{count(c.chunk_basins)} × {count(c.chunk_steps)}",
                count(c.objects),
                ", ".join(odd) or "–",
                size(c.stored_nbytes),
                size(c.decoded_nbytes),
                size(c.chunk_nbytes),
                f"{value(c.values_per_value(window_length), 3)} ×",
            )
        )
    header = ("variable", "basins × steps", "objects", "without data", "stored", "decoded", "largest", "window alone")
    return DataTable(caption=f"Stored objects of {costs[0].dataset_id}, and what they cost", header=header, rows=rows)


def _map(index: Index, row: Row, cost: ChunkCost, axis: TimeAxis, side: int) -> Plot:
    basin_step, time_step = (-(-row[name] // side) for name in ("last_basin_chunk", "last_time_chunk"))
    shape = (-(-row["last_basin_chunk"] // basin_step), -(-row["last_time_chunk"] // time_step))
    shares, states = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    found = ask(index, "chunk_grid", dataset_id=cost.dataset_id, variable=cost.variable, basin_step=basin_step,
                time_step=time_step)  # fmt: skip
    largest = max(row["largest_nbytes"], 1)
    for cell in found:
        place = cell["row_number"], cell["column_number"]
        shares[place] = cell["nbytes"] / largest
        for state, name in enumerate(("absent", "only_missing", "unreadable"), start=1):
            if cell[name] == cell["objects"] or (name == "unreadable" and cell[name]):
                states[place] = state
    step_edges = [min(c * time_step * cost.chunk_steps, cost.num_steps - 1) for c in range(shape[1] + 1)]
    columns = [f"from {_day(axis, step)}" for step in step_edges[:-1]]
    first = [r * basin_step * cost.chunk_basins for r in range(shape[0])]
    rows = [f"store rows from {count(n)}" for n in first]
    grouped = basin_step * time_step > 1
    field = Field(shares=shares, rows=rows, columns=columns, states=states, state_names=STATES)
    parts = f"{plural(row['basin_chunks'], 'chunk')} of basins × {plural(row['time_chunks'], 'chunk')} of time"
    return heat_map(
        cost.variable,
        field,
        description=f"{parts}; the largest object has {size(largest)}, all have {size(cost.stored_nbytes)}.",
        x_ticks=_edge_ticks([_day(axis, step) for step in step_edges]),
        y_ticks=_edge_ticks([count(n) for n in [*first, row["last_row"]]], ends_only=True),
        y_label="store row",
        ramp="amount",
        unit=f"of the largest object ({size(largest)})",
        height=int(min(180, max(60, 12 * shape[0]))),
        note=f"A cell stands for up to {basin_step} × {time_step} objects and shows the largest." if grouped else "",
    )


def _day(axis: TimeAxis, step: int) -> str:
    segment = next(s for s in axis.segments if s.start <= step < s.stop)
    return iso_text(segment.seconds + axis.step_seconds * (step - segment.start), axis.calendar)[:10]


def _edge_ticks(labels: Sequence[str], *, ends_only: bool = False) -> list[Tick]:
    """Return ticks at cell edges: all where they are few, else the ends."""
    number = len(labels) - 1
    chosen = range(number + 1) if number <= 2 and not ends_only else (0, number)
    return [Tick(round(100 * i / number, 2), labels[i], spare=0 < i < number) for i in chosen]
