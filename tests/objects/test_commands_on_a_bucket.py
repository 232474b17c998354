"""The life of an index whose stores are in a bucket, command by command."""

import json
import shutil
from pathlib import Path

from cloud_joint import put_joint
from command_line import run_headrace
from headrace.objects.counts import request_counts
from headrace.schemas.config_io import dump_config
from joint_stores import write_joint
from s3_server import Bucket


def ran(*arguments: str | Path) -> str:
    outcome = run_headrace(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out + outcome.err


def test_check_build_bench_train_and_evaluate(bucket: Bucket, tmp_path: Path):
    cloud = put_joint(write_joint(tmp_path / "joint"), bucket, bucket.storage)
    config, index, run = tmp_path / "config.yml", tmp_path / "index", tmp_path / "run"
    config.write_text(dump_config(cloud.config))
    ran("check", config)
    assert "requests to object storage" in ran("build-index", config, "--out", index)
    before = request_counts().requests
    assert "river" in ran("inspect", index)
    assert "river" in ran("sql", index, "select * from gaps")
    assert request_counts().requests == before, "tables are at hand"
    ran("check", "--index", index, "--verify", "3")
    assert request_counts().requests > before
    row = json.loads(ran("bench", "--index", index, "--device", "cpu", "--json", "--steps", "4", "--batch-size", "64"))
    assert row["storage_requests"] >= row["chunks_read"] > 0
    assert row["storage_retries"] == row["storage_throttles"] == 0
    shown = ran("bench", "--index", index, "--device", "cpu", "--steps", "4", "--batch-size", "64")
    assert "requests to object storage" in shown
    ran("train", "--index", index, "--run-dir", run, "--train-epochs", "1", "--hidden-size", "4", "--device", "cpu")
    ran("evaluate", run, "--split", "test")
    assert "river" in (run / "evaluation/test/metrics.csv").read_text()
    shutil.rmtree(bucket.path)
    ran("report", index, "--out", tmp_path / "index.html")
    ran("report", run, "--out", tmp_path / "run.html")
    assert "No coordinates of river" in (tmp_path / "run.html").read_text()
