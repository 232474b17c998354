"""The command line explains itself, quickly: `--help` loads none of the heavy libraries."""

import subprocess
import sys

import pytest

from command_line import run_headrace
from headrace.cli import _COMMANDS
from headrace.schemas.tables import TABLES
from headrace.schemas.views import VIEWS

HEAVY = ("dask", "distributed", "duckdb", "torch", "zarr", "xarray", "matplotlib")


def test_root_help_lists_every_command():
    outcome = run_headrace("--help")
    assert outcome.code == 0
    assert all(name in outcome.out for name in _COMMANDS)


@pytest.mark.parametrize("command", [*_COMMANDS, None])
def test_every_help_has_an_example(command):
    outcome = run_headrace(*([command] if command else []), "--help")
    assert outcome.code == 0
    assert "Example" in outcome.out
    after = outcome.out.partition("Example")[2]
    assert f"headrace {command}" in after or f"{command} " in after if command else "headrace demo" in after


@pytest.mark.parametrize(
    "arguments", [[], ["train"], ["evaluate"], ["demo"], ["inspect"], ["sql"], ["report"], ["build-index"], ["bench"]]
)
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys; sys.argv = ['headrace', *sys.argv[1:]]\n"
        "from headrace.cli import main\n"
        "try:\n    main()\nexcept SystemExit as exit_:\n    assert exit_.code == 0\n"
        f"loaded = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_help_of_sql_names_every_table():
    named = run_headrace("sql", "--help").out.partition("of its own name:")[2].partition(".")[0]
    assert {word.strip() for word in named.split(",")} == set(TABLES)
    answers = run_headrace("sql", "--help").out.partition("often asked:")[2].partition(".")[0]
    assert {word.strip() for word in answers.split(",")} == set(VIEWS)


def test_an_unknown_command_is_a_usage_error():
    outcome = run_headrace("teach")
    assert outcome.code == 2
    assert "teach" in outcome.err
