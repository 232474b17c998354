"""The command ``bench``: an index in, how fast its batches come out, and whether a model would wait for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click

from headrace.commands.index_argument import INDEX
from headrace.commands.local_path import LOCAL_PATH
from headrace.commands.options import source_option, split_names
from headrace.index_place import IndexPath
from headrace.schemas.config import SPLITS, Split
from headrace.schemas.hydro_setting import Source

_PATH = click.Path(path_type=Path)
_WHOLE = click.IntRange(min=1)


@click.command("bench", short_help="Time the loader on an index.")
@click.option(
    "--index", "index_folder", type=INDEX, metavar="DIR|URL",
    help="Index to serve; with --dataset-config default indexes/<digest>, built first where there is none.",
)  # fmt: skip
@click.option("--dataset-config", "config_file", type=_PATH, metavar="FILE", help="Configuration that names stores.")
@click.option(
    "--dataset-id", metavar="A,B",
    help="Data sets to serve: published ones as their presets have them, or some of the configuration's or index's.",
)  # fmt: skip
@source_option
@click.option("--split", type=click.Choice(SPLITS), default="train", show_default=True, help="Windows to serve.")
@click.option("--max-basins", type=_WHOLE, metavar="N", help="Serve the first N basins of each data set only.")
@click.option("--steps", type=_WHOLE, default=200, show_default=True, metavar="N", help="Batches to time.")
@click.option("--batch-size", type=_WHOLE, metavar="N", help="Windows per batch. [loader.batch_size]")
@click.option("--num-workers", metavar="N|auto", help="Reader and gather threads. [loader.num_workers]")
@click.option("--memory-budget", metavar="SIZE|auto", help="Memory for decoded rows, 2GiB say. [loader.memory_budget]")
@click.option(
    "--prefetch-factor", type=_WHOLE, metavar="N",
    help="Rounds of batches read ahead, within the same memory; default 1. [loader.prefetch_factor]",
)  # fmt: skip
@click.option("--device", metavar="auto|cpu|cuda", help="Where batches go; auto takes a GPU. [train.device]")
@click.option(
    "--cuda-prefetch/--no-cuda-prefetch", default=None,
    help="Bring rows or batches to the GPU ahead of use, as is the default. [loader.cuda_prefetch]",
)  # fmt: skip
@click.option(
    "--cuda-prefetch-batches", type=_WHOLE, metavar="N",
    help="Batches on their way to the GPU, where decoded rows do not fit there. [loader.cuda_prefetch_batches]",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Key of the shuffle. [loader.seed]")
@click.option(
    "--normalization", type=click.Choice(["none", "standard"]), default="none", show_default=True,
    help="standard: minus mean, by standard deviation of the training period.",
)  # fmt: skip
@click.option(
    "--valid-target-filter", is_flag=True,
    help="Leave out training windows that lack a target, as training does. Default: serve every window.",
)  # fmt: skip
@click.option(
    "--hidden-size", type=_WHOLE, metavar="N",
    help="Train an LSTM of this width on every batch and time that as compute. Default: do nothing with a batch.",
)  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any other field of the configuration.")
@click.option("--json-out", type=LOCAL_PATH, metavar="FILE", help="Also write the result as one JSON object to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print that JSON object instead of the table.")
@click.pass_context
def bench_command(
    ctx: click.Context,
    /,
    index_folder: IndexPath | None,
    config_file: Path | None,
    dataset_id: str | None,
    source: Source | None,
    split: str,
    max_basins: int | None,
    steps: int,
    batch_size: int | None,
    num_workers: str | None,
    memory_budget: str | None,
    prefetch_factor: int | None,
    device: str | None,
    cuda_prefetch: bool | None,
    cuda_prefetch_batches: int | None,
    seed: int | None,
    normalization: str,
    valid_target_filter: bool,
    hidden_size: int | None,
    settings: Sequence[str],
    json_out: Path | None,
    as_json: bool,
) -> None:
    """Time the first batches of an epoch, reading and decoding included, and say what they cost.

    \b
    Example:
      headrace bench --index indexes/camels                            # how fast do batches come?
      headrace bench --index indexes/camels --hidden-size 256          # would this LSTM wait for them?
      headrace bench --index indexes/camels --memory-budget 500MiB     # and with less memory?
      headrace bench --dataset-config camels.yml --steps 2000 --json-out bench.json

    A loader of its own is opened for the measurement, so the first batch waits for the first reads, as in training.
    Data wait is the time between asking for a batch and having it; compute is the time of the training step. Where
    data wait is the longer one, the last line names the setting to change. To compare two settings, run them in turn
    several times: the first run also brings the store into the system's file cache.

    Values are served raw and every window counts, unless --normalization standard and --valid-target-filter ask for
    what training does. Shuffle quality compares how many basins, time chunks and months a batch mixes with a perfect
    shuffle; 1 is perfect.

    Exit codes: 2 configuration, 3 a store cannot be read, 4 the index is stale or none.
    """
    from headrace.commands.run_bench import BenchRequest, run

    if config_file is None and index_folder is None and dataset_id is None:
        raise click.UsageError("give --index DIR, --dataset-config FILE, or --dataset-id ID", ctx)
    flags = {
        "loader.batch_size": batch_size,
        "loader.num_workers": num_workers,
        "loader.memory_budget": memory_budget,
        "loader.seed": seed,
        "loader.prefetch_factor": prefetch_factor,
        "loader.cuda_prefetch": cuda_prefetch,
        "loader.cuda_prefetch_batches": cuda_prefetch_batches,
        "train.device": device,
        "train.hidden_size": hidden_size,
        "missing.target_nan_policy": "drop_any_nan" if valid_target_filter else None,
    }
    run(
        BenchRequest(
            config_file=config_file,
            index_folder=index_folder,
            datasets=split_names(dataset_id),
            source=source,
            split=cast(Split, split),
            max_basins=max_basins,
            steps=steps,
            overrides=(
                "missing.target_nan_policy=keep",
                *settings,
                f"normalization.method={normalization}",
                *(f"{field}={value}" for field, value in flags.items() if value is not None),
            ),
            compute=hidden_size is not None,
            cuda_prefetch=bool(cuda_prefetch) or cuda_prefetch_batches is not None,
        ),
        json_out=json_out,
        as_json=as_json,
    )
