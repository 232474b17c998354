"""An index in a bucket has the page that it has on a disk, and runs find their index there."""

import json
import shutil

import pytest

from build_here import build_here
from command_line import run_headrace, write_project
from headrace.schemas.config_io import load_config
from report_folders import write_run
from s3_server import SECRET


@pytest.fixture
def project(tmp_path, bucket):
    """A local index and the same one in the bucket."""
    folder = tmp_path / "project"
    build_here(load_config(write_project(folder)), folder / "index")
    shutil.copytree(folder / "index", bucket.path / "indexes" / "one")
    return folder


def test_an_index_in_a_bucket_has_the_page_of_the_local_one(project, bucket):
    url = f"{bucket.url}/indexes/one"
    endpoint = f"storage.endpoint_url={bucket.server.endpoint}"
    done = run_headrace("report", url, "--set", endpoint, "--out", project / "there.html")
    assert done.code == 0, done.err
    assert run_headrace("report", project / "index", "--out", project / "here.html").code == 0
    there, here = ((project / f"{name}.html").read_text(encoding="utf-8") for name in ("there", "here"))
    assert SECRET not in there + done.out + done.err
    assert f"<code>{url}</code>" in there
    assert there.partition("<main")[2] == here.partition("<main")[2]


def test_a_run_finds_its_index_in_the_bucket_by_its_own_configuration(project, bucket):
    url = f"{bucket.url}/indexes/one"
    run = project / "run"
    write_run(run, project / "index", evaluated=True)
    (run / "index.json").write_text(json.dumps({**json.loads((run / "index.json").read_text()), "path": url}))
    config = (run / "config.yml").read_text().replace("endpoint_url: null", f"endpoint_url: {bucket.server.endpoint}")
    (run / "config.yml").write_text(config)
    done = run_headrace("report", run, "--out", project / "run.html")
    assert done.code == 0, done.err
    assert f"Index {url}." in (project / "run.html").read_text(encoding="utf-8")
