"""Run scan tasks on Dask with a bounded number in flight, so that neither scheduler nor client grows with the store.

A task carries locators and the folder its part goes to; the worker writes the part itself and returns a few numbers.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from distributed import Client, as_completed

from headrace.indexer.cluster import Workers, connected
from headrace.indexer.memory import gate
from headrace.indexer.parts import to_table, write_part
from headrace.indexer.progress import Progress, Showing
from headrace.indexer.read_unit import fetch_unit, scan_unit
from headrace.indexer.units import ScanUnit
from headrace.objects import is_remote, open_folder
from headrace.objects.counts import Share, add_shares, request_counts, share_since
from headrace.objects.request_group import part_of, request_group
from headrace.objects.request_threads import give_up_soon
from headrace.schemas.config import BadChunkPolicy
from headrace.schemas.errors import HeadraceError, SourceError, describe
from headrace.schemas.storage_config import StorageConfig
from headrace.scratch import Scratch

MAX_IN_FLIGHT = 2000
TASKS_PER_THREAD = 4
REMOTE_TASKS_PER_CORE = 2
"""Threads for each core where objects come from a bucket: one computes while another waits."""
_scratch = Scratch()
"""Of this process's tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Some units and where their part goes.

    Parameters
    ----------
    units
        What to scan.
    folder
        Folder or ``s3://`` URL of the parts.
    policy
        What a chunk that cannot be decoded means.
    storage
        How stores and folder are reached if they are in buckets; the worker finds credentials for itself.
    """

    units: tuple[ScanUnit, ...]
    folder: str
    policy: BadChunkPolicy
    storage: StorageConfig

    @property
    def nbytes(self) -> int:
        """Raw bytes of all units, decoded."""
        return sum(u.nbytes for u in self.units)

    @property
    def peak_nbytes(self) -> int:
        """Memory the task takes at most, results aside: one unit's chunks as stored, decoded, and the codec's copy.

        From a bucket the chunks of all its units are fetched at once; they hardly ever take more than decoded.
        """
        fetched = sum(u.nbytes for u in self.units if is_remote(u.uri))
        return max(2 * u.nbytes + u.stored_nbytes for u in self.units) + fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task that is done: its units, their decoded bytes, and what its process asked of object stores."""

    num_units: int
    nbytes: int
    share: Share


def run_task(task: ScanTask) -> Done:
    """Scan the units of a task and write their part."""
    before = request_counts()
    fetches = [fetch_unit(unit, task.storage) for unit in task.units]
    try:
        with _scratch.lease() as lease:
            pairs = zip(task.units, fetches, strict=True)
            results = [scan_unit(unit, task.policy, task.storage, fetch, lease) for unit, fetch in pairs]
    finally:
        for fetch in fetches:
            fetch.drop()
    folder = open_folder(task.folder, task.storage) if is_remote(task.folder) else Path(task.folder)
    write_part(folder, to_table(results))
    return Done(num_units=len(task.units), nbytes=task.nbytes, share=share_since(before))


def _outcome(task: ScanTask) -> Done | HeadraceError:
    """Run a task on a worker; an error of ours comes back as a value, so that Dask logs no traceback of its own."""
    try:
        with gate.entered(task.peak_nbytes), part_of(task.folder):
            return run_task(task)
    except HeadraceError as error:
        return error


def run_tasks(tasks: Sequence[ScanTask], workers: Workers, progress: Progress, *, num_kept: int) -> None:
    """Run all tasks; returns when every part is written. Requests of other processes are added to this one's counts.

    Raises
    ------
    HeadraceError
        The first task that failed. Tasks under way are cancelled, parts written so far stay.
    """
    if not tasks:
        return
    places = {tasks[0].folder, *(u.uri for t in tasks for u in t.units)}
    paths = sorted(place for place in places if not is_remote(place))
    with ExitStack() as stack:
        requests = stack.enter_context(request_group(tasks[0].folder))
        client = stack.enter_context(
            connected(
                workers,
                task_nbytes=max(t.peak_nbytes for t in tasks),
                paths=paths,
                per_core=REMOTE_TASKS_PER_CORE if any(map(is_remote, places)) else 1,
            )
        )
        stack.enter_context(Showing(progress))  # only now it is known that there is somebody to scan
        num_units = num_kept + sum(len(t.units) for t in tasks)
        progress.start(num_units=num_units, num_kept=num_kept, nbytes=sum(t.nbytes for t in tasks))
        shares: list[Share] = []
        stack.callback(add_shares, shares)
        try:
            for done in _results(client, tasks):
                shares.append(done.share)
                progress.advance(num_units=done.num_units, nbytes=done.nbytes)
        except BaseException:
            give_up_soon(requests.end())  # threads of the tasks under way would wait for a silent server
            raise


def _results(client: Client, tasks: Sequence[ScanTask]) -> Iterator[Done]:
    waiting = iter(tasks)
    num_threads = sum(client.nthreads().values()) or 1  # type: ignore[no-untyped-call]
    in_flight = min(MAX_IN_FLIGHT, max(16, TASKS_PER_THREAD * num_threads))
    running: dict[Any, ScanTask] = {}

    def submit(num_tasks: int) -> list[Any]:
        futures = []
        for task in islice(waiting, num_tasks):
            future = client.submit(_outcome, task, pure=False)
            running[future.key] = task
            futures.append(future)
        return futures

    finished = as_completed(submit(in_flight), loop=client.loop)  # type: ignore[no-untyped-call]
    for future in finished:
        task = running.pop(future.key)
        unexpected = future.exception()
        if unexpected is not None:
            raise _explained(unexpected, task) from unexpected
        outcome: Done | HeadraceError = future.result()
        if isinstance(outcome, HeadraceError):
            raise type(outcome)(*outcome.args) from outcome
        yield outcome
        finished.update(submit(1))  # type: ignore[no-untyped-call]


def _explained(error: BaseException, task: ScanTask) -> HeadraceError:
    """Return an error that says where a task was when something unforeseen happened."""
    first, last = task.units[0], task.units[-1]
    return SourceError(
        describe(
            "scan task failed",
            where=f"{first.uri}, from array {first.array}, step {first.steps[0]} to {last.array}, step {last.steps[1]}",
            expected="a part file",
            got=f"{type(error).__name__}: {error}",
            fix="mend the cause and run the same command again: what is scanned so far is kept",
        )
    )
