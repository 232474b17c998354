"""One epoch as an iterator of batches: threads make them in jobs of a few, and they are handed out in order.

Thread t of n does the jobs t, t + n, t + 2n, … and may be two ahead of the consumer. Errors in a thread surface in
the consumer with their cause. Closing joins every thread.
"""

import queue
import threading
from collections.abc import Iterator, Sequence

import torch

from headrace.compiled import compilations
from headrace.loader.batch import Batch
from headrace.loader.buffered_rounds import RoundClosedError
from headrace.loader.gather import Gatherer
from headrace.loader.rounds import RoundQueue
from headrace.schemas.errors import ReadError, describe

AHEAD = 2
"""Jobs that a thread may have done, or be doing, before the consumer takes them."""
_PATIENCE_SECONDS = 0.5
"""How often a thread that waits for the consumer looks whether the interpreter is about to end."""
_OVER = "this iteration is over: the loader was closed or iterated again"


class StreamClosedError(RuntimeError):
    """The epoch was closed while its consumer waited for a batch."""


class EpochStream:
    """Iterate over the batches of one rank in one epoch.

    Parameters
    ----------
    gatherer
        Makes the batches.
    rounds
        Rounds being prepared; closed with the stream.
    num_threads
        Gather threads.
    timeout
        Seconds to wait for a batch before giving up; None waits for ever. Compiling does not count.
    """

    def __init__(self, gatherer: Gatherer, rounds: RoundQueue, *, num_threads: int, timeout: float | None) -> None:
        self._gatherer, self._rounds, self._timeout = gatherer, rounds, timeout
        num_threads = min(num_threads, max(gatherer.num_jobs, 1))
        self._closed = threading.Event()
        self._made: list[queue.SimpleQueue[Sequence[Batch] | BaseException]] = []
        self._wanted: list[queue.SimpleQueue[bool]] = []
        self._threads: list[threading.Thread] = []
        ready: queue.SimpleQueue[None] = queue.SimpleQueue()
        intra_op = torch.get_num_threads()
        for number in range(num_threads):
            made: queue.SimpleQueue[Sequence[Batch] | BaseException] = queue.SimpleQueue()
            wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
            for _ in range(AHEAD):
                wanted.put(True)
            share = range(number, gatherer.num_jobs, num_threads)
            self._made.append(made)
            self._wanted.append(wanted)
            self._threads.append(
                threading.Thread(
                    target=_work,
                    args=(gatherer, share, wanted, made, ready, self._closed),
                    name=f"headrace-gather_{number}",
                )
            )
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            ready.get()
        # A thread that sets its number of intra-op threads also sets that of threads started later: take it back.
        torch.set_num_threads(intra_op)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches of the epoch."""
        for number in range(self._gatherer.num_jobs):
            mine = number % len(self._made)
            batches = self._next(self._made[mine])
            if isinstance(batches, BaseException):
                raise batches
            self._wanted[mine].put(True)
            yield from batches

    def _next(self, made: "queue.SimpleQueue[Sequence[Batch] | BaseException]") -> Sequence[Batch] | BaseException:
        while True:
            before = compilations()
            try:
                return made.get(timeout=self._timeout)
            except queue.Empty:
                begun, ended = now = compilations()
                if now != before or begun != ended:
                    continue  # the first batches of a machine
                raise ReadError(
                    describe(
                        "no batch in time",
                        where="WindowLoader",
                        expected=f"a batch within {self._timeout} s",
                        got="none",
                        fix="raise timeout, or look at the storage",
                    )
                ) from None

    def close(self) -> None:
        """Stop and join all threads."""
        self._closed.set()
        for wanted in self._wanted:
            wanted.put(False)
        self._rounds.close()
        for thread in self._threads:
            if thread is not threading.current_thread():  # garbage collection may run in any thread
                thread.join()


def _work(
    gatherer: Gatherer,
    share: range,
    wanted: "queue.SimpleQueue[bool]",
    made: "queue.SimpleQueue[Sequence[Batch] | BaseException]",
    ready: "queue.SimpleQueue[None]",
    closed: threading.Event,
) -> None:
    """Make batches as they are wanted; what goes wrong is handed over in the place of a batch."""
    torch.get_num_threads()  # a thread that asks first keeps what it sets; else it takes the process's at its next work
    torch.set_num_threads(1)
    ready.put(None)
    try:
        for places in gatherer.locate(share):
            if not _wait_until_wanted(wanted) or closed.is_set():
                made.put(StreamClosedError(_OVER))
                return
            made.put(gatherer.gather(places))
    except RoundClosedError:
        made.put(StreamClosedError(_OVER))
    except BaseException as error:  # noqa: BLE001 - raised again in the consumer
        made.put(error)


def _wait_until_wanted(wanted: "queue.SimpleQueue[bool]") -> bool:
    """Return whether another batch is wanted; not after closing, nor when the interpreter ends meanwhile."""
    while True:
        try:
            return wanted.get(timeout=_PATIENCE_SECONDS)
        except queue.Empty:
            if not threading.main_thread().is_alive():
                return False
