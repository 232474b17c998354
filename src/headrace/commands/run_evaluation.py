"""One evaluation of a run on a split: scores, predictions and pictures. ``evaluate`` and ``demo`` both call it."""

from dataclasses import dataclass
from pathlib import Path

from headrace.commands.index_record import IndexRecord
from headrace.commands.loaders import open_loader, target_units, time_axes
from headrace.commands.run_setup import index_of
from headrace.index_place import IndexPath
from headrace.loader import Index
from headrace.schemas.config import Config, Split
from headrace.schemas.config_io import config_digest, load_config
from headrace.schemas.errors import ConfigError, describe
from headrace.trainer.checkpoint import check_loader, load_model
from headrace.trainer.device import choose_device
from headrace.trainer.evaluate import Evaluation, evaluate
from headrace.trainer.launch import world_size
from headrace.trainer.plots import plot_hydrographs, plot_nse_cdf
from headrace.trainer.precision import evaluation_precision
from headrace.trainer.progress import RichProgress
from headrace.trainer.run_folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedRun:
    """What an evaluation left behind."""

    evaluation: Evaluation
    folder: Path
    pictures: list[Path]
    units: dict[tuple[str, str], str]
    """(Data set, target) → physical unit."""


def run_evaluation(
    run: RunFolder,
    split: Split,
    *,
    checkpoint: str = "best",
    index_folder: IndexPath | None = None,
    batch_size: int | None = None,
    device: str | None = None,
) -> EvaluatedRun:
    """Score a trained run.

    Parameters
    ----------
    run
        Its folder; takes ``evaluation/<split>/``.
    split
        train, valid or test.
    checkpoint
        ``best`` or ``last``.
    index_folder
        The run's index where it lies now; None takes where it lay.
    batch_size, device
        Instead of the run's.

    Raises
    ------
    ConfigError
        The run is incomplete, the split has no window, or torchrun started several processes.
    SourceError, StaleIndexError, IndexFormatError
        Index or stores are gone, or not what they were.
    """
    _refuse_several_processes()
    config = load_config(run.config)
    record = IndexRecord.read(run)
    where = choose_device(config.train.device if device is None else device)
    path = run.best if checkpoint == "best" else run.last
    model, trained = load_model(path, where)
    _refuse_edited(run, trained.config_digest, config_digest(config))
    out = run.evaluation(split)
    with index_of(config, record.path if index_folder is None else index_folder) as index:
        record.check(index)
        units = target_units(index)
        with (
            open_loader(index, config, split, device=str(where), batch_size=batch_size) as loader,
            RichProgress() as bar,
        ):
            check_loader(trained, loader, str(path))
            done = evaluate(
                model,
                loader,
                out,
                times=time_axes(index, loader.dataset_ids),
                units=units,
                precision=evaluation_precision(config.train, model.config, where),
                members=_basins_of(index, config, split),
                progress=bar,
                task=f"evaluation, {split}",
            )
    pictures = [plot_nse_cdf(done.metrics, out / "plots" / "nse_cdf.png"), *plot_hydrographs(out, out / "plots")]
    return EvaluatedRun(evaluation=done, folder=out, pictures=pictures, units=units)


def _refuse_several_processes() -> None:
    if world_size() > 1:
        raise ConfigError(
            describe(
                "an evaluation is made by one process",
                where="headrace evaluate",
                expected="one process",
                got=f"{world_size()}, which would all write the same files",
                fix="leave torchrun out; only train shares its work among processes",
            )
        )


def _basins_of(index: Index, config: Config, split: Split) -> dict[str, set[str]]:
    """Return data set → ids of its basins in a split, with or without windows; none where it has no period for it."""
    found: dict[str, set[str]] = {}
    text = "SELECT dataset_id, basin_id FROM basins WHERE list_contains(string_split(splits, ','), $split)"
    for row in index.sql(text, split=split).to_pylist():
        dataset = config.datasets.get(row["dataset_id"])
        if dataset is not None and dataset.period(split) is not None:
            found.setdefault(row["dataset_id"], set()).add(row["basin_id"])
    return found


def _refuse_edited(run: RunFolder, trained: str, now: str) -> None:
    """Refuse a configuration that is not the one of the training: the model would be fed otherwise."""
    if now != trained:
        raise ConfigError(
            describe(
                "the run's configuration has changed since the training",
                where=str(run.config),
                expected=f"configuration digest {trained}",
                got=now,
                fix="undo the edit; --split, --batch-size, --device and --index choose what may differ",
            )
        )
