"""docs/inspecting.md: what it tells people to type runs, and what it lists is what there is."""

import re
import shlex

import matplotlib as mpl

from command_line import run_headrace
from headrace.commands.inspect import _TOPICS
from headrace.schemas.tables import TABLES
from headrace.schemas.views import VIEWS
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "inspecting.md").read_text(encoding="utf-8")
NAMES = {"camels_us": "one", "01013500,01022500": "01000500,01001500", "1995": "2000", "1990-10": "2000-02"}


def test_commands_on_the_page_run(project):
    (project / "question.sql").write_text("from datasets")
    commands = re.findall(r"^    headrace (.*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) >= 9
    for command in commands:
        words = shlex.split(re.sub(r"\| head| < question.sql", lambda m: " -f question.sql" * ("<" in m[0]), command))
        outcome = run_headrace(*(NAMES.get(word, word) for word in words))
        assert outcome.code == 0, f"{command}\n{outcome.err}"
        assert outcome.out or "written to" in outcome.err
    assert (project / "runs.parquet").exists()


def test_the_python_example_runs(project):
    mpl.use("Agg")
    [example] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(example.replace("camels_us", "one"), "inspecting.md", "exec"), {})
    assert (project / "coverage.png").exists()
    from matplotlib import pyplot as plt

    plt.close("all")


def test_topics_and_filters_are_those_of_the_command():
    rows = re.findall(r"^\| `(\w+)` \| .* \| `(--.*)` \|$", PAGE, flags=re.MULTILINE)
    assert {topic: flags.split() for topic, flags in rows} == {
        name: [f"--{flag}" for flag in topic.filters] for name, topic in _TOPICS.items()
    }
    helped = run_headrace("inspect", "--help").out
    for name, topic in _TOPICS.items():
        assert re.search(rf"^ +{name} .* {', '.join(topic.filters)}$", helped, flags=re.MULTILINE), name


def test_tables_and_views_are_all_on_the_page():
    listed = PAGE.partition("The tables are ")[2].partition(";")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(TABLES)
    first = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.partition("These views stand")[2], flags=re.MULTILINE)
    assert {name for cell in first for name in re.findall(r"\w+", cell)} == set(VIEWS)
