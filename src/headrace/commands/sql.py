"""``headrace sql``: one query over the tables of an index."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from headrace.commands.index_argument import storage_asked, storage_option
from headrace.commands.row_options import row_options, row_target


@click.command("sql")
@click.argument("directory")
@click.argument("query", required=False)
@click.option(
    "-f", "--file", "file", type=click.Path(path_type=Path), metavar="FILE",
    help="Read the query from a file; - is standard input.",
)  # fmt: skip
@row_options(50)
@storage_option
def sql_command(
    directory: str,
    query: str | None,
    file: Path | None,
    form: str | None,
    output: Path | None,
    csv: Path | None,
    json: Path | None,
    parquet: Path | None,
    limit: int,
    storage_settings: Sequence[str],
) -> None:
    """Run QUERY, in DuckDB's SQL, over the tables of the index in DIRECTORY, a folder or an s3:// URL.

    Every table is a view of its own name: datasets, arrays, segments, periods, time_order, basins, variables, chunks,
    runs, windows, dropped, moments, stats, statics. These views answer what is often asked: months, years, coverage,
    gaps, time_gaps, window_counts, why_dropped, read_cost. "describe gaps" names the columns of one.

    Without QUERY and --file, or with -, the query is read from standard input. It reads these tables and no other file,
    and writes none; --csv, --json and --parquet keep its rows.

    \b
    Example:
      headrace sql index/ "select split, sum(num_windows) from windows group by split"
      headrace sql index/ "from gaps where variable = 'precipitation' order by num_steps desc" --csv gaps.csv
      headrace sql index/ -f question.sql --format markdown

    The same queries run in a plain DuckDB shell: cd index/ && duckdb -init views.sql
    """
    text = _query(query, file)
    target = row_target(directory, form=form, output=output, csv=csv, json=json, parquet=parquet, limit=limit)
    from headrace.commands.render import write_rows
    from headrace.loader.catalog import open_index

    with open_index(directory, storage_asked(storage_settings), ask_buckets=False) as index:
        since = time.perf_counter()
        write_rows(index.sql_reader(text), target, since=since)


def _query(query: str | None, file: Path | None) -> str:
    from headrace.schemas.errors import ConfigError, describe

    if query is not None and file is not None:
        raise click.UsageError("QUERY and --file both give a query: leave one out")
    if query not in (None, "-"):
        return str(query)
    if file is None or str(file) == "-":
        if query is None and file is None and sys.stdin.isatty():
            raise click.UsageError("give a query: as an argument, with --file, or on standard input")
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            describe(
                "file of a query cannot be read",
                where=f"--file {file}",
                expected="a text file in UTF-8",
                got=str(error),
                fix="check the path and the file's encoding",
            )
        ) from error
