"""A bucket behind a proxy that makes faults on demand."""

from collections.abc import Iterator

import pytest

from fault_proxy import FaultProxy
from s3_server import Bucket


@pytest.fixture
def proxy(bucket: Bucket) -> Iterator[FaultProxy]:
    """A proxy before the server of `bucket`; passes everything on until it is told otherwise."""
    with FaultProxy(bucket.server.endpoint) as proxy:
        yield proxy
