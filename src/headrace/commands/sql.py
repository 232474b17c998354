"""``headrace sql``: one query over the tables of an index."""

import sys
from pathlib import Path

import click

from headrace.commands.render import FORMATS, write_table


@click.command("sql")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("query")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the rows; json: one object a line (JSON Lines).",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Rows that the table shows; 0 for all. csv and json always print all.",
)
def sql_command(directory: Path, query: str, form: str, limit: int) -> None:
    """Run QUERY, in DuckDB's SQL, over the tables of the index in DIRECTORY.

    Every table is a view of its own name: datasets, arrays, segments, periods, time_order, basins, variables, chunks,
    runs, windows, dropped, moments, stats, statics. QUERY - is read from standard input. A query reads these tables
    and no other file, and writes none; send the rows of --format csv or json to a file instead.

    \b
    Example:
      headrace sql index/ "select split, sum(num_windows) from windows group by split"
      headrace sql index/ "select * from dropped where reason = 'target_missing' order by num_windows desc" --format csv
    """
    from headrace.loader.catalog import open_index

    text = sys.stdin.read() if query == "-" else query
    with open_index(directory) as index:
        write_table(index.sql(text), form, limit=limit)
