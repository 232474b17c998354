"""Run scan tasks on Dask: threads in this process, processes of this machine, or a cluster that exists already.

A task carries locators and the folder its part goes to; the worker writes the part itself and returns a few numbers.
Only a bounded number of tasks is in flight, so neither the scheduler nor the client grows with the store.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, as_completed

from headrace.indexer.parts import to_table, write_part
from headrace.indexer.progress import Progress, Showing
from headrace.indexer.read_unit import BadChunkPolicy, scan_unit
from headrace.indexer.units import ScanUnit
from headrace.schemas.errors import ConfigError, HeadraceError, SourceError, describe

MAX_IN_FLIGHT = 2000
TASKS_PER_THREAD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Where tasks run; at most one of the fields is set.

    Parameters
    ----------
    processes
        Number of local processes with one thread each; None for threads in this process.
    scheduler
        Address of a running scheduler.
    scheduler_file
        File that names one.
    """

    processes: int | None = None
    scheduler: str | None = None
    scheduler_file: str | None = None

    def __post_init__(self) -> None:
        """Refuse two answers to one question."""
        given = {"--workers": self.processes, "--scheduler": self.scheduler, "--scheduler-file": self.scheduler_file}
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise ConfigError(
                describe(
                    "two ways to run the scan",
                    where=", ".join(named),
                    expected="one of them",
                    got="both",
                    fix="leave one out",
                )
            )
        if self.processes is not None and self.processes < 1:
            raise ConfigError(
                describe(
                    "no workers",
                    where="--workers",
                    expected="1 or more",
                    got=str(self.processes),
                    fix="give a number, or leave it out for threads",
                )
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Some units and where their part goes."""

    units: tuple[ScanUnit, ...]
    folder: str
    policy: BadChunkPolicy

    @property
    def nbytes(self) -> int:
        """Raw bytes once decoded."""
        return sum(u.nbytes for u in self.units)


def run_task(task: ScanTask) -> tuple[int, int]:
    """Scan the units of a task and write their part; return the number of units and their decoded bytes."""
    results = [scan_unit(unit, task.policy) for unit in task.units]
    write_part(Path(task.folder), to_table(results))
    return len(task.units), task.nbytes


def run_tasks(tasks: Sequence[ScanTask], workers: Workers, progress: Progress, *, num_kept: int) -> None:
    """Run all tasks; returns when every part is written.

    Raises
    ------
    HeadraceError
        The first task that failed; tasks under way are cancelled, parts written so far stay.
    """
    num_units = num_kept + sum(len(t.units) for t in tasks)
    done = num_kept
    if not tasks:
        return
    progress.start(num_units=num_units, num_kept=num_kept, nbytes=sum(t.nbytes for t in tasks))
    with Showing(progress):
        try:
            with _client(workers) as client:
                for units, nbytes in _results(client, tasks):
                    done += units
                    progress.advance(num_units=units, nbytes=nbytes)
        except KeyboardInterrupt:
            progress.finish()
            progress.note(f"stopped; {done} of {num_units} units are kept: run the same command again to go on")
            raise


def _results(client: Client, tasks: Sequence[ScanTask]) -> Iterator[tuple[int, int]]:
    waiting = iter(tasks)
    num_threads = sum(client.nthreads().values()) or 1  # type: ignore[no-untyped-call]
    in_flight = min(MAX_IN_FLIGHT, max(16, TASKS_PER_THREAD * num_threads))
    running: dict[Any, ScanTask] = {}

    def submit(task: ScanTask) -> Any:
        future = client.submit(run_task, task, pure=False)
        running[future.key] = task
        return future

    finished = as_completed([submit(task) for task in islice(waiting, in_flight)])  # type: ignore[no-untyped-call]
    for future in finished:
        task = running.pop(future.key)
        error = future.exception()
        if error is not None:
            raise _explained(error, task) from error
        yield future.result()
        finished.update([submit(following) for following in islice(waiting, 1)])  # type: ignore[no-untyped-call]


def _explained(error: BaseException, task: ScanTask) -> BaseException:
    """Return an error of ours as it is, and any other with the place it came from."""
    if isinstance(error, HeadraceError | KeyboardInterrupt):
        return type(error)(*error.args)
    unit = task.units[0]
    return SourceError(
        describe(
            "scan task failed",
            where=f"{unit.uri}, array {unit.array}, steps {unit.steps[0]} to {task.units[-1].steps[1]}",
            expected="a part file",
            got=f"{type(error).__name__}: {error}",
            fix="see the cause below; run the same command again to scan only what is left",
        )
    )


@contextmanager
def _client(workers: Workers) -> Iterator[Client]:
    """Connect to where tasks run; what was started here is closed on the way out."""
    quiet = {"distributed.admin.log-format": "%(name)s - %(message)s", "distributed.logging.distributed": "warning"}
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(quiet))
        logging.getLogger("distributed").setLevel(logging.ERROR)
        if workers.scheduler is not None or workers.scheduler_file is not None:
            yield stack.enter_context(_existing(workers))
            return
        local = workers.processes is None
        cluster = stack.enter_context(
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=1 if local else workers.processes,
                threads_per_worker=(os.cpu_count() or 1) if local else 1,
                processes=not local,
                dashboard_address=None,
                silence_logs=logging.ERROR,
                memory_limit=0,
            )
        )
        yield stack.enter_context(Client(cluster))  # type: ignore[no-untyped-call]


def _existing(workers: Workers) -> Client:
    where = workers.scheduler or workers.scheduler_file
    try:
        if workers.scheduler_file is not None:
            return Client(scheduler_file=workers.scheduler_file, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
        return Client(workers.scheduler, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ConfigError(
            describe(
                "scheduler cannot be reached",
                where=str(where),
                expected="the address of a running Dask scheduler",
                got=f"{type(error).__name__}: {error}",
                fix="check the address and that the scheduler runs",
            )
        ) from error
