"""Options of commands that print rows: form, file, and how many rows a table shows."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

FORMS = ("table", "csv", "json", "parquet", "markdown")
_BY_SUFFIX = {
    ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".md": "markdown",
    ".txt": "table",
}  # fmt: skip
_SHORT = ("csv", "json", "parquet")
_FILE = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTarget:
    """Where rows go and how.

    Parameters
    ----------
    form
        One of :data:`FORMS`.
    path
        File, or None for standard output.
    limit
        Rows that a table shows; 0 shows all.
    """

    form: str
    path: Path | None
    limit: int

    @property
    def binary(self) -> bool:
        """Whether the form is no text."""
        return self.form == "parquet"


def row_options(default_limit: int) -> Callable[[Command], Command]:
    """Give a command the options of :func:`row_target`.

    Parameters
    ----------
    default_limit
        Rows that a table shows unless ``--limit`` says otherwise.
    """

    def add(command: Command) -> Command:
        options = [
            click.option(
                "--format", "form", type=click.Choice(FORMS),
                help="How to write the rows; json: one object a line. Default: by the suffix of --output, else table.",
            ),
            click.option("--output", type=_FILE, metavar="FILE", help="Write to a file; - is standard output."),
            *(
                click.option(f"--{form}", type=_FILE, metavar="FILE", help=f"Short for --format {form} --output FILE.")
                for form in _SHORT
            ),
            click.option(
                "--limit", type=click.IntRange(min=0), default=default_limit, show_default=True, metavar="N",
                help="Rows that a table shows; 0 for all. The other forms always hold all.",
            ),
        ]  # fmt: skip
        for option in reversed(options):
            command = option(command)
        return command

    return add


def row_target(
    index: str,
    *,
    form: str | None,
    output: Path | None,
    csv: Path | None,
    json: Path | None,
    parquet: Path | None,
    limit: int,
) -> RowTarget:
    """Return where rows go, from the options of :func:`row_options`; nothing goes into the folder ``index``.

    Raises
    ------
    click.UsageError
        The options contradict each other, no form follows from the file's name, or Parquet would go to a terminal.
    ConfigError
        The file cannot be written.
    """
    from headrace.commands.output_file import refuse_unwritable

    given = {"csv": csv, "json": json, "parquet": parquet}
    short = [name for name, path in given.items() if path is not None]
    if len(short) > 1 or (short and (form is not None or output is not None)):
        named = [
            *(f"--{name}" for name in short),
            *["--format"] * (form is not None),
            *["--output"] * (output is not None),
        ]
        raise click.UsageError(f"{' and '.join(named)} all say where the rows go: give one")
    if short:
        form, output = short[0], given[short[0]]
    path = None if output is None or str(output) == "-" else output
    if form is None:
        form = "table" if path is None else _BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        raise click.UsageError(
            f"--output {path}: give --format, or a name that ends in {', '.join(s for s in _BY_SUFFIX)}"
        )
    if path is not None:
        flag = f"--{short[0] if short else 'output'}"
        refuse_unwritable(path, f"{flag} {path}")
        if path.resolve().is_relative_to(Path(index).resolve()):
            raise click.UsageError(f"{flag} {path} lies in the index, which build-index alone writes to")
    elif form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is no text for a terminal: give --parquet FILE, or send it into a pipe or file")
    return RowTarget(form=form, path=path, limit=limit)
