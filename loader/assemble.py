"""From an index and a request to everything an epoch needs. Wiring only; each stage lives in its own file.

Stages, in order: ``windows`` (runs of starts) → ``layout`` (rows) → ``tiles`` → ``read_plan`` (chunks decoded
together) → ``storage`` (memory or disk) → ``read`` (fills the rows) → ``rounds``; then ``schedule`` and ``stream``.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.budget import human_nbytes
from headrace.loader.catalog import Index
from headrace.loader.layout import Layout, lay_out
from headrace.loader.normalize import Scaling, basin_moments, resolve_scaling
from headrace.loader.read import GroupReader
from headrace.loader.read_plan import open_dataset, plan_reads, slot_columns
from headrace.loader.rounds import ResidentRounds, SpilledRounds
from headrace.loader.sources import load_sources
from headrace.loader.spec import ServeSpec
from headrace.loader.statics import load_statics
from headrace.loader.storage import rows_in_memory, rows_on_disk
from headrace.loader.stream import BatchShape
from headrace.loader.tiles import Tiles, cut_tiles, tile_starts
from headrace.loader.windows import load_windows
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
    tiles, column
        Input of the plan: tiles, and which basin chunk each slot is read from.
    num_windows
        Windows of the split.
    round_steps
        Pool rows of a round.
    resident
        Whether all rows stay in memory.
    spill_nbytes
        Bytes of disk behind the rows.
    rounds, shape, reader, readers
        The running parts.
    """

    x_names: list[str]
    static_names: list[str]
    y_names: list[str]
    basin_ids: list[list[str]]
    y_scaling: list[Scaling]
    y_train_std: list[NDArray[np.float64]]
    tiles: Tiles
    column: NDArray[np.int64]
    num_windows: int
    round_steps: int
    resident: bool
    spill_nbytes: int
    rounds: ResidentRounds | SpilledRounds
    shape: BatchShape
    reader: GroupReader
    readers: ThreadPoolExecutor


def assemble(
    index: Index, spec: ServeSpec, *, budget_nbytes: int, num_workers: int, spill_folder: str | None
) -> Serving:
    """Put together what a request needs.

    Parameters
    ----------
    index, spec
        Where from and what.
    budget_nbytes
        Memory for decoded rows.
    num_workers
        Reader threads.
    spill_folder
        Where rows go that do not fit; the system's temporary folder when None.

    Raises
    ------
    ConfigError
        No window, or too small a budget.
    SourceError
        A store is gone.
    """
    config = index.config
    inputs, targets, constants = (list(config.names(role)) for role in ("input", "target", "static"))
    masks = _with_masks(index, spec)
    sources = load_sources(index, spec.dataset_ids)
    windows = load_windows(index, spec)
    if windows.total == 0:
        raise ConfigError(_no_window(spec.split, index))
    layout = lay_out(windows, spec.window.length)
    x_names, static_names = (_named(names, masks=masks) for names in (inputs, constants))
    row_nbytes = 4 * (len(x_names) + len(targets))
    resident = layout.num_rows * row_nbytes <= budget_nbytes
    round_steps = layout.num_rows if resident else budget_nbytes // (2 * row_nbytes)
    length = spec.window.length
    tiles = cut_tiles(windows, layout, length, tile_starts(layout, length, round_steps))
    _check_budget(int(tiles.num_rows.max()), round_steps, row_nbytes)

    ids = list(spec.dataset_ids)
    served = [
        np.isin(np.arange(s.num_basins), b) & s.in_split("train") for s, b in zip(sources, spec.basins, strict=True)
    ]
    y_moments = basin_moments(index, sources, targets)
    x_scaling = resolve_scaling(basin_moments(index, sources, inputs), served, inputs, spec.normalization, ids)
    y_scaling = resolve_scaling(y_moments, served, targets, spec.normalization, ids)
    statics = load_statics(index, sources, served, constants, spec.normalization, with_masks=masks)

    opened = [open_dataset(s) for s in sources]
    shape = layout.num_rows, len(x_names), len(targets)
    rows = rows_in_memory(*shape) if resident else rows_on_disk(*shape, spill_folder)
    readers = ThreadPoolExecutor(num_workers, thread_name_prefix="headrace-read")
    reader = GroupReader(
        datasets=opened,
        layout=layout,
        groups=plan_reads(opened, layout),
        x_scaling=x_scaling,
        y_scaling=y_scaling,
        rows=rows,
        with_masks=masks,
        executor=readers,
    )
    parts = tiles, layout, rows, reader, spec.window
    return Serving(
        x_names=x_names,
        static_names=static_names,
        y_names=targets,
        basin_ids=[s.basin_ids for s in sources],
        y_scaling=y_scaling,
        y_train_std=[_std_of(per, s.num_basins) for per, s in zip(y_moments, sources, strict=True)],
        tiles=tiles,
        column=slot_columns(opened, layout),
        num_windows=windows.total,
        round_steps=round_steps,
        resident=resident,
        spill_nbytes=rows.spill_nbytes,
        rounds=ResidentRounds(*parts) if resident else SpilledRounds(*parts, round_steps),
        shape=BatchShape(
            window=spec.window,
            num_x=len(x_names),
            num_y=len(targets),
            statics=torch.from_numpy(_static_of_slots(statics, layout, len(static_names))),
            layout=layout,
        ),
        reader=reader,
        readers=readers,
    )


def _with_masks(index: Index, spec: ServeSpec) -> bool:
    """Mask columns exist for all inputs as soon as one input of one data set asks for them."""
    variables = [v for d in spec.dataset_ids for v in index.config.variables_of(d, "input").values()]
    policies = {v.missing_policy or spec.missing.missing_policy for v in variables} | {spec.missing.missing_policy}
    return "fill_and_mask" in policies


def _std_of(moments: Sequence[Moments], num_basins: int) -> NDArray[np.float64]:
    return np.stack([m.std for m in moments], axis=1) if moments else np.zeros((num_basins, 0))


def _named(names: Sequence[str], *, masks: bool) -> list[str]:
    return [*names, *(f"{name}_missing" for name in names)] if masks else list(names)


def _static_of_slots(rows: Sequence[NDArray[np.float32]], layout: Layout, width: int) -> NDArray[np.float32]:
    out = np.empty((layout.num_slots, width), dtype=np.float32)
    for number, values in enumerate(rows):
        mine = layout.dataset == number
        out[mine] = values[layout.basin[mine]]
    return out


def _check_budget(needed: int, round_steps: int, row_nbytes: int) -> None:
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


def _no_window(split: str, index: Index) -> str:
    return describe(
        f"split {split} has no window",
        where=str(index.path),
        expected="at least one window of the given data sets and basins",
        got="none",
        fix="see why with: headrace inspect DIR dropped; then widen the period or shorten the window",
    )
