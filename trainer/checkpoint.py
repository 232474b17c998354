"""Checkpoints: all that is needed to build the model again, and to go on training as if nothing had happened.

A checkpoint is one torch file of tensors and plain values; reading it runs no code from it (``weights_only``). It is
written beside its place and moved there, so a kill leaves the old one or the new one.
"""

import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from headrace.schemas.errors import ConfigError, StaleIndexError, describe
from headrace.trainer.model import SequenceModel, build_model
from headrace.trainer.model_config import ModelConfig
from headrace.trainer.protocols import Loader
from headrace.trainer.run_folder import replacing

FORMAT = "headrace-checkpoint"
VERSION = 2


class CheckpointError(ConfigError):
    """The file is no checkpoint, one of another version, or one of another run."""


@dataclass(slots=True, kw_only=True)
class EpochSums:
    """What has been added up so far in an epoch, so that a resumed epoch reports all of itself.

    Parameters
    ----------
    error_sum, weight_sum
        Sum of the errors of observed targets, and of their weights.
    num_windows, num_batches
        Windows, of all ranks, and batches.
    wait_seconds, compute_seconds
        Waiting for the loader, and everything else in the training pass.
    """

    error_sum: float = 0.0
    weight_sum: float = 0.0
    num_windows: int = 0
    num_batches: int = 0
    wait_seconds: float = 0.0
    compute_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State of a training run between two batches.

    Parameters
    ----------
    model_config
        Shape of the model.
    x_names, static_names, y_names
        What the model's inputs, statics and targets are, in order.
    target_length
        P, target steps per window.
    model, optimizer, scaler
        State dicts; the last is empty but for float16. The learning rate follows from the configuration and the windows
        served, so there is no scheduler state.
    rng
        By rank, state of torch's generator (``cpu``) and of those of the GPUs (``cuda``, one per device).
    epoch
        Epoch in progress, counted from 0; all before it are finished.
    sums
        Of the epoch in progress; ``num_batches`` are done.
    epoch_trained
        True when the epoch's last batch is done and its validation is not.
    loader_state
        The training loader's, after those batches.
    best_metric, best_epoch
        Lowest validation (else training) loss so far and its epoch; None before the first.
    config_digest, index_digest
        Of the configuration and the index the run uses.
    """

    model_config: ModelConfig
    x_names: list[str]
    static_names: list[str]
    y_names: list[str]
    target_length: int
    model: dict[str, torch.Tensor]
    optimizer: dict[str, Any]
    scaler: dict[str, Any]
    rng: list[dict[str, Any]]
    epoch: int
    sums: EpochSums
    epoch_trained: bool
    loader_state: dict[str, Any]
    best_metric: float | None
    best_epoch: int | None
    config_digest: str
    index_digest: str


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole.

    Parameters
    ----------
    path
        Where to; replaced when it exists.
    checkpoint
        The state; ``loader_state`` must be JSON values.
    """
    content = {field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)}
    content["model_config"] = asdict(checkpoint.model_config)
    content["sums"] = asdict(checkpoint.sums)
    content["loader_state"] = json.dumps(checkpoint.loader_state)
    with replacing(path) as partial:
        torch.save({"format": FORMAT, "version": VERSION, "content": content}, partial)


def load_checkpoint(path: Path, map_location: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint.

    Parameters
    ----------
    path
        A file that :func:`save_checkpoint` wrote.
    map_location
        Where its tensors go; the generators' states stay on the CPU.

    Raises
    ------
    CheckpointError
        There is no such file, it is something else, or it has another version.
    """
    if not path.exists():
        raise CheckpointError(
            describe(
                "there is no checkpoint",
                where=str(path),
                expected="a checkpoint of this run",
                got="no such file",
                fix="check the path; a run writes its first checkpoint before its first batch",
            )
        )
    if not zipfile.is_zipfile(path):
        raise _foreign(path, "a file that torch did not write, or half of one")
    try:
        document = torch.load(path, map_location=map_location, weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise _foreign(
            path, f"a file torch cannot read as plain tensors and values ({type(error).__name__})"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _foreign(path, f"a torch file of another kind ({type(document).__name__})")
    if document.get("version") != VERSION:
        raise CheckpointError(
            describe(
                "the checkpoint has a version this Headrace does not know",
                where=str(path),
                expected=f"version {VERSION}",
                got=f"version {document.get('version')}",
                fix="use the Headrace that wrote it, or train again",
            )
        )
    content = dict(document["content"])
    content["model_config"] = ModelConfig(**content["model_config"])
    content["sums"] = EpochSums(**content["sums"])
    content["loader_state"] = json.loads(content["loader_state"])
    content["rng"] = [
        {"cpu": own["cpu"].cpu(), "cuda": [state.cpu() for state in own["cuda"]]} for own in content["rng"]
    ]
    return Checkpoint(**content)


def load_model(path: Path, device: torch.device | str = "cpu") -> tuple[SequenceModel, Checkpoint]:
    """Build the model of a checkpoint, in evaluation mode on ``device``.

    Raises
    ------
    CheckpointError
        See :func:`load_checkpoint`.
    """
    checkpoint = load_checkpoint(path, map_location=device)
    model = build_model(checkpoint.model_config).to(device)
    model.load_state_dict(checkpoint.model)
    return model.eval(), checkpoint


def check_same_run(path: Path, checkpoint: Checkpoint, *, config_digest: str, index_digest: str) -> None:
    """Refuse to go on with the checkpoint of another configuration or index.

    Raises
    ------
    CheckpointError
        The configuration differs.
    StaleIndexError
        The index differs.
    """
    if checkpoint.config_digest != config_digest:
        raise CheckpointError(
            describe(
                "the checkpoint belongs to another configuration",
                where=str(path),
                expected=f"configuration digest {config_digest}",
                got=checkpoint.config_digest,
                fix="resume with the run's own config.yml, or start a new run in another folder",
            )
        )
    if checkpoint.index_digest != index_digest:
        raise StaleIndexError(
            describe(
                "the checkpoint belongs to another index",
                where=str(path),
                expected=f"index digest {index_digest}",
                got=checkpoint.index_digest,
                fix="resume with the index the run was started with, or start a new run in another folder",
            )
        )


def check_loader(checkpoint: Checkpoint, loader: Loader, where: str) -> None:
    """Refuse a loader that serves other variables, or other shapes, than the model was trained on.

    Raises
    ------
    CheckpointError
        Names or order differ.
    """
    pairs: list[tuple[str, object, object]] = [
        (role, getattr(checkpoint, role), list(getattr(loader, role)))
        for role in ("x_names", "static_names", "y_names")
    ]
    pairs.append(("target_length", checkpoint.target_length, loader.window.target_length))
    for role, trained, served in pairs:
        if trained != served:
            raise CheckpointError(
                describe(
                    f"the model was trained on other data: {role} differ",
                    where=where,
                    expected=str(trained),
                    got=str(served),
                    fix="open the loader with the configuration of the run",
                )
            )


def _foreign(path: Path, got: str) -> CheckpointError:
    return CheckpointError(
        describe(
            "the file is no Headrace checkpoint",
            where=str(path),
            expected="a file written by `train`, such as RUN/checkpoints/best.pt",
            got=got,
            fix="give the path of a run or of one of its checkpoints",
        )
    )
