"""The command ``evaluate``: a run folder in, scores, predictions and pictures out."""

from pathlib import Path
from typing import cast

import click

from headrace.commands.index_argument import INDEX
from headrace.commands.local_path import LOCAL_PATH
from headrace.commands.terminal import make_console
from headrace.index_place import IndexPath
from headrace.schemas.config import SPLITS, Split


@click.command("evaluate", short_help="Score a trained run on a split.")
@click.argument("run", type=LOCAL_PATH)
@click.option("--split", type=click.Choice(SPLITS), default="test", show_default=True, help="Periods to score.")
@click.option(
    "--checkpoint", type=click.Choice(["best", "last"]), default="best", show_default=True, help="Weights to score."
)
@click.option("--index", "index_folder", type=INDEX, metavar="DIR|URL", help="The run's index, where it has moved.")
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", help="Windows per batch; default: the run's.")
@click.option("--device", metavar="auto|cpu|cuda", help="Where to compute; default: the run's.")
def evaluate_command(
    run: Path, split: str, checkpoint: str, index_folder: IndexPath | None, batch_size: int | None, device: str | None
) -> None:
    """Score the model of RUN, a folder that train wrote, on one split of all its data sets.

    \b
    Example:
      headrace evaluate runs/first                                  # the test periods, best epoch
      headrace evaluate runs/first --split valid --checkpoint last

    Goes to RUN/evaluation/SPLIT: metrics.csv (NSE, KGE and its parts, RMSE, bias, FHV, FLV, peak timing of every
    basin, medians per data set), predictions.zarr (simulated and observed, basin × time, opens in xarray) and
    plots/. Results of an earlier evaluation of the split are replaced. What is undefined for some basins is named.

    Exit codes: 2 no such run or split, 3 a store cannot be read, 4 index or store changed since the training,
    or the index is of another configuration.
    """
    from headrace.commands.first_look import hear_from_buckets_of_run

    hear_from_buckets_of_run(run)
    from headrace.commands.results import remarks, score_table
    from headrace.commands.run_evaluation import run_evaluation
    from headrace.trainer.run_folder import RunFolder

    done = run_evaluation(
        RunFolder.open(run),
        cast(Split, split),
        checkpoint=checkpoint,
        index_folder=index_folder,
        batch_size=batch_size,
        device=device,
    )
    title = f"{split}, {done.evaluation.num_windows:,} windows: medians over basins"
    make_console().print(score_table(done.evaluation.rows, done.units, title))
    for remark in remarks(done.evaluation.rows):
        click.echo(f"remarks      {remark}")
    click.echo(f"scores       {done.evaluation.metrics}")
    click.echo(f"predictions  {done.evaluation.predictions}")
    click.echo(f"pictures     {done.folder / 'plots'}")
