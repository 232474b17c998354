"""``headrace inspect``: ready questions about an index."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import click

from headrace.commands.index_argument import storage_asked, storage_option
from headrace.commands.options import split_names
from headrace.commands.row_options import row_options, row_target


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topic:
    """A ready question: its headline, the filters that it takes, and those for which it has a query of its own."""

    title: str
    filters: tuple[str, ...]
    by_basin: bool = False
    times: bool = False


_PERIOD = ("from", "to")
_TOPICS = {
    "summary": _Topic(title="Windows per data set and split, basins with and without", filters=("dataset", "split")),
    "coverage": _Topic(
        title="Observed share per data set, variable and year",
        filters=("dataset", "basin", "variable", *_PERIOD),
        by_basin=True,
    ),
    "gaps": _Topic(
        title="Stretches without observations, longest first",
        filters=("dataset", "basin", "variable", *_PERIOD),
        times=True,
    ),
    "dropped": _Topic(title="Windows not served, and why", filters=("dataset", "basin", "split")),
    "chunks": _Topic(
        title="Stored objects per array: state and size", filters=("dataset", "basin", "variable", *_PERIOD)
    ),
    "stats": _Topic(
        title="Statistics over the training period", filters=("dataset", "basin", "variable"), by_basin=True
    ),
    "windows": _Topic(
        title="Runs of windows, and when the first and the last of each begin",
        filters=("dataset", "basin", "split", *_PERIOD),
        times=True,
    ),
}


@click.command("inspect")
@click.argument("directory")
@click.argument("topic", type=click.Choice(list(_TOPICS)), default="summary")
@click.option("--dataset", metavar="A,B", help="Only these data sets.")
@click.option("--basin", metavar="A,B", help="Only these basins; coverage and stats then have a row for each.")
@click.option("--variable", metavar="A,B", help="Only these variables, by the model's names.")
@click.option("--split", metavar="A,B", help="Only these of train, valid, test.")
@click.option("--from", "first", metavar="DATE", help="Only from this date on: 1995, 1995-06, 1995-06-15 or a time.")
@click.option("--to", "last", metavar="DATE", help="Only up to this date, its whole day, month or year included.")
@row_options(40)
@storage_option
def inspect_command(
    directory: str,
    topic: str,
    dataset: str | None,
    basin: str | None,
    variable: str | None,
    split: str | None,
    first: str | None,
    last: str | None,
    form: str | None,
    output: Path | None,
    csv: Path | None,
    json: Path | None,
    parquet: Path | None,
    limit: int,
    storage_settings: Sequence[str],
) -> None:
    """Look at the index in DIRECTORY, a folder or an s3:// URL.

    \b
    TOPIC is one of                                                     filters
      summary   windows per data set and split (the default)            dataset, split
      coverage  observed share per data set, variable and year          dataset, basin, variable, from, to
      gaps      stretches without observations, longest first           dataset, basin, variable, from, to
      dropped   windows not served, and why                             dataset, basin, split
      chunks    stored objects (chunks, or shards): state, size         dataset, basin, variable, from, to
      stats     statistics over the training period                     dataset, basin, variable
      windows   runs of window starts                                   dataset, basin, split, from, to

    \b
    Example:
      headrace inspect index/
      headrace inspect index/ dropped --dataset camels_us --split train
      headrace inspect index/ gaps --variable precipitation --from 1995 --to 1995
      headrace inspect index/ coverage --basin 01013500,01022500 --csv coverage.csv
      headrace inspect index/ windows --parquet windows.parquet

    A name with a comma stands in double quotes: --basin '"Rhine, Basel",01013500'.

    With --from and --to coverage and gaps are those of that part of the record, chunks those that hold it, and windows
    those of the runs that reach into it. Anything else: headrace sql.
    """
    given = {"dataset": dataset, "basin": basin, "variable": variable, "split": split, "from": first, "to": last}
    _refuse_idle(topic, [name for name, value in given.items() if value is not None])
    _refuse_empty([name for name, value in given.items() if value is not None and not split_names(value)])
    target = row_target(directory, form=form, output=output, csv=csv, json=json, parquet=parquet, limit=limit)
    from headrace.commands.inspect_filters import Filters
    from headrace.commands.inspect_times import StepTimes
    from headrace.commands.render import write_rows
    from headrace.loader.catalog import open_index

    filters = Filters(
        datasets=split_names(dataset) or (),
        basins=split_names(basin) or (),
        variables=split_names(variable) or (),
        splits=split_names(split) or (),
        first=first,
        last=last,
    )
    chosen = _TOPICS[topic]
    text = _query_of(topic, by_basin=chosen.by_basin and bool(filters.basins))
    with open_index(directory, storage_asked(storage_settings), ask_buckets=False) as index:
        known, wanted = filters.bind(index), set(re.findall(r"\$(\w+)", text))
        times = StepTimes(index) if chosen.times else None
        rows = index.sql_reader(text, **{name: known[name] for name in wanted})
        write_rows(rows, target, title=chosen.title, convert=times)


def _query_of(topic: str, *, by_basin: bool) -> str:
    from headrace.loader.sql import query

    if topic == "summary":
        return query(topic)
    name = f"inspect_{topic}{'_of_basins' * by_basin}.sql"
    return files("headrace.commands").joinpath(name).read_text(encoding="utf-8")


def _refuse_idle(topic: str, given: Sequence[str]) -> None:
    """Refuse a filter that a topic has no use for, rather than leave it without effect."""
    takes = _TOPICS[topic].filters
    idle = [f"--{name}" for name in given if name not in takes]
    if idle:
        allowed = ", ".join(f"--{name}" for name in takes)
        raise click.UsageError(f"{' and '.join(idle)} does not apply to {topic}, which takes {allowed}")


def _refuse_empty(given: Sequence[str]) -> None:
    """Refuse a filter without a name, as an unset variable of a shell leaves it, rather than show everything."""
    if given:
        raise click.UsageError(f"--{given[0]} is empty: name something, or leave it out")
