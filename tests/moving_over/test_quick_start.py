"""The guide's quick start with our entry point in place of its script: one data set by its id, two by the example file.

Stores lie where ``~/hydro_setting.yml`` says: in a folder, and in a bucket of a real S3 server on loopback.
"""

from pathlib import Path

import pytest

from command_line import run_headrace
from headrace.loader import open_index
from headrace.schemas.config_io import load_config
from published_store import BASINS, write_published
from s3_server import KEY, SECRET
from tree import REPOSITORY

EXAMPLE = REPOSITORY / "configs" / "cloud_zarr_joint.example.yml"
pytestmark = pytest.mark.slow
FLAGS = {
    "--batch-size": "256", "--hidden-size": "4", "--num-workers": "0", "--train-epochs": "1",
    "--sampling": "balanced_by_dataset", "--normalization": "standard", "--normalization-scope": "per_dataset",
    "--missing-policy": "fill_and_mask", "--target-nan-policy": "drop_any_nan", "--prefetch-factor": "2",
    "--worker-cache-size-mb": "64", "--cuda-prefetch-batches": "2", "--dataloader-timeout": "0",
    "--max-batches-per-epoch": "2",
}  # fmt: skip


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    for dataset_id in ("camels_us", "caravan"):
        write_published(folder, dataset_id)
    return folder


@pytest.fixture
def local(stores, tmp_path, monkeypatch):
    """A home whose settings file names the folder."""
    (tmp_path / "hydro_setting.yml").write_text(f"storage: {{local: {{root: {stores}}}}}", encoding="utf-8")
    monkeypatch.delenv("HYDRO_SETTING", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return "local", str(stores)


@pytest.fixture
def cloud(stores, tmp_path, bucket, monkeypatch):
    """A home whose settings file names the bucket and holds its keys, which are nowhere else."""
    bucket.upload(stores, "zarr")
    s3 = {
        "bucket": bucket.name, "prefix": "zarr", "endpoint_url": bucket.server.endpoint,
        "access_key_id": KEY, "secret_access_key": SECRET,
    }  # fmt: skip
    lines = ["storage:", "  default_source: local", "  s3:", *(f"    {name}: {value}" for name, value in s3.items())]
    (tmp_path / "hydro_setting.yml").write_text("\n".join(lines), encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return "cloud", f"s3://{bucket.name}/zarr"


def train(*arguments: str) -> None:
    flags = [part for pair in FLAGS.items() for part in pair]
    shorter = ("--set", "window.hindcast_length=9", "--run-dir", "run")  # so that validation takes no time
    outcome = run_headrace("train", *arguments, "--cuda-prefetch", *flags, *shorter)
    assert outcome.code == 0, outcome.err
    assert "Trained 1 epoch" in outcome.out


def test_one_data_set_by_its_id(cloud):
    source, folder = cloud
    train("--dataset-id", "camels_us", "--source", source)
    config = load_config("run/config.yml")
    assert config.datasets["camels_us"].timeseries == f"{folder}/camels_us_timeseries.zarr"
    assert (config.loader.memory_budget, config.loader.timeout) == (64 * 2**20, None)
    assert SECRET not in Path("run/config.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("where", ["local", "cloud"])
def test_two_data_sets_by_the_example_file(request, where):
    source, folder = request.getfixturevalue(where)
    train("--dataset-config", str(EXAMPLE), "--datasets", "camels_us,caravan", "--source", source)
    config = load_config("run/config.yml")
    assert {d.timeseries for d in config.datasets.values()} == {
        f"{folder}/{name}_timeseries.zarr" for name in config.datasets
    }
    (index,) = Path("indexes").iterdir()
    with open_index(index, config.storage) as opened:
        units = opened.sql("SELECT DISTINCT unit FROM variables WHERE role = 'target'").to_pylist()
        basins = opened.sql("SELECT count(*) AS n FROM basins").to_pylist()
    assert units == [{"unit": "mm/day"}]
    assert basins == [{"n": 2 * len(BASINS)}]
