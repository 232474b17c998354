"""A builder's claim on an index at an ``s3://`` URL: one builder at a time, and none that was killed holds for ever.

Object storage has no locks, and not every server takes conditional writes. So every builder writes an object of its
own and only then looks for those of others: of two, at least one sees the other, because a listing shows every object
written before it began.
"""

import json
import logging
import os
import platform
import random
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from headrace.objects import ObjectFolder
from headrace.objects.at_once import AFTER_STOP_SECONDS, within
from headrace.schemas.errors import ConfigError, HeadraceError, StorageError, describe
from headrace.schemas.manifest import PARTS_FOLDER

CLAIM_PREFIX = f"{PARTS_FOLDER}/lock-"
RENEW_SECONDS = 60.0
STALE_SECONDS = 600.0
"""Age from which a claim counts as left behind; its owner would have renewed it nine times."""
_RETRY_SECONDS = 5.0
"""Two claims so close in time withdraw both, and one of them may try again."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process, told apart from any other on any machine.

    Parameters
    ----------
    host
        Name of the machine, for messages.
    machine
        Which boot of which kernel, and which space of process numbers on it.
    pid, started
        The process, and when it started in seconds since 1970.
    """

    host: str
    machine: str
    pid: int
    started: float

    @classmethod
    def here(cls) -> "Owner":
        """Return this process."""
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            machine = f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
        except OSError:
            machine = secrets.token_hex(8)  # a machine of its own: its claims end by their age only
        process = psutil.Process()
        return cls(host=platform.node(), machine=machine, pid=process.pid, started=process.create_time())

    def is_gone(self, here: "Owner") -> bool:
        """Return whether the process ran on the machine of ``here`` and has ended."""
        if self.machine != here.machine:
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) > 1.0
        except psutil.NoSuchProcess:
            return True


class Claim:
    """The object of this builder, renewed by a thread until it is released.

    Parameters
    ----------
    folder
        The index.
    """

    def __init__(self, folder: ObjectFolder) -> None:
        self._folder = folder
        self._owner = Owner.here()
        self._name = f"{CLAIM_PREFIX}{secrets.token_hex(8)}.json"
        self._ended = threading.Event()
        self._stands = False
        self._renewing = threading.Thread(target=self._renew, name="headrace-claim", daemon=True)

    def take(self) -> None:
        """Write the claim.

        Raises
        ------
        ConfigError
            Another process builds there.
        """
        for last_try in (False, True):
            self._write()
            try:
                other = next(self._others(), None)
            except BaseException as error:
                self.release(seconds_to_tidy(error))
                raise
            if other is None:
                self._renewing.start()
                return
            self._folder.delete(self._name)
            if last_try or abs(time.time() - other.renewed) > _RETRY_SECONDS:
                raise ConfigError(self._held(other))
            time.sleep(random.uniform(0.2, 1.2))

    def check(self) -> None:
        """Refuse to go on where another builder took this claim for one left behind.

        Raises
        ------
        ConfigError
            The object is gone.
        """
        if self._folder.stat(self._name) is None:
            raise ConfigError(
                describe(
                    "the lock of this build is gone",
                    where=f"{self._folder.url}/{self._name}",
                    expected="the object, renewed every minute",
                    got="nothing there: another build began, because this one stood still for too long",
                    fix="run the same command again once no other build works there; what is scanned so far is kept",
                )
            )

    def parts(self) -> list[str]:
        """Return the names of all objects of the folder of parts, this one among them.

        Raises
        ------
        ConfigError
            The object is gone, or not listed: then others may be there as well.
        """
        names = self._folder.names(f"{PARTS_FOLDER}/")
        if self._name not in names:
            self.check()
        self._refuse_unlisted(names)
        return names

    def leave(self) -> None:
        """Let the object stand when it is released: requests of this build are still under way and may write."""
        self._stands = True

    def release(self, seconds: float | None = None) -> None:
        """Stop renewing and remove the object, unless that takes longer than some seconds."""
        self._ended.set()
        reason: object = "requests of this build are still under way"
        if not self._stands:
            try:
                within(self._remove, seconds)
            except HeadraceError as error:
                reason = error
            except TimeoutError:
                reason = "the server does not answer"
            else:
                return
        _log.warning("%s/%s cannot be removed and will hold for ten minutes: %s", self._folder.url, self._name, reason)

    def _remove(self) -> None:
        if self._renewing.is_alive():
            self._renewing.join()
        self._folder.delete(self._name)

    def _write(self) -> None:
        content = {"owner": asdict(self._owner), "renewed": time.time()}
        self._folder.write(self._name, json.dumps(content).encode())

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                if self._folder.stat(self._name) is None:
                    return  # taken for one left behind; check() says so
                self._write()
            except HeadraceError as error:
                _log.debug("the lock could not be renewed: %s", error)

    def _others(self) -> Iterator["_Found"]:
        """Yield the claims of others that hold; remove those that were left behind."""
        names = self._folder.names(CLAIM_PREFIX)
        self._refuse_unlisted(names)
        for name in names:
            if name == self._name:
                continue
            found = _Found.read(self._folder, name)
            if found is None:
                continue
            if found.owner.is_gone(self._owner) or time.time() - found.renewed > STALE_SECONDS:
                _log.warning("%s/%s was left behind by a build that was killed; it is removed", self._folder.url, name)
                self._folder.delete(name)
                continue
            yield found

    def _refuse_unlisted(self, names: list[str]) -> None:
        if self._name not in names:
            raise ConfigError(
                describe(
                    "the lock of this build is not listed where it was written",
                    where=f"{self._folder.url}/{self._name}",
                    expected="a listing that shows every object written before it began, others' locks among them",
                    got="one without it",
                    fix="run the same command again; if it says so again, build into a folder on a disk and copy that",
                )
            )

    def _held(self, other: "_Found") -> str:
        renewed, ends = (_clock(other.renewed + seconds) for seconds in (0.0, STALE_SECONDS))
        return describe(
            "another build works in this folder",
            where=self._folder.url,
            expected="one builder at a time",
            got=f"a lock of process {other.owner.pid} on {other.owner.host}, renewed at {renewed}",
            fix=f"wait for it, or choose another --out; if that process was killed, run again after {ends}, when its "
            f"lock no longer counts, or delete {self._folder.url}/{other.name}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Somebody's claim."""

    name: str
    owner: Owner
    renewed: float

    @classmethod
    def read(cls, folder: ObjectFolder, name: str) -> "_Found | None":
        """Return a claim as it is now, or None once it is gone."""
        try:
            content = json.loads(folder.read(name))
            return cls(name=name, owner=Owner(**content["owner"]), renewed=float(content["renewed"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                describe(
                    "a lock cannot be read",
                    where=f"{folder.url}/{name}",
                    expected="the lock of a build",
                    got=f"{type(error).__name__}: {error}",
                    fix="delete it if no build works there",
                )
            ) from error


def seconds_to_tidy(error: BaseException) -> float | None:
    """Return how long a build that ends by an error may take to remove its lock: no second deadline is waited out."""
    if isinstance(error, KeyboardInterrupt):
        return AFTER_STOP_SECONDS
    return 10.0 if isinstance(error, StorageError) else None


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
