"""Addresses that cannot hold a bucket are refused before a client is made of them."""

import pytest

from headrace.objects import open_folder
from headrace.objects.connection import resolve
from headrace.schemas.errors import ConfigError
from headrace.schemas.storage_config import StorageConfig


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "[::1]:9000", "10.0.0.7"])
def test_a_numeric_address_takes_no_bucket_into_its_host_name(host):
    """D4: a client made of ``hydro.127.0.0.1`` ends the process without an error of ours."""
    storage = StorageConfig(endpoint_url=f"http://{host}", addressing_style="virtual", anon=True)
    with pytest.raises(ConfigError, match=r"(?s)numeric address.*s3://hydro.*addressing_style: path"):
        open_folder("s3://hydro/index", storage).read("manifest.json")


def test_a_numeric_address_takes_the_bucket_into_the_path():
    """D4: what is left to choose is the path, also without being asked for."""
    storage = StorageConfig(endpoint_url="http://127.0.0.1:9000")
    assert resolve("hydro", storage).endpoint == "http://127.0.0.1:9000"
