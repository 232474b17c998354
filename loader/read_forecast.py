"""What epochs under small memory budgets would read, from the tables alone: no store is opened."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.loader.amplification import reads_per_chunk
from headrace.loader.catalog import Index
from headrace.loader.content import has_masks, some_windows
from headrace.loader.layout import lay_out
from headrace.loader.read_plan import slot_columns
from headrace.loader.round_size import tiles_of_rounds
from headrace.loader.schedule import plan_epoch
from headrace.loader.sources import DatasetSource, load_sources
from headrace.loader.spec import resolve_spec
from headrace.schemas.grid import AxisGrid, ChunkGrid

_GRIDS = """SELECT variable, max(basin_stop - basin_start) AS basins, max(basin_stop) AS last_basin,
       max(time_stop - time_start) AS steps, max(time_stop) AS last_step
FROM chunks WHERE dataset_id = $dataset_id AND list_contains($variables, variable)
GROUP BY variable ORDER BY variable"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadForecast:
    """One budget.

    Parameters
    ----------
    budget_nbytes
        Memory for decoded rows.
    num_rounds
        Rounds of an epoch.
    reads_per_chunk
        Chunk reads by chunks needed, where no row is kept between rounds (``cache_dir: off``).
    """

    budget_nbytes: int
    num_rounds: int
    reads_per_chunk: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitForecast:
    """A split: bytes of its decoded rows, and what budgets below that cost."""

    decoded_nbytes: int
    budgets: tuple[ReadForecast, ...]


@dataclass(frozen=True, slots=True)
class _Array:
    grid: ChunkGrid


@dataclass(frozen=True, slots=True)
class _Indexed:
    source: DatasetSource
    arrays: tuple[_Array, ...]


def forecast_reads(
    index: Index, split: str, shares: Sequence[float], *, num_pools: int, datasets: Sequence[str] | None = None
) -> SplitForecast:
    """Plan an epoch for each of several budgets and count its reads.

    Parameters
    ----------
    index
        The index, with its own window and policies.
    split
        train, valid or test.
    shares
        Budgets as shares of the split's decoded rows; those that hold less than one window a pool are left out.
    num_pools
        Pools that share a budget: the one being served, and those read ahead.
    datasets
        Data sets to serve; None takes all.

    Raises
    ------
    ConfigError
        The split has no window, or the data sets cannot be served together.
    """
    spec = resolve_spec(index, split=split, datasets=datasets)
    windows, length = some_windows(index, spec), spec.window.length
    layout = lay_out(windows, length)
    num_x, num_y = (len(list(index.config.names(role))) for role in ("input", "target"))
    row_nbytes = 4 * (num_x * (2 if has_masks(index, spec) else 1) + num_y)
    read_from = [_Indexed(source, _arrays(index, source)) for source in load_sources(index, spec.dataset_ids)]
    column = slot_columns(read_from, layout)
    found = []
    for share in shares:
        round_steps = int(share * layout.num_rows) // num_pools
        if round_steps < length:
            continue
        tiles = tiles_of_rounds(windows, layout, length, round_steps)
        plan = plan_epoch(tiles, column, seed=0, epoch=0, round_steps=round_steps, shuffle=True, resident=False)
        found.append(
            ReadForecast(
                budget_nbytes=round_steps * num_pools * row_nbytes,
                num_rounds=plan.num_rounds,
                reads_per_chunk=reads_per_chunk(plan, tiles, layout, read_from),
            )
        )
    return SplitForecast(decoded_nbytes=layout.num_rows * row_nbytes, budgets=tuple(found))


def _arrays(index: Index, source: DatasetSource) -> tuple[_Array, ...]:
    names = [variable.name for variable in source.present()]
    rows = index.sql(_GRIDS, dataset_id=source.dataset_id, variables=names).to_pylist()
    return tuple(
        _Array(
            ChunkGrid(
                basin=AxisGrid(extent=row["last_basin"], chunk_size=row["basins"]),
                time=AxisGrid(extent=row["last_step"], chunk_size=row["steps"]),
                time_first=False,
                has_time=True,
            )
        )
        for row in rows
    )
