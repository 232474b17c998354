"""``build_index``: configuration in, index out. The story of this package.

Look at the stores, cut the work into units, keep what an earlier build left, scan the rest on Dask, fold the parts into
tables, write them with the manifest last.
"""

import difflib
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from headrace.index_place import IndexPath, index_path
from headrace.indexer.cluster import Workers
from headrace.indexer.distribute import ScanTask, run_tasks
from headrace.indexer.fold import fold
from headrace.indexer.inventory import take_inventory
from headrace.indexer.parts import finished_units, part_name
from headrace.indexer.progress import Progress, Silent
from headrace.indexer.report import BuildReport, ScanReport, make_report
from headrace.indexer.results import ScanResults
from headrace.indexer.rows import all_tables
from headrace.indexer.site import Site, check_place, claimed_site
from headrace.indexer.units import ScanPlan, plan_scan, refuse_absent
from headrace.objects.at_once import AFTER_STOP_SECONDS, within
from headrace.objects.counts import request_counts
from headrace.old_objects import old_objects_spared
from headrace.schemas.config import Config
from headrace.schemas.errors import ConfigError, StorageError, describe
from headrace.schemas.views import views_sql


@old_objects_spared()
def build_index(
    config: Config,
    out: Path | str,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    scheduler_file: str | None = None,
    fresh: bool = False,
    datasets: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Build an index, or bring one up to date.

    Parameters
    ----------
    config
        What to index.
    out
        Folder or ``s3://`` URL of the index: new, empty, or an earlier index, of which whatever still holds is kept.
        A URL is reached as the section ``storage`` says.
    workers
        Number of local worker processes; None scans with threads in this process.
    scheduler, scheduler_file
        A running Dask scheduler, by address or by file, instead of local workers. Its workers must see the stores and
        ``out`` under the same paths.
    fresh
        Forget what an earlier build left.
    datasets
        Index only these data sets of the configuration.
    progress
        Where to report; None reports nothing.

    Returns
    -------
    BuildReport
        Windows, missing shares, warnings and speed.

    Raises
    ------
    ConfigError, SourceError
        One error that lists everything wrong with the configuration or the stores; nothing is written then.
    ReadError
        A chunk cannot be read; what is scanned so far is kept for the next run.
    KeyboardInterrupt
        After Ctrl-C, when the progress has been told how many units are kept.
    """
    out = _absolute(out)
    progress = Silent() if progress is None else progress
    where = Workers(processes=workers, scheduler=scheduler, scheduler_file=scheduler_file)
    config = config if datasets is None else _only(config, datasets)
    before = request_counts()
    check_place(out, config.storage)
    inventory = take_inventory(config)
    plan = plan_scan(inventory)
    refuse_absent(plan, config.missing.absent_chunk)
    with claimed_site(out, config.storage) as site:
        if fresh:
            site.clear()
        accept = config.missing.on_bad_chunk == "missing"
        site.collect()
        found = finished_units(site.parts, accept_errors=accept)
        tasks, num_kept = _remaining(plan, found, site, config)
        written = [part_name(u.key for u in t.units) for t in tasks]
        began = time.perf_counter()
        try:
            run_tasks(tasks, where, progress, num_kept=num_kept)
            if tasks:
                site.collect(written)
                found = finished_units(site.parts, accept_errors=accept)
        except KeyboardInterrupt:
            # Whole parts, whether or not their task has told of them.
            with suppress(StorageError, TimeoutError):
                within(partial(site.collect, written), AFTER_STOP_SECONDS)
            found = finished_units(site.parts, accept_errors=accept)
            progress.note(_stopped(plan, found))
            raise
        seconds = time.perf_counter() - began
        bundles = [[unit.key for unit in bundle] for bundle in plan.bundles]
        names = site.settle(bundles, found)
        folded = fold(inventory, plan, ScanResults(site.parts, names, bundles))
        views = views_sql({dataset.dataset_id: dataset.axis for dataset in inventory.datasets})
        manifest = site.publish(all_tables(folded), views, config=config, parts=names)
        site.sweep(set(names))
    nbytes = sum(t.nbytes for t in tasks)
    scan = ScanReport(
        units_scanned=plan.num_units - num_kept,
        units_kept=num_kept,
        nbytes=nbytes,
        seconds=seconds,
        requests=request_counts() - before,
    )
    return make_report(out=str(out), manifest=manifest, inventory=inventory, plan=plan, folded=folded, scan=scan)


def _absolute(out: Path | str) -> IndexPath:
    place = index_path(out, where="--out")
    return place.absolute() if isinstance(place, Path) else place


def _remaining(plan: ScanPlan, found: dict[str, str], site: Site, config: Config) -> tuple[list[ScanTask], int]:
    """Return a task per bundle with its unscanned units, and the number of units that need no scan."""
    tasks = []
    for bundle in plan.bundles:
        units = tuple(u for u in bundle if u.key not in found)
        if units:
            policy = config.missing.on_bad_chunk
            tasks.append(ScanTask(units=units, folder=site.target, policy=policy, storage=config.storage))
    return tasks, plan.num_units - sum(len(t.units) for t in tasks)


def _stopped(plan: ScanPlan, found: dict[str, str]) -> str:
    kept = sum(u.key in found for bundle in plan.bundles for u in bundle)
    return (
        f"stopped: {kept} of {plan.num_units} units are kept; run the same command again to go on"
        if kept
        else f"stopped: none of {plan.num_units} units was scanned yet; run the same command again to start over"
    )


def _only(config: Config, datasets: Sequence[str]) -> Config:
    unknown = [name for name in datasets if name not in config.datasets]
    if unknown or not datasets:
        near = difflib.get_close_matches(unknown[0], config.datasets, n=1) if unknown else []
        raise ConfigError(
            describe(
                "data set is not configured",
                where="--datasets",
                expected=f"some of {', '.join(config.datasets)}",
                got=", ".join(unknown) or "none",
                fix=f"did you mean {near[0]}?" if near else "correct the names",
            )
        )
    return config.model_copy(update={"datasets": {k: v for k, v in config.datasets.items() if k in datasets}})
