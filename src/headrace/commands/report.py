"""The command ``report``: an index or a run in, one HTML page out."""

from collections.abc import Sequence
from pathlib import Path

import click

from headrace.commands.index_argument import INDEX, storage_asked, storage_option
from headrace.index_place import IndexPath


@click.command("report", short_help="Write a page about an index or a run.")
@click.argument("place", type=INDEX, metavar="DIR|RUN")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    metavar="F.html",
    help="File to write; an earlier report is replaced, anything else is not.",
)
@click.option("--index", "index_folder", type=INDEX, metavar="DIR", help="The run's index, where it has moved.")
@storage_option
def report_command(
    place: IndexPath, out: Path, index_folder: IndexPath | None, storage_settings: Sequence[str]
) -> None:
    """Write one HTML page about an index, DIR, or about a run, RUN, the folder that train wrote.

    \b
    Example:
      headrace report index/ --out index.html         # what the stores hold, and what is wrong with it
      headrace report runs/first --out first.html     # how the model was trained, and how good it is

    The page needs no network and no other file: send it, open it on a phone, print it. All of it reads well by keyboard
    and by screen reader, in light and dark, and every figure has its numbers behind it.

    \b
    Of an index: data sets, quality warnings, windows per split and why others are left out, coverage by basin and
    year, statistics, chunk maps with what reading costs.
    Of a run: loss and scores over the epochs, speed, settings; after `headrace evaluate` also the distribution of
    NSE, a map, the best, median and worst hydrographs, and the scores of every basin.

    Only tables are read, never a store; a map of basins may ask the attributes store for coordinates.

    Exit codes: 2 neither an index nor a run, 3 nothing there, 4 the index is damaged or of another version.
    """
    from headrace.commands.report_pages import report_of

    pages = report_of(place, out, index_folder=index_folder, storage=storage_asked(storage_settings))
    click.echo(f"{pages.what}  {pages.path}  ({pages.size})")
