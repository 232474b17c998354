"""What a whole life of an index and a run leaves behind holds no key of the object store, however much is logged."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

import whole_life
from cloud_project import write_cloud_project
from s3_server import KEY, SECRET, Bucket

pytestmark = pytest.mark.slow

DEBUG_IN_EVERY_PROCESS = """
import logging, os
logging.basicConfig(filename=os.path.join({folder!r}, f"{{os.getpid()}}.log"), level=logging.DEBUG)
"""


def forms_of(text: str) -> list[bytes]:
    """The ways in which a text may be written down."""
    forms = [text, quote(text, safe=""), text.encode().hex(), base64.b64encode(text.encode()).decode().rstrip("=")]
    return [form.encode() for form in forms]


def holders(folders: list[Path]) -> list[str]:
    """Files below some folders that hold a key in any form, except the file that it is given in."""
    wanted = forms_of(SECRET) + forms_of(KEY)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    return [f"{path}: {form!r}" for path in files for form in wanted if form in path.read_bytes()]


def test_what_is_written_down_is_found(tmp_path: Path):
    for number in range(21):
        (tmp_path / str(number)).write_text("nothing")
    for form in forms_of(SECRET):
        (tmp_path / "log").write_bytes(b"Authorization: " + form + b"\n")
        assert len(holders([tmp_path])) >= 1


def test_keys_stay_where_they_are_given(bucket: Bucket, tmp_path: Path):
    folders = {name: tmp_path / name for name in ("home", "left", "tmp", "hook", "work")}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    left = folders["left"]
    s3 = {"bucket": bucket.name, "endpoint_url": bucket.server.endpoint}
    s3 |= {"access_key_id": KEY, "secret_access_key": SECRET}
    setting = folders["home"] / "hydro_setting.yml"
    setting.write_text(yaml.safe_dump({"storage": {"default_source": "cloud", "s3": s3}}))
    (folders["hook"] / "sitecustomize.py").write_text(DEBUG_IN_EVERY_PROCESS.format(folder=str(left)))
    config = write_cloud_project(bucket, folders["work"], bucket.server.storage(endpoint_url=None))
    broken = folders["work"] / "broken.yml"
    broken.write_text(config.read_text().replace("two_timeseries", "no_timeseries"))
    index, run = f"{bucket.url}/index", str(folders["work"] / "run")
    commands = [
        ["check", str(config)],
        ["build-index", str(config), "--out", index, "--workers", "2"],
        ["train", "--config", str(config), "--index", index, "--run-dir", run, "--train-epochs", "1"],
        ["evaluate", run, "--split", "test"],
        ["bench", "--index", index, "--steps", "2", "--batch-size", "8"],
        ["inspect", index],
        ["sql", index, "select count(*) from windows"],
        ["report", index, "--out", str(folders["work"] / "index.html")],
        ["check", "--index", index],
        ["check", str(broken)],
        ["build-index", str(broken), "--out", str(folders["work"] / "none")],
    ]
    (folders["work"] / "commands.json").write_text(json.dumps(commands))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "COV"))} | {
        "HOME": str(folders["home"]), "TMPDIR": str(folders["tmp"]), "PYTHONPATH": str(folders["hook"]),
        "RUST_LOG": "trace", "RUST_BACKTRACE": "full", "DASK_LOGGING__DISTRIBUTED": "debug",
        "DASK_DISTRIBUTED__COMM__COMPRESSION": "false", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    script = [sys.executable, "-P", whole_life.__file__, str(left), str(folders["work"] / "commands.json")]
    with (left / "out.txt").open("wb") as out, (left / "err.txt").open("wb") as err:
        subprocess.run(script, cwd=folders["work"], env=environment, stdout=out, stderr=err, check=False, timeout=240)
    said = (left / "out.txt").read_text() + (left / "err.txt").read_text()
    assert json.loads((left / "codes.json").read_text()) == [0] * 9 + [3, 3], said[-3000:]
    assert (bucket.path / "index" / "manifest.json").exists()
    # The search is worth something only where something was kept: locators cross to workers, loggers talk everywhere.
    assert bucket.url.encode() in (left / "dask.bin").read_bytes()
    assert "DEBUG:" in (left / "debug.log").read_text()
    assert len([log for log in left.glob("[0-9]*.log") if "DEBUG:" in log.read_text()]) >= 2, "two workers"
    setting.unlink()
    assert holders([tmp_path, bucket.path]) == []
