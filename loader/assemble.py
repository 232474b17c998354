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

from headrace.loader.budget import human_nbytes
from headrace.loader.catalog import Index
from headrace.loader.content import load_content
from headrace.loader.layout import Layout
from headrace.loader.normalize import Scaling
from headrace.loader.read import GroupReader
from headrace.loader.read_plan import open_dataset, plan_reads, slot_columns
from headrace.loader.rounds import ResidentRounds, SpilledRounds
from headrace.loader.shares import own_share, whole_share
from headrace.loader.spec import ServeSpec
from headrace.loader.storage import Rows, rows_in_memory, rows_on_disk
from headrace.loader.stream import BatchShape
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from headrace.loader.windows import Windows
from headrace.schemas.errors import ConfigError, describe
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
    round_steps
        Pool rows of a round.
    resident
        Whether all rows stay in memory.
    spill_nbytes
        Bytes of disk behind the rows.
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
    round_steps: int
    resident: bool
    spill_nbytes: int
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
    rounds: ResidentRounds | SpilledRounds
    reader: GroupReader
    readers: ThreadPoolExecutor


def assemble(
    index: Index,
    spec: ServeSpec,
    *,
    budget_nbytes: int,
    agree: Callable[[int], int],
    num_workers: int,
    spill_folder: str | None,
    local: tuple[int, int] | None = None,
) -> tuple[Serving, Engine]:
    """Put together what a request needs.

    Parameters
    ----------
    index, spec
        Where from and what.
    budget_nbytes
        Memory for decoded rows.
    agree
        Turns the round size that fits this process into the one that all ranks use.
    num_workers
        Reader threads.
    spill_folder
        Where rows go that do not fit; the system's temporary folder when None.
    local
        Rank and number of ranks where each serves windows of its own; None where all share every batch.

    Raises
    ------
    ConfigError
        No window, or too small a budget.
    SourceError
        A store is gone.
    """
    content = load_content(index, spec)
    opened = [open_dataset(s) for s in content.sources]
    share = own_share(content, slot_columns(opened, content.layout), *local) if local else whole_share(content)
    content = share.content
    sources, windows, layout = content.sources, content.windows, content.layout
    row_nbytes = content.row_nbytes
    resident = share.most_rows * row_nbytes <= budget_nbytes
    round_steps = agree(share.most_rows if resident else budget_nbytes // (2 * row_nbytes))
    tiles = _tiles(windows, layout, spec.window.length, round_steps, row_nbytes)
    _check_held(round_steps, layout.num_rows, row_nbytes, budget_nbytes)

    shape = layout.num_rows, len(content.x_names), len(content.y_names)
    rows = rows_in_memory(*shape) if resident else rows_on_disk(*shape, spill_folder)
    readers = ThreadPoolExecutor(num_workers, thread_name_prefix="headrace-read")
    reader = GroupReader(
        datasets=opened,
        layout=layout,
        groups=plan_reads(opened, layout),
        x_scaling=content.x_scaling,
        y_scaling=content.y_scaling,
        rows=rows,
        with_masks=content.masks,
        executor=readers,
    )
    serving = Serving(
        x_names=content.x_names,
        static_names=content.static_names,
        y_names=content.y_names,
        basin_ids=[s.basin_ids for s in sources],
        y_scaling=content.y_scaling,
        y_train_std=[_std_of(per, s.num_basins) for per, s in zip(content.y_moments, sources, strict=True)],
        windows=windows,
        loads=share.loads,
        tiles=tiles,
        column=slot_columns(opened, layout),
        round_steps=round_steps,
        resident=resident,
        spill_nbytes=rows.spill_nbytes,
        shape=BatchShape(
            window=spec.window,
            num_x=len(content.x_names),
            num_y=len(content.y_names),
            statics=torch.from_numpy(content.statics),
            layout=layout,
        ),
    )
    return serving, Engine(rows=rows, rounds=_rounds(serving, rows, reader), reader=reader, readers=readers)


def replan(serving: Serving, engine: Engine, round_steps: int, budget_nbytes: int) -> tuple[Serving, Engine]:
    """Cut other rounds over the same rows, as another process did whose epoch is to be continued.

    Raises
    ------
    ConfigError
        This process cannot hold such rounds; says needed and available bytes.
    """
    layout, length = serving.shape.layout, serving.shape.window.length
    _check_held(round_steps, layout.num_rows, serving.row_nbytes, budget_nbytes)
    tiles = _tiles(serving.windows, layout, length, round_steps, serving.row_nbytes)
    planned = replace(serving, tiles=tiles, round_steps=round_steps)
    return planned, replace(engine, rounds=_rounds(planned, engine.rows, engine.reader))


def _rounds(serving: Serving, rows: Rows, reader: GroupReader) -> ResidentRounds | SpilledRounds:
    parts = serving.tiles, serving.shape.layout, rows, reader, serving.shape.window
    return ResidentRounds(*parts) if serving.resident else SpilledRounds(*parts, serving.round_steps)


def _std_of(moments: Sequence[Moments], num_basins: int) -> NDArray[np.float64]:
    return np.stack([m.std for m in moments], axis=1) if moments else np.zeros((num_basins, 0))


def _tiles(windows: Windows, layout: Layout, length: int, round_steps: int, row_nbytes: int) -> Tiles:
    """Cut tiles for rounds of a size; a round must hold at least one."""
    tiles = cut_tiles(windows, layout, length, tile_starts(layout, length, round_steps))
    needed = int(tiles.num_rows.max())
    if needed > round_steps:
        raise ConfigError(
            describe(
                "memory_budget is too small",
                where="WindowLoader",
                expected=f"at least {human_nbytes(2 * needed * row_nbytes)}: two pools of one tile each",
                got=human_nbytes(2 * round_steps * row_nbytes),
                fix="raise memory_budget",
            )
        )
    return tiles


def _check_held(round_steps: int, num_rows: int, row_nbytes: int, budget_nbytes: int) -> None:
    """Refuse rounds, decided by another process, that the own budget cannot hold."""
    needed = min(2 * round_steps, num_rows) * row_nbytes  # a split that fits as a whole has no use for two pools
    if needed > budget_nbytes:
        raise ConfigError(
            describe(
                "memory_budget is too small for the rounds that others use",
                where="WindowLoader",
                expected=f"at least {human_nbytes(needed)}: rounds of {round_steps} rows",
                got=human_nbytes(budget_nbytes),
                fix="raise memory_budget, or give every rank and run the same",
            )
        )
