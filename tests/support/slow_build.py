"""``headrace build-index`` with slow scans that say which unit they are at, so that a signal finds a build half done.

Run as a program: ``python slow_build.py LOG SECONDS build-index CONFIG …``. Worker processes import it again.
"""

import os
import sys
import time
from pathlib import Path

from headrace.indexer import distribute, units
from headrace.indexer.read_unit import UnitResult, scan_unit
from headrace.indexer.units import ScanUnit
from headrace.objects.fetch import Fetch
from headrace.schemas.config import BadChunkPolicy
from headrace.schemas.storage_config import StorageConfig
from headrace.scratch import Lease

_MARK = "HEADRACE_TEST_SLOW_BUILD"


def _slow(
    unit: ScanUnit,
    policy: BadChunkPolicy,
    storage: StorageConfig,
    fetch: Fetch | None = None,
    lease: Lease | None = None,
) -> UnitResult:
    """Note process and unit, wait, scan."""
    log, seconds = os.environ[_MARK].split("|")
    with Path(log).open("a") as file:
        file.write(f"{os.getpid()} {unit.key}\n")
    time.sleep(float(seconds))
    return scan_unit(unit, policy, storage, fetch, lease)


def _main() -> None:
    from headrace.cli import main

    os.environ[_MARK] = f"{sys.argv[1]}|{sys.argv[2]}"
    sys.argv = ["headrace", *sys.argv[3:]]
    main()


if __name__ in ("__main__", "__mp_main__"):
    units.MIN_BIN_STEPS, units.TASK_UNITS = 1, 2
    distribute.scan_unit = _slow  # type: ignore[attr-defined]
if __name__ == "__main__":
    _main()
