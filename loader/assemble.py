"""From an index and a request to everything an epoch needs. Wiring only; each stage lives in its own file.

Stages, in order: ``content`` (windows, rows, scales) → ``tiles`` → ``read_plan`` (chunks decoded
together) → ``storage`` (memory or disk) → ``read`` (fills the rows) → ``rounds``; then ``schedule`` and ``stream``.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.buffered_rounds import RereadRounds, SpilledRounds
from headrace.loader.catalog import Index
from headrace.loader.content import load_content
from headrace.loader.filler import RowFiller
from headrace.loader.gather import BatchShape
from headrace.loader.normalize import Scaling
from headrace.loader.placement import place_all
from headrace.loader.read import GroupReader
from headrace.loader.read_counts import ReadCounts
from headrace.loader.read_plan import OpenDataset, open_dataset, plan_reads, slot_columns
from headrace.loader.round_size import check_held, check_least, tiles_of_rounds
from headrace.loader.rounds import ResidentRounds
from headrace.loader.row_store import open_rows
from headrace.loader.shares import own_share, whole_share
from headrace.loader.spec import ServeSpec
from headrace.loader.storage import Rows
from headrace.loader.tiles import Tiles
from headrace.loader.times import DatasetTimes, dataset_times
from headrace.loader.windows import Windows
from headrace.objects import is_remote
from headrace.open_store import opening_once
from headrace.schemas.moments import Moments


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a loader serves from.

    Parameters
    ----------
    x_names, static_names, y_names
        Columns of x and of the statics (masks included), and of y.
    basin_ids
        Per data set.
    y_scaling
        Per data set, over the targets.
    y_train_std
        Per data set float64 [num_basins, Vy]: each basin's own std over the training period, canonical units.
    windows, tiles, column
        Input of the plan: runs of starts, tiles, and which basin chunk each slot is read from.
    loads
        Windows of every share of the split: one, or one for each rank that serves windows of its own.
    times
        Per data set, for reports on how windows are mixed.
    round_steps
        Pool rows of a round.
    num_pools
        Pools that share the memory budget where the split is served in rounds.
    resident
        Whether all rows stay in memory.
    spill_nbytes
        Bytes of disk behind the rows.
    reads
        What has been read from the stores.
    shape
        What every batch has in common.
    """

    x_names: list[str]
    static_names: list[str]
    y_names: list[str]
    basin_ids: list[list[str]]
    y_scaling: list[Scaling]
    y_train_std: list[NDArray[np.float64]]
    windows: Windows
    loads: tuple[int, ...]
    tiles: Tiles
    column: NDArray[np.int64]
    times: list[DatasetTimes]
    round_steps: int
    num_pools: int
    resident: bool
    spill_nbytes: int
    reads: ReadCounts
    shape: BatchShape

    @property
    def one_round(self) -> bool:
        """Whether a round holds the whole split."""
        return self.round_steps >= self.shape.layout.num_rows

    @property
    def row_nbytes(self) -> int:
        """Bytes of one step in the pool."""
        return 4 * (self.shape.num_x + self.shape.num_y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts that hold rows and threads; a closed loader has none."""

    rows: Rows
    rounds: ResidentRounds | SpilledRounds | RereadRounds
    reader: GroupReader
    readers: ThreadPoolExecutor
    datasets: list[OpenDataset]
    spilled: bool


def assemble(
    index: Index,
    spec: ServeSpec,
    *,
    budget_nbytes: int,
    num_pools: int,
    agree: Callable[[int], int],
    num_workers: int,
    cache_dir: str | None,
    cache_limit_nbytes: int | None,
    local: tuple[int, int] | None = None,
) -> tuple[Serving, Engine]:
    """Put together what a request needs. Whatever can fail on one rank alone comes before ``agree``.

    Parameters
    ----------
    index, spec
        Where from and what.
    budget_nbytes
        Memory for decoded rows.
    num_pools
        Rounds in memory at once: the one being served and those read ahead.
    agree
        Turns the round size that fits this process into the one that all ranks use.
    num_workers
        Reader threads.
    cache_dir
        Where rows are kept; None: nowhere, those that do not fit go to a private file; ``off``: to none.
    cache_limit_nbytes
        What rows may take on disk.
    local
        Rank and number of ranks where each serves windows of its own; None where all share every batch.

    Raises
    ------
    ConfigError
        No window, too small a budget, or no room on disk.
    SourceError
        A store is gone.
    """
    with opening_once(index.stores):
        content = load_content(index, spec)
        opened = [open_dataset(s) for s in content.sources]
    share = own_share(content, slot_columns(opened, content.layout), *local) if local else whole_share(content)
    content = share.content
    layout, row_nbytes = content.layout, content.row_nbytes
    resident = share.most_rows * row_nbytes <= budget_nbytes
    check_least(layout, spec.window.length, row_nbytes, budget_nbytes, num_pools)
    groups = plan_reads(opened, layout)
    rows, kept = open_rows(
        content, opened, groups, resident=resident, cache_dir=cache_dir, limit_nbytes=cache_limit_nbytes
    )
    round_steps = agree(share.most_rows if resident else budget_nbytes // (num_pools * row_nbytes))
    check_held(round_steps, layout.num_rows, row_nbytes, budget_nbytes, num_pools)
    # Of two readers for a core one computes while the other waits for a bucket.
    num_readers = num_workers * (2 if any(is_remote(s.uri) for s in content.sources) else 1)
    filler = RowFiller(
        datasets=opened,
        layout=layout,
        x_scaling=content.x_scaling,
        y_scaling=content.y_scaling,
        with_masks=content.masks,
        num_readers=num_readers,
    )
    readers = ThreadPoolExecutor(num_readers, thread_name_prefix="headrace-read")
    reader = GroupReader(
        filler=filler,
        layout=layout,
        groups=groups,
        mended=[s.time_order is not None for s in content.sources],
        rows=rows,
        executor=readers,
        ledger=kept,
    )
    serving = Serving(
        x_names=content.x_names,
        static_names=content.static_names,
        y_names=content.y_names,
        basin_ids=[s.basin_ids for s in content.sources],
        y_scaling=content.y_scaling,
        y_train_std=[_std_of(per, s.num_basins) for per, s in zip(content.y_moments, content.sources, strict=True)],
        windows=content.windows,
        loads=share.loads,
        tiles=tiles_of_rounds(content.windows, layout, spec.window.length, round_steps),
        column=slot_columns(opened, layout),
        times=[dataset_times(index, d) for d in opened],
        round_steps=round_steps,
        num_pools=num_pools,
        resident=resident,
        spill_nbytes=rows.spill_nbytes,
        reads=ReadCounts(filler.raw, opened, groups, place_all(layout)),
        shape=BatchShape(
            window=spec.window,
            num_x=len(content.x_names),
            num_y=len(content.y_names),
            statics=torch.from_numpy(content.statics),
            layout=layout,
        ),
    )
    spilled = rows.x.shape[0] > 0
    rounds = _rounds(serving, rows, reader, opened, spilled=spilled)
    return serving, Engine(rows=rows, rounds=rounds, reader=reader, readers=readers, datasets=opened, spilled=spilled)


def replan(serving: Serving, engine: Engine, round_steps: int, budget_nbytes: int) -> tuple[Serving, Engine]:
    """Cut other rounds over the same rows, as another process did whose epoch is to be continued.

    Raises
    ------
    ConfigError
        This process cannot hold such rounds; says needed and available bytes.
    """
    layout, length = serving.shape.layout, serving.shape.window.length
    check_held(round_steps, layout.num_rows, serving.row_nbytes, budget_nbytes, serving.num_pools)
    tiles = tiles_of_rounds(serving.windows, layout, length, round_steps)
    planned = replace(serving, tiles=tiles, round_steps=round_steps)
    rounds = _rounds(planned, engine.rows, engine.reader, engine.datasets, spilled=engine.spilled)
    return planned, replace(engine, rounds=rounds)


def _rounds(
    serving: Serving, rows: Rows, reader: GroupReader, opened: Sequence[OpenDataset], *, spilled: bool
) -> ResidentRounds | SpilledRounds | RereadRounds:
    tiles, layout, window = serving.tiles, serving.shape.layout, serving.shape.window
    if serving.resident:
        return ResidentRounds(tiles, layout, rows, reader, window, num_ahead=serving.num_pools - 1)
    shape = serving.round_steps, serving.shape.num_x, serving.shape.num_y
    if spilled:
        return SpilledRounds(tiles, layout, rows, reader, window, shape=shape, num_pools=serving.num_pools)
    return RereadRounds(tiles, layout, opened, reader, window, shape=shape, num_pools=serving.num_pools)


def _std_of(moments: Sequence[Moments], num_basins: int) -> NDArray[np.float64]:
    return np.stack([m.std for m in moments], axis=1) if moments else np.zeros((num_basins, 0))
