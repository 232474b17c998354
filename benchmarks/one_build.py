"""Build one index in a process of its own and say what it took, as a line of JSON on standard output."""

import json
import resource
import sys
import time
from pathlib import Path

STARTED = time.perf_counter()


def main(config_path: Path, out: Path) -> None:
    """Import, build, and print seconds of both and the peak memory of the process."""
    from headrace import build_index
    from headrace.schemas.config_io import load_config

    config = load_config(config_path)
    imported = time.perf_counter()
    build_index(config, out)
    built = time.perf_counter()
    row = {"import": imported - STARTED, "build": built - imported, "peak_nbytes": peak_nbytes()}
    print(json.dumps(row))


def peak_nbytes() -> int:
    """Return the largest resident memory so far: VmHWM, or what the system calls it elsewhere."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
