"""The small project of `command_line`, its stores in a bucket."""

import re
from pathlib import Path

import yaml

from command_line import CONFIG, write_project
from headrace.schemas.storage_config import StorageConfig
from s3_server import Bucket


def write_cloud_project(bucket: Bucket, folder: Path, storage: StorageConfig | None = None) -> Path:
    """Write the stores into a bucket and a configuration that names them into a folder; return its file."""
    if not (bucket.path / "project.yml").exists():
        write_project(bucket.path)
    section = (storage or bucket.storage).model_dump(mode="json", exclude_defaults=True)
    stores = re.sub(r"(\w+\.zarr)", rf"{bucket.url}/\1", CONFIG)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "project.yml"
    config.write_text(stores + yaml.safe_dump({"storage": section}), encoding="utf-8")
    return config
