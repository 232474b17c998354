"""``headrace inspect``: ready questions about an index."""

from importlib.resources import files
from pathlib import Path

import click

from headrace.commands.render import FORMATS, write_table

_TOPICS = {
    "summary": "Windows per data set and split, basins with and without.",
    "coverage": "Observed share per data set, variable and year.",
    "gaps": "Stretches without observations, longest first.",
    "dropped": "Windows not served, and why.",
    "chunks": "Stored objects per array: state and size.",
    "stats": "Statistics over the training period.",
    "windows": "Runs of window starts, one row per run.",
}


@click.command("inspect")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("topic", type=click.Choice(list(_TOPICS)), default="summary")
@click.option("--dataset", "dataset_id", help="Only this data set.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the rows; json: one object a line (JSON Lines).",
)
@click.option(
    "--limit", type=click.IntRange(min=0), default=40, show_default=True, help="Rows that the table shows; 0 for all."
)
def inspect_command(directory: Path, topic: str, dataset_id: str | None, form: str, limit: int) -> None:
    """Look at the index in DIRECTORY.

    \b
    TOPIC is one of
      summary   windows per data set and split, basins with and without (the default)
      coverage  observed share per data set, variable and year
      gaps      stretches without observations, longest first
      dropped   windows not served, and why
      chunks    stored objects (chunks, or shards) per array: state, size
      stats     statistics over the training period
      windows   runs of window starts

    \b
    Example:
      headrace inspect index/
      headrace inspect index/ dropped --dataset camels_us
      headrace inspect index/ coverage --format csv > coverage.csv
    """
    from headrace.commands.inspect_times import with_times, year_spans
    from headrace.loader.catalog import open_index
    from headrace.schemas.errors import ConfigError, describe

    text = files("headrace.commands").joinpath(f"inspect_{topic}.sql").read_text(encoding="utf-8")
    with open_index(directory) as index:
        if dataset_id is not None and dataset_id not in index.dataset_ids:
            raise ConfigError(
                describe(
                    "no such data set",
                    where=f"{directory} --dataset",
                    expected=", ".join(index.dataset_ids),
                    got=dataset_id,
                    fix="correct the name",
                )
            )
        spans = year_spans(index) if topic == "coverage" else {}
        table = index.sql(text, dataset_id=dataset_id, **spans)
        if topic == "gaps":
            table = with_times(table, index)
        write_table(table, form, limit=limit, title=_TOPICS[topic])
