"""What docs/cloud.md says is so: its configurations, its addresses, and the words of its error table."""

import re

import pytest
import yaml

from headrace.objects.connection import resolve
from headrace.schemas import errors
from headrace.schemas.config_io import parse_config
from headrace.schemas.storage_config import StorageConfig
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "cloud.md").read_text(encoding="utf-8")
SETUPS = re.findall(r"^\| [^|]+ \| `(\{.*?\})` \| `(\S+)` \|$", PAGE, flags=re.MULTILINE)
MESSAGES = re.findall(r"^\| ([a-zU][^|`]+) \| (\d) \| ", PAGE.partition("| message |")[2], flags=re.MULTILINE)


def test_the_configuration_is_valid():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    config = parse_config(yaml.safe_load(text))
    assert config.datasets["camels"].timeseries.startswith("s3://")
    assert config.storage.region == "eu-central-1"


def test_every_set_up_is_shown():
    assert len(SETUPS) == 5


@pytest.mark.parametrize(("section", "address"), SETUPS)
def test_a_set_up_leads_where_the_page_says(bucket, section, address):
    storage = StorageConfig(**yaml.safe_load(section))
    assert resolve("hydro", storage).endpoint == address.replace("BUCKET", "hydro")
    assert resolve("hydro.data", storage).virtual == (storage.addressing_style == "virtual")


def test_defaults_are_those_of_the_page():
    defaults = StorageConfig()
    for name in ("max_retries", "timeout_seconds", "concurrency"):
        assert re.search(rf"`(storage\.)?{name}`\s+\({getattr(defaults, name):g}\)", PAGE), name


def test_every_message_is_one_that_is_said_with_its_exit_code():
    """Each begins an error in the sources; tests/cloud/test_configuration_errors.py and others meet them."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("src/headrace", "schemas")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    )
    assert len(MESSAGES) == 21
    for message, code in MESSAGES:
        said = message.rpartition("… ")[2]
        assert f'"{said}' in sources, message
        raised = set(re.findall(rf'(\w+Error)\(\s*describe\(\s*"{said}"', sources))
        # What a request came to is a StorageError; what the section `storage` may not hold is found by its validator.
        classes = raised or {"ConfigError" if "endpoint_url" in message else "StorageError"}
        assert {getattr(errors, name).exit_code for name in classes} == {int(code)}, message
