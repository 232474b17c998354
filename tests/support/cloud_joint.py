"""The two data sets of `joint_stores` in a bucket, and epochs as bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import headrace
from headrace.schemas.config import Config
from headrace.schemas.config_io import parse_config
from headrace.schemas.storage_config import StorageConfig
from joint_stores import Joint
from s3_server import Bucket


@dataclass(frozen=True, kw_only=True)
class CloudJoint:
    """Stores in a bucket, and how they are reached.

    Parameters
    ----------
    folder
        Where the bucket's objects lie as files.
    config
        The configuration that names them in the bucket.
    """

    folder: Path
    config: Config

    def reached(self, **storage: Any) -> "CloudJoint":
        """Return the same under other `storage` keys."""
        section = StorageConfig(**self.config.storage.model_dump() | storage)
        return replace(self, config=self.config.model_copy(update={"storage": section}))


def put_joint(joint: Joint, bucket: Bucket, storage: StorageConfig) -> CloudJoint:
    """Copy the stores into a bucket."""
    data = joint.config.as_dict()
    for dataset in data["datasets"].values():
        for name in ("timeseries", "attributes"):
            dataset[name] = bucket.upload(Path(dataset[name]))
    return CloudJoint(folder=bucket.path, config=parse_config({**data, "storage": storage.model_dump()}))


def epoch_bytes(index: Path | str, **settings: Any) -> list[bytes]:
    """Return the batches of a first epoch as bytes: inputs, statics, targets and where windows begin."""
    given: Mapping[str, Any] = {"batch_size": 64, "num_workers": 2, "seed": 3, **settings}
    with headrace.open_index(index) as opened, headrace.WindowLoader(opened, "train", **given) as loader:
        return [
            b"".join(part.contiguous().view(torch.uint8).numpy().tobytes() for part in parts)
            for parts in ((b.x, b.static, b.y, b.dataset, b.basin, b.start) for b in loader)
        ]
