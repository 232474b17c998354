"""The command ``demo``: the whole job, on data it makes itself."""

from pathlib import Path

import click

from headrace.commands.terminal import make_console


@click.command("demo", short_help="See the whole job on two small synthetic data sets.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("headrace-demo"),
    show_default=True,
    metavar="DIR",
    help="Folder to work in: new, empty, or of an earlier demo, which is replaced.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Seed of the data.")
def demo_command(out: Path, seed: int) -> None:
    """Make two synthetic data sets, index them, train one model on both, and score it: under two minutes on two cores.

    \b
    Example:
      headrace demo
      headrace demo --out /tmp/demo --seed 7

    The stores differ in format, layout, names and units, and have the gaps of real gauges; DIR/demo.yml says how one
    configuration brings them together. The scores stand beside those of the climatology, the mean of each day of the
    year: what the season alone predicts. DIR/index-report.html and DIR/run-report.html show it all in a browser.

    Needs no network. Fails if the model does not reach a median test NSE of 0.5, and 0.3 more than the climatology, in
    each data set.
    """
    from headrace.demo.run import run_demo

    run_demo(out, seed, make_console())
