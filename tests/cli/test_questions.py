"""docs/questions.md: every question, asked of the demo's index, has the answer on the page, also without Headrace."""

import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import zarr

import headrace
from build_here import build_here
from command_line import run_headrace
from headrace.commands.row_formats import plain
from headrace.demo.stores import write_demo_stores
from headrace.schemas.config_io import load_config, parse_config
from headrace.schemas.presets import read_preset
from headrace.schemas.views import VIEWS
from published_store import write_published
from tool_process import install
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "questions.md").read_text(encoding="utf-8")
ANSWERED = re.findall(
    r"^## \d+\. (.*?)$.*?```sql\n(.*?)```\n\n```text\n(.*?)```\n", PAGE, flags=re.DOTALL | re.MULTILINE
)
OF_CARAVAN = "'caravan'"
"""In a query that is asked of another index than the demo's."""

PLAIN = """
import json, sys, duckdb
assert not any(name.partition(".")[0] == "headrace" for name in sys.modules)
connection = duckdb.connect()
connection.execute(open("views.sql", encoding="utf-8").read())
for query in json.load(sys.stdin):
    print(json.dumps(connection.execute(query).fetchall(), default=str))
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder that holds `demo`, as `headrace demo --out demo` leaves it, but for the trained model."""
    folder = tmp_path_factory.mktemp("questions")
    config = load_config(write_demo_stores(folder / "demo"))
    build_here(config, folder / "demo" / "index")
    return folder


@pytest.fixture(scope="module")
def caravan(tmp_path_factory):
    """Index of a stand-in for Caravan: its preset's stores, with precipitation missing in three stretches."""
    folder = tmp_path_factory.mktemp("caravan")
    write_published(folder, "caravan")
    preset = read_preset("caravan")
    rain = zarr.open_group(folder / preset.timeseries, mode="r+")["total_precipitation_sum"]
    first = np.datetime64(preset.first)
    for basin, start, stop in (
        (0, "1994-12-20", "1995-01-11"),
        (0, "1995-06-01", "1995-07-01"),
        (1, "1995-06-10", "1995-06-15"),
    ):
        steps = ((np.array([start, stop], "M8[D]") - first) // np.timedelta64(1, "D")).tolist()
        rain[basin, slice(*steps)] = np.nan
    stores = {kind: str(folder / getattr(preset, kind)) for kind in ("timeseries", "attributes")}
    config = parse_config({"datasets": {"caravan": stores}, "missing": {"static_missing": "impute"}})
    build_here(config, folder / "index")
    return folder / "index"


def test_the_page_has_ten_questions_and_each_its_answer():
    assert len(re.findall(r"^## \d+\. ", PAGE, flags=re.MULTILINE)) == len(ANSWERED) == 10
    assert max(len(line) for line in PAGE.splitlines()) <= 130


@pytest.mark.parametrize(("query", "answer"), [pytest.param(q, a, id=title) for title, q, a in ANSWERED])
def test_the_answer_on_the_page_is_that_of_the_index(demo, caravan, query, answer):
    outcome = run_headrace("sql", caravan if OF_CARAVAN in query else demo / "demo" / "index", query)
    assert outcome.code == 0, outcome.err
    *table, timing = [line.rstrip() for line in outcome.out.splitlines()]
    assert table == answer.splitlines()
    assert re.match(r"\d+ rows? in", timing)


def test_commands_on_the_page_run(demo, monkeypatch, tmp_path):
    monkeypatch.chdir(demo)
    question = tmp_path / "question.sql"
    question.write_text(ANSWERED[0][1])
    found = re.findall(r"^    headrace (.*)$", PAGE, flags=re.MULTILINE) + re.findall(r"`headrace (\w+ .*?)`", PAGE)
    commands = [command for command in found if not command.startswith(("demo", "build-index --dataset-id caravan"))]
    assert len(commands) >= 4
    for command in commands:
        outcome = run_headrace(*(str(question) if a == question.name else a for a in shlex.split(command)))
        assert outcome.code == 0, f"{command}\n{outcome.err}"
        assert outcome.out


def test_a_loader_serves_as_many_windows_as_the_arithmetic_says(demo):
    """Question 2, word for word in Python."""
    [shape] = re.findall(r'WindowLoader\(index, "train", window=(\{.*?\})\)', PAGE)
    query = ANSWERED[1][1]
    with headrace.open_index(demo / "demo" / "index") as index:
        told = {row["dataset_id"]: row["windows_of_30_days"] for row in index.sql(query).to_pylist()}
        for name, num_windows in told.items():
            with headrace.WindowLoader(index, "train", window=json.loads(shape), datasets=[name]) as loader:
                assert loader.num_windows == num_windows


def test_a_basin_that_was_never_observed_does_not_stand_out(tmp_path):
    """Question 9, where statistics are NaN."""
    config = load_config(write_demo_stores(tmp_path))
    data = config.datasets["alpine"]
    array = zarr.open_group(data.timeseries, mode="r+")[data.variables.target["streamflow"].physical]
    flags = array.attrs.get("_FillValue", np.nan)
    array[:] = np.where(np.arange(array.shape[0])[:, None] == 0, flags, array[:])
    with headrace.open_index(build_here(config, tmp_path / "index")) as index:
        unseen = index.sql("FROM stats WHERE scope = 'basin' AND variable = 'streamflow' AND \"count\" = 0")
        assert unseen.num_rows == 1
        deviations = index.sql(ANSWERED[8][1])["deviations"].to_pylist()
    assert len(deviations) == 5
    assert np.isfinite(deviations).all()


def test_views_and_questions_are_answered_by_plain_duckdb_inside_the_folder(demo, caravan):
    views = [f"FROM {name} ORDER BY ALL" for name in VIEWS]
    asked = {demo / "demo" / "index": views, caravan: list[str]()}
    for _, query, _ in ANSWERED:
        asked[caravan if OF_CARAVAN in query else demo / "demo" / "index"].append(query)
    for folder, queries in asked.items():
        done = subprocess.run(
            [sys.executable, "-I", "-c", PLAIN], input=json.dumps(queries), cwd=folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        with headrace.open_index(folder) as index:
            for query, line in zip(queries, done.stdout.splitlines(), strict=True):
                ours = [list(map(plain, row.values())) for row in index.sql(query).to_pylist()]
                assert json.loads(line) == json.loads(json.dumps(ours, default=str)), query


@pytest.mark.network
def test_the_duckdb_shell_reads_views_sql(demo):
    environment = {**os.environ, "PYTHONPATH": str(install(["duckdb-cli==1.5.6"]))}
    queries = "".join(f"SELECT '{name}' AS view, count(*) AS n FROM {name};\n" for name in VIEWS)
    done = subprocess.run(
        [sys.executable, "-m", "duckdb_cli", "-init", "views.sql", "-csv", "-noheader"], input=queries,
        cwd=demo / "demo" / "index", env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = dict(line.split(",") for line in done.stdout.splitlines() if "," in line)
    with headrace.open_index(demo / "demo" / "index") as index:
        for name in VIEWS:
            assert int(found[name]) == index.sql(f"SELECT count(*) AS n FROM {name}")["n"][0].as_py()
