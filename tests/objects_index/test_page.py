"""What docs/s3-index.md tells people to type does what it says."""

import contextlib
import json
import re
import shlex

import pytest

from command_line import run_headrace, write_project
from s3_server import Bucket
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "s3-index.md").read_text(encoding="utf-8")
NAME = "hydro-indexes"


@pytest.fixture
def indexes(bucket) -> Bucket:
    """The bucket of the page."""
    found = Bucket(bucket.server, NAME)
    found.path.mkdir()
    return found


def test_commands_and_examples_run(indexes, tmp_path, monkeypatch):
    """The environment alone says how the index is reached; `train` with a URL is run by test_commands.py."""
    project = write_project(tmp_path).rename(tmp_path / "basins.yml")
    monkeypatch.setenv("AWS_ENDPOINT_URL", indexes.server.endpoint)
    commands = [shlex.split(line)[1:] for line in re.findall(r"^    (headrace .*)$", PAGE, flags=re.MULTILINE)]
    assert [c[0] for c in commands] == ["build-index", "inspect", "sql", "check", "train", "evaluate"]
    with contextlib.chdir(project.parent):
        for command in commands[:4]:
            done = run_headrace(*command)
            assert done.code == 0, f"{command}\n{done.err}"
    assert json.loads((indexes.path / "basins" / "manifest.json").read_text())["format"] == "headrace-index"
    whole, reached = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(whole, "docs/s3-index.md", "exec"), names)
    assert len(names["batch"]) == 32
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    exec(compile(reached.replace("http://127.0.0.1:9000", indexes.server.endpoint), "docs/s3-index.md", "exec"), names)
    assert names["index"].dataset_ids == ["one", "two"]
    names["index"].close()
