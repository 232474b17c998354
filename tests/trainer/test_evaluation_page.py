"""docs/evaluation.md lists every column of metrics.csv and every note, and none that does not exist."""

import inspect
import re

from headrace.trainer import flow_duration, peak_timing, scores
from headrace.trainer.comparable import MIXED
from headrace.trainer.metrics import METRIC_COLUMNS
from tree import REPOSITORY

PAGE = (REPOSITORY / "docs" / "evaluation.md").read_text(encoding="utf-8")
# Columns of the table that say whose row it is, not how it scored.
KEYS = {"scope", "dataset_id", "basin_id", "target", "nse_pooled", "note"}


def first_cells(heading):
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_column_is_listed():
    assert first_cells("Columns of `metrics.csv`") - {"note"} == set(METRIC_COLUMNS) - KEYS


def test_every_note_is_listed():
    sources = "".join(inspect.getsource(module) for module in (flow_duration, peak_timing, scores))
    known = set(re.findall(r'"((?:no|constant|zero|too_few|negative|floored)_\w+)"', sources))
    assert first_cells("What is undefined, and why") - {"note"} == known | set(MIXED)
    assert len(known) == 11
