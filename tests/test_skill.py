"""The comparison of skill trains like with like, refuses unlike things, and reports what its rows hold."""

import importlib
import json

import pytest

from headrace.schemas.config_io import parse_config
from tree import REPOSITORY


@pytest.fixture(scope="module", autouse=True)
def benchmarks():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks"))
        yield


def job(case="camels_us", **changes):
    cases = importlib.import_module("skill_runs.cases")
    return cases.Job(case=case, stores="stores", work_dir="work", netcdf="netcdf", seed=3, **changes)


@pytest.mark.parametrize("case", ["camels_fr", "camels_us"])
def test_both_sides_are_told_the_same(case):
    cases = importlib.import_module("skill_runs.cases")
    settings = {"epochs": 2, "hidden_size": 24, "length": 90}
    ours = parse_config(cases.headrace_config(job(case, settings=settings)))
    theirs = cases.neuralhydrology_config(job(case, settings=settings))
    assert ours.train.hidden_size == theirs["hidden_size"] == 24
    assert ours.train.train_epochs == theirs["epochs"] == 2
    assert ours.window.hindcast_length + ours.window.forecast_length == theirs["seq_length"] == 90
    assert ours.window.warmup_length == 90 - theirs["predict_last_n"]
    # neuralhydrology counts epochs from 1, and 0 stands for the first.
    later = {epoch + 1: rate for epoch, rate in ours.train.learning_rate_schedule.items()}
    assert {0: ours.train.learning_rate} | later == theirs["learning_rate"]
    assert len(later) == 2
    assert ours.train.dropout == theirs["output_dropout"]
    assert ours.train.clip_gradient_norm == theirs["clip_gradient_norm"]
    assert ours.train.initial_forget_bias == theirs["initial_forget_bias"]
    assert (ours.train.loss, theirs["loss"]) == ("nse", "NSE")
    assert ours.loader.batch_size == theirs["batch_size"]
    assert ours.loader.seed == theirs["seed"] == 3
    for dataset in ours.datasets.values():
        assert list(dataset.variables.relevant) == theirs["dynamic_inputs"]
        assert list(dataset.variables.target) == theirs["target_variables"]
        assert list(dataset.variables.constant) == theirs["static_attributes"]


def test_budgets_are_shares_of_every_decoded_value_that_windows_read():
    skill, cases = (importlib.import_module(name) for name in ("skill", "skill_runs.cases"))
    part = cases.Part(
        basins=["a", "b"], target="q", train=("2000-01-01", "2000-01-10"), test=("2001-01-01", "2001-01-02")
    )
    case = cases.Case(source="s", inputs={"p": "p", "t": "t"}, statics={}, parts={"d": part})
    # 10 days and the 4 before them, of two inputs and the target in two basins.
    assert skill.decoded_nbytes(case, length=5) == 2 * 14 * 3 * 4
    assert parse_config(cases.headrace_config(job(memory_budget=4096))).loader.memory_budget == 4096


def row(side, seed, nse, seconds, share=None, **changes):
    return {
        "benchmark": "skill", "case": "camels_us", "side": side, "seed": seed, "budget_share": share,
        "cpu_seconds": seconds - 1,
        "memory_budget": None if share is None else 8192, "nse_median": nse, "torch_threads": 1,
        "seconds": seconds, "import_seconds": 1.0,
        "prepare_seconds": 2.0, "train_seconds": 3.0, "evaluate_seconds": 4.0, "train_windows": 1000, "parameters": 77,
        "nse": {"1": nse, "2": nse}, "steps": {"1": 10, "2": 20}, "rounds": 5,
        "settings": {"length": 90, "learning_rate_schedule": {"1": 0.1}},
        "quality": {"distinct_basins_ratio": 0.5}, "note": "", "date": "2000-01-01", "commit": "abc", "processor": "p",
        "cores": 2,
    } | changes  # fmt: skip


ROWS = [
    *(row("neuralhydrology", seed, nse, 20.0) for seed, nse in enumerate([0.50, 0.54, 0.55])),
    *(row("headrace", seed, nse, 10.0) for seed, nse in enumerate([0.52, 0.53, 0.57])),
    *(row("headrace", seed, nse, 12.0, share=1 / 8) for seed, nse in enumerate([0.51, 0.56, 0.55])),
]


def test_unlike_sides_are_refused():
    skill = importlib.import_module("skill")
    skill.check(ROWS)
    for changed in ({"train_windows": 999}, {"parameters": 78}, {"torch_threads": 2}, {"steps": {"1": 10, "2": 19}}):
        with pytest.raises(SystemExit, match=next(iter(changed))):
            skill.check([*ROWS, row("headrace", 9, 0.5, 1.0, **changed)])


def test_the_page_shows_seeds_means_difference_and_ratio(tmp_path, monkeypatch):
    report = importlib.import_module("skill_runs.report")
    rows = tmp_path / "rows.jsonl"
    earlier = row("headrace", 0, -9.0, 99.0)
    constant = [one | {"settings": {"length": 90, "learning_rate_schedule": {}}} for one in ROWS]
    others = [{"benchmark": "rivals"}, earlier, *ROWS, *constant]
    rows.write_text("".join(json.dumps(one) + "\n" for one in others))
    monkeypatch.setattr("sys.argv", ["report.py", str(rows), "--out", str(tmp_path / "skill.md")])
    report.main()
    page = (tmp_path / "skill.md").read_text(encoding="utf-8")
    assert (tmp_path / "skill.png").read_bytes()[:4] == b"\x89PNG"
    assert "| neuralhydrology 1.13.0 | 0.500, 0.540, 0.550 | 0.530 | 20.0 | 1.0, 2.0, 3.0, 4.0 | 19.0 |" in page
    assert "| Headrace | 0.520, 0.530, 0.570 | 0.540 | 10.0 |" in page
    prose = " ".join(page.split())
    assert "differ by +0.010, within the 0.050" in prose
    assert "2.00 × as fast as neuralhydrology, which uses 2.11 × its CPU seconds" in prose
    assert "| 1/8: 8 KiB | 5 | 0.50 | 0.510, 0.560, 0.550 | 0.540 | 12.0 |" in page
    said = "All 3 bounded trainings together have a mean of 0.540, +0.000 from the resident ones and inside their range"
    assert said in prose
    assert "-9.000" not in page
    assert [line for line in page.splitlines() if line.startswith("## ")][:2] == [
        "## camels_us",
        "## camels_us, constant learning rate",
    ]
    assert all(len(line) <= 120 for line in page.splitlines() if line[:1] not in "|!")
