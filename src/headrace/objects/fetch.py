"""Stored objects of a block: looked at where they lie on a disk, fetched ahead of decoding where they lie in a bucket.

Keys are relative to a store. What was fetched is what is decoded: :meth:`Fetch.serving` hands the received bytes to
Zarr, so that an object is asked for once, and what its answer said of it is what the values came from.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Final, Protocol

from headrace.objects.bucket import StoredObject
from headrace.objects.counts import counter
from headrace.objects.local import stat_file
from headrace.objects.request_threads import give_up
from headrace.objects.stat import ObjectStat

Data = bytes | memoryview
HEAD_NBYTES = 16
"""First bytes of an object that :meth:`Fetch.head` returns: a Blosc chunk's header, the least of a shard."""
MOST_AGAIN: Final = 3
"""How often an object is asked for anew that comes otherwise each time."""
held_objects: ContextVar["Mapping[str, Future[StoredObject | None]] | None"] = ContextVar("held", default=None)
"""What a read in this context takes instead of asking; Zarr's event loop inherits it."""


class Fetch(Protocol):
    """The stored objects of a block; raises ReadError where one can be neither had nor proven absent."""

    @property
    def may_change(self) -> bool:
        """Whether :meth:`data` may be of another object than an earlier :meth:`stat` said."""
        ...

    def stat(self, key: str) -> ObjectStat | None:
        """Return size and fingerprint: of a file as it is now, of an object as it was received; None: absent."""
        ...

    def data(self, key: str) -> Data | None:
        """Return the bytes; None: absent."""
        ...

    def head(self, key: str) -> tuple[Data, int] | None:
        """Return the first bytes and the size; None: absent."""
        ...

    def again(self, keys: Iterable[str]) -> bool:
        """Ask anew for objects that are not as they should be; False: what is held is to be believed.

        An answer may be garbled on its way, or be that of something in between: only what comes twice running is the
        bucket's word.
        """
        ...

    def serving(self) -> AbstractContextManager[None]:
        """Let Zarr read what was fetched, inside the context."""
        ...

    def drop(self) -> None:
        """Let go of what was fetched, and ask for no more."""
        ...

    def give_up(self) -> None:
        """Let whoever waits in another thread wait no longer: RuntimeError or CancelledError there."""
        ...


class FileFetch:
    """Files below a folder; nothing is fetched ahead."""

    may_change = True

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def stat(self, key: str) -> ObjectStat | None:
        """Look at a file."""
        return stat_file(f"{self._folder}/{key}")

    def data(self, key: str) -> Data | None:
        """Read a file."""
        try:
            with open(f"{self._folder}/{key}", "rb", buffering=0) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def head(self, key: str) -> tuple[Data, int] | None:
        """Read the beginning of a file."""
        try:
            with open(f"{self._folder}/{key}", "rb", buffering=0) as file:
                return file.read(HEAD_NBYTES), file.seek(0, 2)
        except FileNotFoundError:
            return None

    def again(self, keys: Iterable[str]) -> bool:
        """Believe the disk."""
        return False

    def serving(self) -> AbstractContextManager[None]:
        """Zarr reads the files."""
        return nullcontext()

    def drop(self) -> None:
        """Nothing is held."""

    def give_up(self) -> None:
        """Nobody waits."""


class ObjectFetch:
    """Objects of a bucket, under way or received.

    Parameters
    ----------
    keys
        Of the objects.
    ask
        Asks for one.
    """

    may_change = False

    def __init__(self, keys: Iterable[str], ask: Callable[[str], "Future[StoredObject | None]"]) -> None:
        self._ask = ask
        self._objects = {key: ask(key) for key in keys}
        self._received: dict[str, StoredObject | None] = {}
        self._left: dict[str, int] = {}
        self._given_up = False

    def stat(self, key: str) -> ObjectStat | None:
        """Wait for an object."""
        found = self._of(key)
        return None if found is None else found.stat

    def data(self, key: str) -> Data | None:
        """Wait for an object."""
        found = self._of(key)
        return None if found is None else found.data

    def head(self, key: str) -> tuple[Data, int] | None:
        """Wait for an object."""
        data = self.data(key)
        return None if data is None else (data[:HEAD_NBYTES], len(data))

    def again(self, keys: Iterable[str]) -> bool:
        """Ask anew for those that have not come twice alike; True: one of them is another now."""
        asked = {key: self._of(key) for key in keys if self._left.get(key, MOST_AGAIN)}
        for key in asked:
            self._objects[key] = self._ask(key)
            del self._received[key]
        counter.add(retries=len(asked))
        if self._given_up:
            self.give_up()
        others = [key for key, before in asked.items() if not _alike(self._of(key), before)]
        self._left |= {key: self._left.get(key, MOST_AGAIN) - 1 if key in others else 0 for key in asked}
        self.may_change = self.may_change or bool(others)
        return bool(others)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Zarr takes what was received."""
        token = held_objects.set(self._objects)
        try:
            yield
        finally:
            held_objects.reset(token)

    def drop(self) -> None:
        """Cancel what has not begun."""
        if len(self._received) < len(self._objects):
            for future in self._objects.values():
                future.cancel()
        self._objects, self._received = {}, {}

    def give_up(self) -> None:
        """Leave requests under way to themselves."""
        self._given_up = True
        for future in list(self._objects.values()):
            give_up(future)

    def _of(self, key: str) -> StoredObject | None:
        if key not in self._received:
            self._received[key] = self._objects[key].result()
        return self._received[key]


def _alike(one: StoredObject | None, other: StoredObject | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.stat == other.stat and one.data == other.data
