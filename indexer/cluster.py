"""Where tasks run: threads of this process, processes of this machine, or a Dask cluster that exists already."""

import errno
import logging
import os
from asyncio import AbstractEventLoop
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import psutil
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.registry import get_backend
from distributed.system import MEMORY_LIMIT

from headrace.indexer import worker_setup
from headrace.indexer.memory import WorkerReport, check_reports, report
from headrace.schemas.errors import ConfigError, SourceError, describe

MEMORY_SHARE = 0.7
"""Share of the free memory that tasks may take."""
_QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}
"""Dask would look at the stack of every thread a hundred times a second, for a page that is not served here, and fifty
times at each of its loops, to complain of late ones."""
_CONNECT_SECONDS = 10
_WORKER_SECONDS = 120


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
                    "more than one way to run the scan",
                    where=", ".join(named),
                    expected="one of them, or none for threads in this process",
                    got=f"{len(named)}",
                    fix="leave out all but one",
                )
            )
        if self.processes is not None and self.processes < 1:
            raise ConfigError(
                describe(
                    "number of workers is too small",
                    where="--workers",
                    expected="1 or more",
                    got=str(self.processes),
                    fix="give a number, or leave it out for threads in this process",
                )
            )

    @property
    def local(self) -> bool:
        """Whether this machine does the work."""
        return self.scheduler is None and self.scheduler_file is None


def slots_for(workers: Workers, *, task_nbytes: int, free_nbytes: int, per_core: int = 1) -> int:
    """Return how many tasks this machine may run at once, given the memory that one needs.

    Raises
    ------
    SourceError
        Not even one fits.
    """
    wanted = CPU_COUNT * per_core if workers.processes is None else workers.processes
    allowed = int(MEMORY_SHARE * free_nbytes) // max(task_nbytes, 1)
    if allowed < 1:
        raise SourceError(
            describe(
                "largest chunk does not fit into memory",
                where="this machine",
                expected=f"{task_nbytes:,} bytes for one task (its chunks as stored, decoded, and once more)",
                got=f"{free_nbytes:,} bytes free, of which {MEMORY_SHARE:.0%} may be used",
                fix="use a machine with more memory, or write the store with smaller chunks",
            )
        )
    return min(wanted, allowed)


@contextmanager
def connected(workers: Workers, *, task_nbytes: int, paths: Sequence[str] = (), per_core: int = 1) -> Iterator[Client]:
    """Connect to where tasks run; what is started here is closed on the way out.

    Memory limits of local workers are off: a task's memory is known before it starts, and a paused worker would only
    wait for memory that nobody frees. Workers of a running cluster keep theirs, and say how much they have.

    Parameters
    ----------
    workers
        Where.
    task_nbytes
        Memory of the largest task.
    paths
        Folders that every worker of a running cluster must see.
    per_core
        Threads of this process for each of its cores: more than one where tasks wait for a network.
    """
    with ExitStack() as stack:
        _silence(stack)
        if not workers.local:
            client = stack.enter_context(_existing(workers))
            _wait_for_worker(client, workers)
            check_reports(_reports(client, workers, paths), task_nbytes=task_nbytes)
            yield client
            return
        free_nbytes = min(psutil.virtual_memory().available, MEMORY_LIMIT)  # containers and batch jobs have a limit
        slots = slots_for(workers, task_nbytes=task_nbytes, free_nbytes=free_nbytes, per_core=per_core)
        threads = workers.processes is None
        stack.enter_context(dask.config.set(_QUIET))
        cluster = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=1 if threads else slots,
            threads_per_worker=slots if threads else 1,
            processes=not threads,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
            memory_limit=0,
            preload=[] if threads else [worker_setup.__name__],
        )
        stack.enter_context(cluster)
        yield stack.enter_context(_client(cluster))


def _silence(stack: ExitStack) -> None:
    """Keep Dask's log lines off the terminal: what matters comes back as an error."""
    for name, level in (("distributed", logging.ERROR), ("tornado.application", logging.CRITICAL)):
        logger = logging.getLogger(name)
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(level)


def _existing(workers: Workers) -> Client:
    where = workers.scheduler or workers.scheduler_file or ""
    try:
        if workers.scheduler_file is None:
            _check_address(where)
            return _client(where)
        if not Path(where).is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))  # Dask itself would wait for ever
        return _client(None, scheduler_file=where)
    except (OSError, ValueError) as error:
        raise ConfigError(
            describe(
                "scheduler cannot be reached",
                where=where,
                expected="a running Dask scheduler",
                got=f"{type(error).__name__}: {error}",
                fix="check the address and that the scheduler runs: dask scheduler --scheduler-file FILE",
            )
        ) from error


def _check_address(address: str) -> None:
    """Raise ValueError for what is no address; Dask's client would be half made, and complain of that much later."""
    scheme, place = parse_address(address)
    get_backend(scheme)
    if scheme != "inproc":
        parse_host_port(place)


def _wait_for_worker(client: Client, workers: Workers) -> None:
    """Give a batch system time to start workers, but not for ever."""
    try:
        client.wait_for_workers(1, timeout=_WORKER_SECONDS)
    except TimeoutError as error:
        raise ConfigError(
            describe(
                "scheduler has no workers",
                where=workers.scheduler or workers.scheduler_file or "",
                expected=f"a worker within {_WORKER_SECONDS} seconds",
                got="none",
                fix="start workers: dask worker ADDRESS",
            )
        ) from error


def _reports(client: Client, workers: Workers, paths: Sequence[str]) -> dict[str, WorkerReport]:
    """Ask every worker what it has."""
    try:
        return dict(client.run(report, list(paths)))
    except Exception as error:  # whatever keeps a worker from importing Headrace
        raise ConfigError(
            describe(
                "workers cannot run Headrace",
                where=workers.scheduler or workers.scheduler_file or "",
                expected="the same version of Headrace and its libraries on every worker",
                got=f"{type(error).__name__}: {error}",
                fix="install Headrace into the environment that workers start from",
            )
        ) from error


def _client(address: LocalCluster | str | None, *, scheduler_file: str | None = None) -> Client:
    settings = {} if scheduler_file is None else {"scheduler_file": scheduler_file}
    client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, **settings)  # type: ignore[no-untyped-call]
    loop: Any = client.loop
    loop.asyncio_loop.set_exception_handler(_complain)
    return client


def _complain(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong in Dask's loop, but not that nobody heard of the end of a wait.

    Dask's senders wait for messages with a time limit. A limit that is reached in the last turn of a loop is an error
    that nobody takes any more; it would be told on the terminal whenever the garbage collector finds it.
    """
    lost = "future" in context and isinstance(context.get("exception"), TimeoutError)
    if not lost:
        loop.default_exception_handler(context)
