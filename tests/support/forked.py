"""Run something in a fork of this process, of which nothing else goes on there."""

import os
import traceback
from collections.abc import Callable


def forked(work: Callable[[], None]) -> int:
    """Start ``work`` in a fork; return its process id. It ends with 0, or with 1 after a traceback."""
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - the parent reads it; nothing of the parent may run on in here
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return process
