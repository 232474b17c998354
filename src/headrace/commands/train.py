"""The command ``train``: a configuration or an index in, a run folder out."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from headrace.commands.options import overrides_of, setting_flags, split_names
from headrace.commands.terminal import make_console

if TYPE_CHECKING:
    from headrace.commands.run_training import TrainedRun
    from headrace.schemas.config import Config

_PATH = click.Path(path_type=Path)


@click.command("train", short_help="Train a model from an index.")
@click.option(
    "--config", "--dataset-config", "config_file", type=_PATH, metavar="FILE",
    help="Configuration; default: the one in --index.",
)  # fmt: skip
@click.option(
    "--index", "index_folder", type=_PATH, metavar="DIR",
    help="Index of the configuration's stores; default indexes/<digest>. Built first where there is none.",
)  # fmt: skip
@click.option("--run-dir", type=_PATH, metavar="DIR", help="Folder of the run; default runs/<time>-<digest>.")
@click.option("--resume", is_flag=True, help="Go on with the run in --run-dir, exactly where it stopped.")
@click.option("--datasets", "--dataset-id", metavar="A,B", help="Train on these data sets of the configuration only.")
@click.option(
    "--worker-cache-size-mb", "worker_cache_mib", type=click.IntRange(min=1), metavar="N",
    help="Memory for decoded rows in MiB, times --num-workers; they share it. Not beside --memory-budget.",
)  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any field: --set train.dropout=0.2.")
@click.option("--amp/--no-amp", default=None, help="Compute in bfloat16 where torch sees fit. [train.amp]")
@setting_flags
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    config_file: Path | None,
    index_folder: Path | None,
    run_dir: Path | None,
    resume: bool,
    datasets: str | None,
    worker_cache_mib: int | None,
    settings: Sequence[str],
    amp: bool | None,
    **flags: object,
) -> None:
    """Train one LSTM jointly on all data sets of a configuration, from an index of their stores.

    \b
    Example:
      headrace train --config camels.yml                              # builds the index if need be
      headrace train --config camels.yml --index indexes/camels --run-dir runs/first --hidden-size 128
      headrace train --index indexes/camels --missing-policy fill_and_mask --set window.hindcast_length=364
      headrace train --resume --run-dir runs/first

    The run folder takes config.yml (everything resolved), metrics.csv (a row per epoch), checkpoints/best.pt and
    last.pt, and plots/loss.png. Ctrl-C writes a checkpoint; --resume goes on from it and ends with the same model as
    a run that was never stopped.

    Window, policies, normalisation and everything of training may differ from what the index was built with: none
    of it needs a new scan. Stores, basins, periods and variables may not.

    Flags override --set, which overrides the file. The field that a flag sets stands in brackets.

    Exit codes: 2 configuration, 3 a store cannot be read, 4 the index is stale, of another
    configuration, or none, 130 stopped by Ctrl-C.
    """
    overrides = [*settings, *([] if amp is None else [f"train.amp={str(amp).lower()}"]), *overrides_of(flags)]
    console = make_console()
    if worker_cache_mib is not None and flags["memory_budget"] is not None:
        raise click.UsageError("--worker-cache-size-mb and --memory-budget both set the memory: give one", ctx)
    if resume:
        _refuse_settings(ctx, run_dir, given=bool(config_file or datasets or overrides or worker_cache_mib))
        assert run_dir is not None, "refused above"
        trained = _resume(run_dir, index_folder, console)
    else:
        if config_file is None and index_folder is None:
            raise click.UsageError("give --config FILE, --index DIR, or --resume with --run-dir", ctx)
        trained = _train(
            config_file, index_folder, run_dir, overrides, split_names(datasets), worker_cache_mib, console
        )
    _summarize(trained)


def _train(
    config_file: Path | None,
    index_folder: Path | None,
    run_dir: Path | None,
    overrides: Sequence[str],
    datasets: Sequence[str] | None,
    worker_cache_mib: int | None,
    console: Console,
) -> "TrainedRun":
    from headrace.commands.loaders import with_budget_per_worker
    from headrace.commands.run_setup import default_run_folder, ensure_index, read_config
    from headrace.trainer.device import choose_device
    from headrace.trainer.run_folder import RunFolder

    config = read_config(config_file, index_folder, overrides, datasets)
    if worker_cache_mib is not None:
        config = with_budget_per_worker(config, worker_cache_mib)
    run_folder = default_run_folder(config, datetime.now()) if run_dir is None else run_dir
    RunFolder.refuse_used(run_folder)
    choose_device(config.train.device)
    return _run(config, ensure_index(config, index_folder, console), run_folder, console, resume=False)


def _resume(run_dir: Path, index_folder: Path | None, console: Console) -> "TrainedRun":
    from headrace.commands.index_record import IndexRecord
    from headrace.schemas.config_io import load_config
    from headrace.trainer.run_folder import RunFolder

    folder = RunFolder.open(run_dir)
    index = IndexRecord.read(folder).path if index_folder is None else index_folder
    return _run(load_config(folder.config), index, run_dir, console, resume=True)


def _run(config: "Config", index: Path, run_folder: Path, console: Console, *, resume: bool) -> "TrainedRun":
    from headrace.commands.run_training import run_training

    try:
        return run_training(config, index, run_folder, console, resume=resume)
    except KeyboardInterrupt:
        if not (run_folder / "checkpoints" / "last.pt").exists():
            raise
        raise click.Abort(f"Go on with: headrace train --resume --run-dir {run_folder}") from None


def _refuse_settings(ctx: click.Context, run_dir: Path | None, *, given: bool) -> None:
    if run_dir is None:
        raise click.UsageError("--resume needs --run-dir, the folder of the run to go on with", ctx)
    if given:
        raise click.UsageError(
            "--resume uses the run's own config.yml: leave out --config, --datasets, --set and the flags of settings, "
            "or start a new run",
            ctx,
        )


def _summarize(trained: "TrainedRun") -> None:
    result, folder = trained.result, trained.folder
    kind = "validation" if trained.validated else "training"
    epochs = "1 epoch" if result.num_epochs == 1 else f"{result.num_epochs} epochs"
    early = ", where the loss stopped falling" if result.stopped_early else ""
    click.echo(
        f"\nTrained {epochs}{early}; the best is epoch {result.best_epoch + 1}, {kind} loss {result.best_loss:.4f}"
    )
    click.echo(f"  best model   {folder.best}")
    click.echo(f"  each epoch   {folder.metrics}")
    click.echo(f"  loss curve   {folder.plots / 'loss.png'}")
    click.echo(f"  index        {trained.index}")
    click.echo(f"Next: headrace evaluate {folder.path} --split {trained.next_split}")
