"""Tables of very many basins: fold, write, open, query, plan. No store is written: parts are made up.

Parts are what a scan of ``--basins`` × ``--steps`` with ``--variables`` variables would leave, with ``--holes`` gaps in
every basin. Each stage runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import zarr

import headrace
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config

QUERY = "SELECT variable, count(*) AS runs, sum(stop - start)::BIGINT AS observed FROM runs GROUP BY variable"


def main() -> None:
    """Run the stages in turn and print their seconds and peak memory."""
    from rows import append, machine  # not above: it loads PyTorch, which a stage's memory would then hold

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--basins", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=18_000, help="daily steps; 18,000 give about 10^9 windows")
    parser.add_argument("--variables", type=int, default=6, help="inputs, besides one target")
    parser.add_argument("--holes", type=int, default=3, help="gaps in each basin and variable")
    parser.add_argument("--work-dir", type=Path, help="where parts and index lie (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="append a result row to this file")
    args = parser.parse_args()
    settings = {name: getattr(args, name) for name in ("basins", "steps", "variables", "holes")}
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.work_dir or Path(temporary)
        row: dict[str, object] = {"benchmark": "index_scale", **settings}
        for stage in (make_parts, fold_and_write, open_and_query, plan_epoch):
            seconds, peak, found = apart(stage, folder, settings)
            print(f"{stage.__name__:16} {seconds:7.1f} s {peak / 1e9:6.2f} GB  {found}")
            row |= {f"{stage.__name__}_seconds": seconds, f"{stage.__name__}_peak_nbytes": peak}
        append(args.json, [row | machine()])


def apart(stage: Callable[..., str], folder: Path, settings: dict[str, int]) -> tuple[float, int, str]:
    """Run a stage in a new process; return its seconds, its peak memory and what it says."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (stage, folder, settings))


def _measured(stage: Callable[..., str], folder: Path, settings: dict[str, int]) -> tuple[float, int, str]:
    start = time.perf_counter()
    found = stage(folder, **settings)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, found


def make_parts(folder: Path, *, basins: int, steps: int, variables: int, holes: int) -> str:
    """Write metadata of a store without chunks, and the parts that a scan of it would have left."""
    from made_up_parts import Recorder  # not above: the loader's stages would hold what only the indexer needs

    from headrace.indexer import build as build_module

    config = _store(folder, basins, steps, variables)
    with mock.patch.object(build_module, "run_tasks", Recorder(holes)):
        headrace.build_index(config, folder / "index")
    # What was folded here is folded again, alone, by the next stage.
    (folder / "index" / "manifest.json").unlink()
    return f"{sum(p.stat().st_size for p in (folder / 'index' / 'parts').glob('*.parquet')) / 1e6:,.0f} MB of parts"


def fold_and_write(folder: Path, *, basins: int, steps: int, variables: int, holes: int) -> str:
    """Build again over finished parts: look at the store, fold, write every table."""
    report = headrace.build_index(_config(folder, steps, variables), folder / "index")
    assert report.scan.units_scanned == 0
    nbytes = sum(t.nbytes for t in report.manifest.tables.values())
    return f"{report.num_windows:,} windows, {nbytes / 1e6:,.0f} MB of tables"


def open_and_query(folder: Path, **_: int) -> str:
    """Open the index and count runs and windows."""
    with headrace.open_index(folder / "index") as index:
        runs = index.sql(QUERY)
        windows = index.sql("SELECT sum(num_windows)::BIGINT AS n FROM windows").column("n")[0].as_py()
    return f"{sum(runs.column('runs').to_pylist()):,} runs, {windows:,} windows"


def plan_epoch(folder: Path, **_: int) -> str:
    """Make a loader: windows, layout, tiles, and the read groups of all chunks."""
    with (
        headrace.open_index(folder / "index") as index,
        headrace.WindowLoader(index, "train", memory_budget="1GiB", cache_dir="off") as loader,
    ):
        return f"{len(loader):,} batches"


def _store(folder: Path, basins: int, steps: int, variables: int) -> Config:
    group = zarr.open_group(str(folder / "s.zarr"), mode="w", zarr_format=2)
    ids = group.create_array("basin", shape=(basins,), chunks=(basins,), dtype="str", fill_value="")
    ids[:] = np.array([f"{i:08d}" for i in range(basins)], dtype=object)
    times = group.create_array("time", shape=(steps,), chunks=(steps,), dtype="i8", fill_value=0)
    times[:] = np.arange(steps)
    times.attrs["units"] = "days since 1950-01-01"
    for name in _names(variables):
        array = group.create_array(name, shape=(basins, steps), chunks=(100, 4096), dtype="f4", fill_value=float("nan"))
        array.attrs["_ARRAY_DIMENSIONS"] = ["basin", "time"]
    return _config(folder, steps, variables)


def _names(variables: int) -> list[str]:
    return [*(f"input{i}" for i in range(variables)), "flow"]


def _config(folder: Path, steps: int, variables: int) -> Config:
    last = str(np.datetime64("1950-01-01") + (steps - 1))
    section = {
        "timeseries": str(folder / "s.zarr"),
        "t_range_train": ["1950-01-01", last],
        "variables": {"relevant": _names(variables)[:-1], "target": ["flow"]},
    }
    return parse_config({"datasets": {"many": section}})


if __name__ == "__main__":
    main()
