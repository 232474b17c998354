"""What every test shares: Hypothesis profiles and the folder of real data sets."""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from s3_server import Bucket, S3Server, serving
from undrawn import undrawn

REPOSITORY = Path(__file__).resolve().parents[1]

# With a test process per processor, more than one thread in each would only wait for the others; OpenMP, and with it
# torch, reads this when it is loaded, in the processes that tests start as well.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where stores of published data sets lie is not read from the home of whoever runs the tests.
os.environ["HYDRO_SETTING"] = os.devnull

# A suite started in the background of a shell ignores Ctrl-C, and so would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Run times vary with the machine, so no example has a deadline. In CI the examples are the same in every run.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_finish() -> None:
    """Leave what the imports made out of every later collection of garbage: a large part of the time of small tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _pictures_are_not_rendered(request: pytest.FixtureRequest) -> Iterator[None]:
    """But where somebody looks at them, and once as users have them."""
    with nullcontext() if request.path.name in ("test_plots.py", "test_demo.py") else undrawn():
        yield


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the real data sets: $HEADRACE_DATA, else `shared/data` beside the checkout."""
    root = Path(os.environ.get("HEADRACE_DATA", REPOSITORY.parent / "shared" / "data"))
    if not root.is_dir():
        pytest.skip(f"needs the real data sets: {root} is not a folder; set HEADRACE_DATA to where they are")
    return root


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server on loopback; one per test process, started by the first test that asks for it."""
    with serving(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    """An empty bucket, with credentials for it in the environment and none anywhere else."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HYDRO_SETTING", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "no-such-file"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Bucket(s3_server, f"bucket-{next(_buckets)}")
    made.path.mkdir()
    return made


_buckets = count(1)
