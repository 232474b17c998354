"""A bucket behind a proxy that makes faults on demand."""

from collections.abc import Iterator

import pytest

from cloud_joint import CloudJoint, put_joint
from fault_proxy import FaultProxy
from joint_stores import Joint, write_joint
from s3_server import Bucket


@pytest.fixture
def proxy(bucket: Bucket) -> Iterator[FaultProxy]:
    """A proxy before the server of `bucket`; passes everything on until it is told otherwise."""
    with FaultProxy(bucket.server.endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def joint_on_disk(tmp_path_factory: pytest.TempPathFactory) -> Joint:
    return write_joint(tmp_path_factory.mktemp("joint"))


@pytest.fixture
def cloud(joint_on_disk: Joint, bucket: Bucket, proxy: FaultProxy) -> CloudJoint:
    """Two data sets in a bucket of their own, reached through the proxy, with many tries."""
    storage = bucket.server.storage(endpoint_url=proxy.url, timeout_seconds=20.0, max_retries=8)
    return put_joint(joint_on_disk, bucket, storage)
