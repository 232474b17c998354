"""The command ``train``: a configuration or an index in, a run folder out."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console

from headrace.commands.index_argument import INDEX
from headrace.commands.local_path import LOCAL_PATH
from headrace.commands.options import NO_WORKER, overrides_of, setting_flags, source_option, split_names
from headrace.commands.terminal import make_console
from headrace.index_place import IndexPath
from headrace.schemas.hydro_setting import Source

_PATH = click.Path(path_type=Path)


@click.command("train", short_help="Train a model from an index.")
@click.option(
    "--config", "--dataset-config", "config_file", type=_PATH, metavar="FILE",
    help="Configuration; default: the one in --index.",
)  # fmt: skip
@click.option(
    "--index", "index_folder", type=INDEX, metavar="DIR|URL",
    help="Index of the configuration's stores; default indexes/<digest>. Built first where there is none.",
)  # fmt: skip
@click.option("--run-dir", type=LOCAL_PATH, metavar="DIR", help="Folder of the run; default runs/<time>-<digest>.")
@click.option("--resume", is_flag=True, help="Go on with the run in --run-dir, exactly where it stopped.")
@click.option(
    "--datasets", "--dataset-id", metavar="A,B",
    help="Data sets by their ids: published ones as their presets have them, or some of --config's, or of --index's.",
)  # fmt: skip
@source_option
@click.option(
    "--worker-cache-size-mb", "worker_cache_mib", type=click.IntRange(min=1), metavar="N",
    help="Memory for decoded rows in MiB, times --num-workers; they share it. Not beside --memory-budget.",
)  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any field: --set train.dropout=0.2.")
@click.option(
    "--amp/--no-amp", default=None,
    help="Compute in bfloat16 where torch sees fit; float16: --set train.amp=fp16. [train.amp]",
)  # fmt: skip
@click.option(
    "--tensorboard/--no-tensorboard", default=None,
    help="Also write each epoch for TensorBoard, into RUN/tensorboard. [train.tensorboard]",
)  # fmt: skip
@click.option(
    "--seeds", metavar="1,2,3",
    help="Train once with each seed, into seed-1, seed-2, … of --run-dir; a table says how far they differ.",
)  # fmt: skip
@setting_flags
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    config_file: Path | None,
    index_folder: IndexPath | None,
    run_dir: Path | None,
    resume: bool,
    datasets: str | None,
    source: Source | None,
    worker_cache_mib: int | None,
    settings: Sequence[str],
    amp: bool | None,
    tensorboard: bool | None,
    seeds: str | None,
    **flags: object,
) -> None:
    """Train one model jointly on all data sets of a configuration, from an index of their stores.

    \b
    Example:
      headrace train --config camels.yml                              # builds the index if need be
      headrace train --dataset-id camels_us                           # a published data set, without a file
      headrace train --config camels.yml --index indexes/camels --run-dir runs/first --hidden-size 128
      headrace train --index indexes/camels --missing-policy fill_and_mask --set window.hindcast_length=364
      headrace train --resume --run-dir runs/first
      headrace train --index indexes/camels --run-dir runs/three --seeds 1,2,3 --set train.model=ea_lstm
      torchrun --nproc-per-node 2 -m headrace train --index indexes/camels --run-dir runs/both

    The run folder takes config.yml (everything resolved), metrics.csv (a row per epoch), checkpoints/best.pt and
    last.pt, and plots/loss.png. Each epoch ends with a line on its speed and on how long it waited for
    data, and with what to change where that is much. Ctrl-C or SIGTERM writes a checkpoint; --resume goes on from
    it and ends with the same model as a run that was never stopped.

    Window, policies, normalisation and everything of training may differ from what the index was built with: none
    of it needs a new scan. Stores, basins, periods and variables may not.

    Flags override --set, which overrides the file. The field that a flag sets stands in brackets.

    Exit codes: 2 configuration, 3 a store cannot be read, 4 the index is stale, of another
    configuration, or none, 130 stopped by Ctrl-C or SIGTERM.
    """
    switches = {"train.amp": amp, "train.tensorboard": tensorboard}
    switched = [f"{field}={str(value).lower()}" for field, value in switches.items() if value is not None]
    overrides = [*settings, *switched, *overrides_of(flags)]
    console = make_console()
    chosen = _chosen_seeds(ctx, seeds, alone=flags["seed"] is None)
    if worker_cache_mib is not None and flags["memory_budget"] is not None:
        raise click.UsageError("--worker-cache-size-mb and --memory-budget both set the memory: give one", ctx)
    if resume:
        given = any((overrides, chosen)) or (config_file, datasets, source, worker_cache_mib) != (None,) * 4
        _refuse_settings(ctx, run_dir, given=given)
        assert run_dir is not None, "refused above"
        _resume(run_dir, index_folder, console)
        return
    if config_file is None and index_folder is None and datasets is None:
        raise click.UsageError("give --config FILE, --index DIR, --dataset-id ID, or --resume with --run-dir", ctx)
    names = split_names(datasets)
    _train(config_file, index_folder, run_dir, overrides, names, source, worker_cache_mib, chosen, console)


def _train(
    config_file: Path | None,
    index_folder: IndexPath | None,
    run_dir: Path | None,
    overrides: Sequence[str],
    datasets: Sequence[str] | None,
    source: Source | None,
    worker_cache_mib: int | None,
    seeds: Sequence[int],
    console: Console,
) -> None:
    from headrace.commands.configuration import read_config
    from headrace.commands.first_look import hear_from_buckets

    config = read_config(config_file, index_folder, overrides, datasets, source)
    hear_from_buckets(config)
    from headrace.commands.loaders import with_budget_per_worker
    from headrace.commands.run_setup import default_run_folder, ensure_index, refuse_untrainable
    from headrace.commands.train_runs import start, summarize
    from headrace.trainer.device import choose_device
    from headrace.trainer.run_folder import RunFolder
    from headrace.trainer.tensorboard import require_tensorboard

    refuse_untrainable(config)
    if "loader.num_workers=0" in overrides:
        console.print(NO_WORKER, highlight=False)
    if worker_cache_mib is not None:
        config = with_budget_per_worker(config, worker_cache_mib)
    run_folder = default_run_folder(config, datetime.now()) if run_dir is None else run_dir
    RunFolder.refuse_used(run_folder)
    choose_device(config.train.device)
    if config.train.tensorboard:
        require_tensorboard()
    index = ensure_index(config, index_folder, console)
    summarize(start(config, index, run_folder, seeds, console))


def _resume(run_dir: Path, index_folder: IndexPath | None, console: Console) -> None:
    from headrace.commands.first_look import hear_from_buckets_of_run

    hear_from_buckets_of_run(run_dir)
    from headrace.commands.train_runs import go_on, summarize

    summarize(go_on(run_dir, index_folder, console))


def _chosen_seeds(ctx: click.Context, text: str | None, *, alone: bool) -> tuple[int, ...]:
    """Return the numbers of --seeds; none where it was not given."""
    if text is None:
        return ()
    if not alone:
        raise click.UsageError("--seed and --seeds both choose the seed: give one", ctx)
    from headrace.commands.seeds import read_seeds

    try:
        return read_seeds(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param_hint="--seeds") from None


def _refuse_settings(ctx: click.Context, run_dir: Path | None, *, given: bool) -> None:
    if run_dir is None:
        raise click.UsageError("--resume needs --run-dir, the folder of the run to go on with", ctx)
    if given:
        raise click.UsageError(
            "--resume uses the run's own config.yml: leave out --config, --datasets, --source, --set, --seeds and the "
            "flags of settings, or start a new run",
            ctx,
        )
