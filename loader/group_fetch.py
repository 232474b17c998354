"""Objects of read groups, asked for before they are decoded: further pieces of a group, and first ones of the next.

Without the latter every reader would wait for a whole answer between two groups, which for chunks of many megabytes,
one to a group, is as long as decoding takes. On a disk nothing is fetched ahead.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from functools import cached_property
from itertools import islice

from headrace.loader.raw import RawReader
from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.objects.fetch import Fetch
from headrace.store import StoredArray


class GroupFetch:
    """A group that is to be filled: its pieces, and the objects of those that have been asked for.

    Parameters
    ----------
    opened
        Its data set.
    cut
        Returns its pieces; called when it is this group's turn, for there may be many.
    """

    def __init__(self, opened: OpenDataset, cut: Callable[[], list[ReadGroup]]) -> None:
        self.opened, self._cut = opened, cut
        self.asked: deque[list[Fetch]] = deque()
        self.num_asked = 0

    @cached_property
    def pieces(self) -> list[ReadGroup]:
        """What is decoded together, in turn."""
        return self._cut()

    def nbytes(self, number: int) -> int:
        """Return the decoded bytes of a piece."""
        piece = self.pieces[number]
        return sum(chunk_nbytes(self.opened.arrays[v], piece) for v in piece.variables)


class GroupFetches:
    """Ask for objects of groups in the order in which these will be filled; used by several readers at once.

    Parameters
    ----------
    raw
        Begins to fetch.
    num_readers
        Groups filled at the same time; of as many more the first piece is asked for.
    piece_nbytes
        Decoded bytes of the pieces that one reader has asked for at most, twice over; two pieces in any case.
    most_nbytes
        Decoded bytes of the first pieces of groups that are not being filled yet, at most; one in any case.
    """

    def __init__(self, raw: RawReader, *, num_readers: int, piece_nbytes: int, most_nbytes: int) -> None:
        self._raw, self._num_readers = raw, num_readers
        self._piece_nbytes, self._most_nbytes = piece_nbytes, most_nbytes
        self._lock = threading.Lock()
        self._expected: deque[GroupFetch] = deque()
        self._under_way: set[Fetch] = set()
        self._given_up = False

    def expect(self, group: GroupFetch) -> GroupFetch:
        """Say that a group will be filled after those that were named before."""
        with self._lock:
            self._expected.append(group)
        return group

    def forget(self, group: GroupFetch) -> None:
        """Say that a group will not be filled after all, if that has not begun."""
        with self._lock:
            if group in self._expected:
                self._expected.remove(group)
        for fetches in group.asked:
            self.drop(fetches)

    def pieces_of(self, group: GroupFetch) -> Generator[tuple[ReadGroup, list[Fetch]]]:
        """Yield the pieces of a group with their objects, variable by variable, which the caller drops."""
        with self._lock:
            self._expected.remove(group)
        try:
            for number, piece in enumerate(group.pieces):
                ahead = max(2 * self._piece_nbytes // group.nbytes(number), 2)
                self._ask(group, number + ahead)
                if number == 0:
                    self._ask_for_the_next()
                yield piece, group.asked.popleft()
        finally:
            for fetches in group.asked:
                self.drop(fetches)

    def drop(self, fetches: Iterable[Fetch]) -> None:
        """Let go of objects."""
        for fetch in fetches:
            self._under_way.discard(fetch)
            fetch.drop()

    def give_up(self) -> None:
        """Fail whatever waits for a bucket in other threads, now and later; what is on a disk is read on."""
        self._given_up = True
        for fetch in list(self._under_way):
            fetch.give_up()

    def _ask(self, group: GroupFetch, num_pieces: int) -> None:
        for piece in group.pieces[group.num_asked : num_pieces]:
            found = [self._raw.fetch(group.opened, v, piece) for v in piece.variables]
            group.asked.append(found)
            group.num_asked += 1
            self._under_way.update(found)
            if self._given_up:
                for fetch in found:
                    fetch.give_up()

    def _ask_for_the_next(self) -> None:
        """Ask for the first pieces of groups that come next, as long as memory allows."""
        with self._lock:
            nbytes = 0
            for group in islice(self._expected, self._num_readers):
                if not group.pieces:
                    continue
                nbytes += group.nbytes(0)
                if nbytes > max(self._most_nbytes, group.nbytes(0)):
                    return
                if group.num_asked == 0:
                    self._ask(group, 1)


def chunk_nbytes(array: StoredArray, piece: ReadGroup) -> int:
    """Return the decoded bytes of an array's chunks of a piece; those at an edge are stored whole."""
    num_chunks = len(array.grid.time.chunks_of(piece.step_start, piece.step_stop))
    return array.grid.basin.chunk_size * array.grid.time.chunk_size * array.dtype.itemsize * num_chunks
