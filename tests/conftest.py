"""What every test shares: Hypothesis profiles and the folder of real data sets."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parents[1]

# With a test process per processor, more than one thread in each would only wait for the others; OpenMP, and with it
# torch, reads this when it is loaded, in the processes that tests start as well.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A suite started in the background of a shell ignores Ctrl-C, and so would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Run times vary with the machine, so no example has a deadline. In CI the examples are the same in every run.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the real data sets: $HEADRACE_DATA, else `shared/data` beside the checkout."""
    root = Path(os.environ.get("HEADRACE_DATA", REPOSITORY.parent / "shared" / "data"))
    if not root.is_dir():
        pytest.skip(f"needs the real data sets: {root} is not a folder; set HEADRACE_DATA to where they are")
    return root
