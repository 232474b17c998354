"""Every command takes s3://bucket/prefix where it takes the folder of an index."""

import json
import os
import signal
from pathlib import Path

import pytest
import yaml

from command_line import run_headrace, write_project
from headrace.trainer.progress import RichProgress
from indexing import table_bytes
from s3_server import SECRET


@pytest.fixture
def project(tmp_path, monkeypatch, bucket) -> Path:
    """Two data sets on this disk and a configuration whose storage section reaches the bucket."""
    folder = tmp_path / "project"
    config = write_project(folder)
    text = config.read_text()
    storage = {"endpoint_url": bucket.server.endpoint, "max_retries": 3, "timeout_seconds": 10.0}
    config.write_text(text + f"storage: {json.dumps(storage)}\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def url(bucket) -> str:
    return f"{bucket.url}/indexes/one"


def ran(*arguments) -> str:
    """Run a command that ends well; return what it printed."""
    found = run_headrace(*arguments)
    assert found.code == 0, found.err
    assert SECRET not in found.out + found.err
    return found.out


def reach(bucket) -> tuple[str, str]:
    return "--set", f"storage.endpoint_url={bucket.server.endpoint}"


@pytest.mark.slow
def test_train_builds_the_index_there_and_everything_after_reads_it_there(project, url, bucket, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(patched, 14)  # in the second epoch
        stopped = run_headrace("train", "--config", "project.yml", "--index", url, "--run-dir", "run")
    assert stopped.code == 130, stopped.err
    assert f"Building the index {url}" in stopped.out
    assert json.loads((project / "run" / "index.json").read_text())["path"] == url
    resumed = ran("train", "--resume", "--run-dir", "run")
    assert "Trained 2 epochs" in resumed
    assert f"index        {url}\n" in resumed
    ran("evaluate", "run", "--split", "test")
    assert "basin,one," in (project / "run" / "evaluation" / "test" / "metrics.csv").read_text()
    ran("build-index", "project.yml", "--out", "local")
    assert table_bytes(bucket.path / "indexes" / "one") == table_bytes(project / "local")
    assert sorted(p.name for p in project.iterdir() if p.is_dir() and not p.name.endswith(".zarr")) == ["local", "run"]


def stop_after(monkeypatch, batches: int) -> None:
    """Press Ctrl-C in training once that many batches were reported."""
    left, update = [batches], RichProgress.update

    def pressing(progress, *arguments, **named):
        update(progress, *arguments, **named)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RichProgress, "update", pressing)


def test_inspect_sql_report_check_and_bench_read_it(project, url, bucket):
    ran("build-index", "project.yml", "--out", url)
    ran("build-index", "project.yml", "--out", "local")
    assert ran("inspect", url, "coverage", *reach(bucket)) == ran("inspect", "local", "coverage")
    asked = ("from read_cost", "--format", "csv")
    assert ran("sql", url, *asked, *reach(bucket)) == ran("sql", "local", *asked)
    ran("report", url, "--out", "page.html", *reach(bucket))
    assert url in (project / "page.html").read_text()
    assert f"{url} is up to date" in ran("check", "--index", url, "--verify", "2", *reach(bucket))
    bench = ran("bench", "--index", url, "--steps", "2", "--json", *reach(bucket))
    assert json.loads(bench)["settings"]["index"] == url
    flow = project / "one_timeseries.zarr" / "flow"
    chunk = min(p for p in flow.rglob("*") if p.is_file() and not p.name.startswith((".z", "zarr")))
    os.utime(chunk, ns=(1, 1))
    stale = run_headrace("check", "--index", url, *reach(bucket))
    assert stale.code == 4
    assert f"headrace build-index CONFIG --out {url}" in stale.err


def test_hydro_setting_alone_says_how_it_is_reached(project, url, bucket, monkeypatch):
    ran("build-index", "project.yml", "--out", url)
    key, secret = (os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    s3 = {"endpoint_url": bucket.server.endpoint, "access_key_id": key, "secret_access_key": secret}
    home = Path(os.environ["HOME"])
    home.mkdir(exist_ok=True)
    (home / "hydro_setting.yml").write_text(yaml.safe_dump({"storage": {"s3": s3}}))
    assert "one" in ran("sql", url, "select dataset_id from datasets")


@pytest.mark.parametrize(
    "command", [("inspect",), ("sql",), ("train", "--run-dir", "r", "--index"), ("check", "--index")]
)
def test_nothing_there_is_exit_code_3(project, bucket, command):
    query = ["select 1"] if command == ("sql",) else []
    found = run_headrace(*command, f"{bucket.url}/none", *query, *reach(bucket))
    assert found.code == 3, found.err
    assert f"index not found\n  where:    {bucket.url}/none" in found.err


def test_half_an_index_is_exit_code_4(project, url, bucket):
    ran("build-index", "project.yml", "--out", url)
    (bucket.path / "indexes" / "one" / "manifest.json").unlink()
    found = run_headrace("inspect", url, *reach(bucket))
    assert found.code == 4
    assert "folder is no finished index" in found.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["build-index", "project.yml", "--out", "gs://b/i"], "--out"),
        (["train", "--index", "http://b/i"], "--index"),
        (["inspect", "s3://"], "s3://"),
        (["train", "--config", "project.yml", "--run-dir", "s3://b/runs/one"], "--run-dir"),
        (["evaluate", "s3://b/runs/one"], "RUN"),
        (["sql", "s3://bucket/i", "select 1", "--set", "window.stride=2"], "--set window.stride=2"),
        (["sql", "s3://bucket/i", "select 1", "--set", "storage.endpoint=x"], "storage.endpoint"),
    ],
)
def test_what_cannot_be_a_url_is_exit_code_2(project, arguments, said):
    found = run_headrace(*arguments)
    assert found.code == 2, found.err
    assert said in found.err
    assert not [p for p in project.iterdir() if ":" in p.name]
