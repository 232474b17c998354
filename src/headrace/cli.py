"""The root of the command line: finds the subcommand, and turns errors into messages and exit codes.

Exit codes: 2 configuration or usage, 3 source, 4 stale or foreign index, 130 after Ctrl-C, 1 anything else.
"""

import logging
import sys
from importlib import import_module
from typing import NoReturn

import click

from headrace import __version__
from headrace.commands.interrupts import leave, orderly_interrupts
from headrace.schemas.errors import HeadraceError

_COMMANDS = {
    "build-index": ("headrace.commands.build_index", "build_index_command", "Scan stores once and write the index."),
    "check": ("headrace.commands.check", "check_command", "Check a configuration or an index."),
    "train": ("headrace.commands.train", "train_command", "Train a model from an index."),
    "evaluate": ("headrace.commands.evaluate", "evaluate_command", "Score a trained run on a split."),
    "bench": ("headrace.commands.bench", "bench_command", "Time the loader on an index."),
    "inspect": ("headrace.commands.inspect", "inspect_command", "Look at an index: coverage, gaps, dropped windows, …"),
    "sql": ("headrace.commands.sql", "sql_command", "Ask an index a question in SQL."),
    "report": ("headrace.commands.report", "report_command", "Write a page about an index or a run."),
    "demo": ("headrace.commands.demo", "demo_command", "See the whole job on two small synthetic data sets."),
}


class _LazyGroup(click.Group):
    """A group that imports a subcommand only when it is run; ``--help`` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="headrace")
@click.option("--verbose", is_flag=True, help="Log what happens below the progress display.")
def headrace(*, verbose: bool) -> None:
    """Keep a training loop fed from Zarr stores that do not fit in memory.

    Index once, then stream shuffled windows at memory speed.

    \b
    Example:
      headrace demo                                   # see it all in two minutes
      headrace build-index basins.yml --out index/    # scan the stores once
      headrace train --config basins.yml --index index/ --run-dir runs/first
      headrace evaluate runs/first --split test
    """
    set_up_logging(verbose=verbose)


def set_up_logging(*, verbose: bool) -> None:
    """Send warnings of this package to stderr as plain lines; everything with ``verbose``."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        logging.Formatter(
            "%(levelname)s: %(message)s" if not verbose else "%(asctime)s %(name)s %(levelname)s: %(message)s"
        )
    )
    logger = logging.getLogger("headrace")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)


def run(command: click.Command, name: str) -> NoReturn:
    """Run a click command and leave with its exit code."""
    try:
        with orderly_interrupts():
            command.main(prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeadraceError as error:
        click.echo(f"Error{_rank()}: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        text = str(error)
        click.echo(f"Stopped. {text}".rstrip(), err=True)
        leave()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    sys.exit(0)


def _rank() -> str:
    """Say which of several processes speaks."""
    from headrace.trainer.launch import rank, world_size

    return f" of process {rank()} of {world_size()}" if world_size() > 1 else ""


def main() -> NoReturn:
    """Entry point ``headrace``."""
    run(headrace, "headrace")


def build_index_main() -> NoReturn:
    """Entry point ``build-index``."""
    set_up_logging(verbose=False)
    run(_command("build-index"), "build-index")


def train_main() -> NoReturn:
    """Entry point ``train``."""
    set_up_logging(verbose=False)
    run(_command("train"), "train")


def _command(name: str) -> click.Command:
    module, attribute, _ = _COMMANDS[name]
    command: click.Command = getattr(import_module(module), attribute)
    return command
