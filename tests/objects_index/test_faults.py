"""An index built at a URL, and read there, through the faults of object stores: the same bytes, or an error."""

import pytest

import headrace
from build_here import build_here
from cloud_joint import epoch_bytes
from fault_proxy import FaultProxy
from fault_rules import Fault, Rule
from headrace.schemas.errors import HeadraceError, IndexFormatError, StorageError
from indexing import table_bytes
from joint_stores import write_joint

PASSING: list[Fault] = ["slow_down", "server_error", "reset_before", "reset_within", "cut_short", "slow_first_byte"]


@pytest.fixture(scope="session")
def joint(tmp_path_factory):
    return write_joint(tmp_path_factory.mktemp("joint"))


@pytest.fixture
def proxy(bucket):
    with FaultProxy(bucket.server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def settings(joint, bucket, proxy):
    """Stores on this disk; the bucket is reached through the proxy, whose address the environment has."""
    storage = bucket.server.storage(endpoint_url=proxy.url, timeout_seconds=20.0, max_retries=8)
    return joint.config.model_copy(update={"storage": storage})


@pytest.mark.slow
def test_an_index_built_and_read_under_faults_equals_a_local_one(settings, joint, bucket, proxy, tmp_path, monkeypatch):
    url = f"{bucket.url}/i"
    proxy.use(*(Rule(fault=fault, share=0.05) for fault in PASSING), seed=2)
    build_here(settings, url)
    build_here(settings, tmp_path / "local")
    assert table_bytes(bucket.path / "i") == table_bytes(tmp_path / "local")
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    assert epoch_bytes(url) == epoch_bytes(tmp_path / "local")
    assert sum(bool(exchange.fault) for exchange in proxy.exchanges) > 2


@pytest.mark.parametrize(
    ("fault", "key"),
    [
        ("denied", r"manifest\.json"),
        ("cut_relabelled", r"manifest\.json"),
        ("server_error", r"datasets\.parquet"),
        ("denied", r"windows\.parquet"),
        ("cut_relabelled", r"windows\.parquet"),
    ],
)
def test_what_cannot_be_had_whole_is_an_error(joint, bucket, proxy, fault, key):
    url = bucket.upload(joint.index, "i")
    proxy.use(Rule(fault=fault, key=key, methods=("GET",)))
    storage = bucket.server.storage(endpoint_url=proxy.url, max_retries=1)
    with pytest.raises((StorageError, IndexFormatError)) as caught, headrace.open_index(url, storage) as index:
        index.windows("train")
    assert f"{url}/{key}".replace("\\", "") in str(caught.value)


@pytest.mark.parametrize(("fault", "method"), [("denied", "PUT"), ("denied", "DELETE"), ("server_error", "PUT")])
def test_a_build_that_may_not_write_leaves_no_new_index(settings, bucket, proxy, fault, method):
    impatient = settings.storage.model_copy(update={"max_retries": 1})
    proxy.use(Rule(fault=fault, methods=(method,)))
    with pytest.raises(HeadraceError) as caught:
        build_here(settings.model_copy(update={"storage": impatient}), f"{bucket.url}/i")
    assert f"{bucket.url}/i/" in str(caught.value)
    assert not (bucket.path / "i" / "manifest.json").exists()
