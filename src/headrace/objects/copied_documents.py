"""Metadata documents out of a store's consolidated copy, each proven to be the one that the array has.

A copy can be stale, so nothing of it is believed. Most servers give as etag the MD5 of what was put in one piece: a
document of the copy, written as the usual libraries write it, is taken where its size and MD5 are those that a listing
shows for the array's own document. Whatever else is asked for as if there were no copy.
"""

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from headrace.objects.bucket import StoredObject
from headrace.objects.stat import ObjectStat

_FORMS: Final = (partial(json.dumps, indent=2), partial(json.dumps, indent=4, sort_keys=True))
"""How zarr-python 3 and zarr-python 2 write documents."""
Asked = Future[StoredObject | None]


class CopiedDocuments:
    """What a consolidated copy says.

    Parameters
    ----------
    content
        ``.zmetadata``, or a root document that holds a copy; what is neither has no documents.
    """

    def __init__(self, content: bytes) -> None:
        self.documents: dict[str, Any] = {}
        try:
            root = json.loads(content)
            if "consolidated_metadata" in root:
                found = (root["consolidated_metadata"] or {}).get("metadata", {})
                self.documents = {f"{name}/zarr.json": document for name, document in found.items()}
            elif "metadata" in root:
                self.documents = dict(root["metadata"])
        except (ValueError, TypeError, AttributeError):
            return  # nobody needs it

    def proven(self, key: str, listed: ObjectStat | None) -> StoredObject | None:
        """Return a document where a listing shows that it is what is stored, else None."""
        if listed is None or key not in self.documents:
            return None
        for write in _FORMS:
            data = write(self.documents[key]).encode()
            digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
            if listed.fingerprint.lower() == f"{len(data)}:{digest}":
                return StoredObject(memoryview(data), listed)
        return None


def read_copy(asked: Asked) -> "Future[CopiedDocuments]":
    """Return the copy that is being asked for; one that cannot be had has no documents."""
    copy: Future[CopiedDocuments] = Future()

    def take(answer: Asked) -> None:
        found = None if answer.cancelled() or answer.exception() is not None else answer.result()
        copy.set_result(CopiedDocuments(b"{}" if found is None else bytes(found.data)))

    asked.add_done_callback(take)
    return copy


def taken_or_asked(
    key: str, copy: "Future[CopiedDocuments]", listing: "Future[dict[str, ObjectStat]]", ask: Callable[[], Asked]
) -> Asked:
    """Return a document out of the copy once the listing proves it, else what ``ask`` gets."""
    outcome: Asked = Future()

    def ask_for_it() -> None:
        try:
            ask().add_done_callback(partial(_pass_on, outcome))
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            outcome.set_exception(error)

    def prove(listed: "Future[dict[str, ObjectStat]]") -> None:
        shown = {} if listed.cancelled() or listed.exception() is not None else listed.result()
        found = copy.result().proven(key, shown.get(key))
        if found is None:
            ask_for_it()
        else:
            outcome.set_result(found)

    def look(copied: "Future[CopiedDocuments]") -> None:
        if key in copied.result().documents:
            listing.add_done_callback(prove)
        else:
            ask_for_it()

    copy.add_done_callback(look)
    return outcome


def _pass_on(outcome: Asked, answer: Asked) -> None:
    if answer.cancelled():
        outcome.cancel()
        outcome.set_running_or_notify_cancel()
    elif (error := answer.exception()) is not None:
        outcome.set_exception(error)
    else:
        outcome.set_result(answer.result())
