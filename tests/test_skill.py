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


def test_no_basin_of_the_joint_training_is_there_twice_or_tested_on_years_of_its_training(tmp_path):
    joint = importlib.import_module("skill_runs.joint")
    settings = {"length": 90, "stride": 4, "loader": {"batch_size": 256}, "train": {"hidden_size": 16}}
    config = parse_config(joint.joint_config(tmp_path, settings))
    assert config.window.warmup_length == 89
    basins = [(s.store, basin) for s in joint.SOURCES.values() for basin in s.ids]
    assert len(set(basins)) == len(basins) == 49
    assert all(s.train[0] < s.train[1] < s.test[0] < s.test[1] for s in joint.SOURCES.values())
    for dataset in config.datasets.values():
        assert list(dataset.variables.relevant) == ["precipitation", "temperature", "potential_evapotranspiration"]


def row(side, seed, nse, seconds, **changes):
    return {
        "benchmark": "skill", "case": "camels_us", "side": side, "seed": seed, "cpu_seconds": seconds - 1,
        "nse_median": nse, "torch_threads": 1, "seconds": seconds, "import_seconds": 1.0,
        "prepare_seconds": 2.0, "train_seconds": 3.0, "evaluate_seconds": 4.0, "train_windows": 1000, "parameters": 77,
        "nse": {"1": nse, "2": nse}, "steps": {"1": 10, "2": 20},
        "settings": {"length": 90, "learning_rate_schedule": {"1": 0.1}, "clip_gradient_norm": 1.0},
        "note": "", "date": "2000-01-01", "commit": "abc", "processor": "p", "cores": 2,
    } | changes  # fmt: skip


def budget_row(seed, share, nse, decay="cosine"):
    return {
        "settings": {"length": 90, "learning_rate_decay": decay},
        "benchmark": "skill_budgets", "seed": seed, "budget_share": share, "memory_budget": 8192 if share else None,
        "nse_median": nse, "basins": 4, "train_windows": 1000,
        "decoded_rows": 4000, "decoded_nbytes": 65536, "round_rows": 256, "tiles_a_round": 7.6,
        "quality": {"distinct_basins_ratio": 0.5, "rounds": 9}, "nse": {"a": nse, "b": nse**2, "c": nse**2},
        "note": "", "date": "2000-01-01", "commit": "abc", "processor": "p", "cores": 2,
    }  # fmt: skip


ROWS = [
    *(row("neuralhydrology", seed, nse, 20.0) for seed, nse in enumerate([0.50, 0.54, 0.55])),
    *(row("headrace", seed, nse, 10.0) for seed, nse in enumerate([0.52, 0.53, 0.57])),
]
BUDGET_ROWS = [
    budget_row(seed, share, nse)
    for share, scores in {0.0: (0.70, 0.72), 1 / 2: (0.71, 0.70), 1 / 8: (0.60, 0.63)}.items()
    for seed, nse in enumerate(scores)
] + [budget_row(seed, share, 0.5 - share, "none") for seed in range(2) for share in (0.0, 1 / 4)]


def test_unlike_sides_are_refused():
    skill = importlib.import_module("skill")
    skill.check(ROWS)
    for changed in ({"train_windows": 999}, {"parameters": 78}, {"torch_threads": 2}, {"steps": {"1": 10, "2": 19}}):
        with pytest.raises(SystemExit, match=next(iter(changed))):
            skill.check([*ROWS, row("headrace", 9, 0.5, 1.0, **changed)])


def test_the_page_shows_seeds_means_difference_and_ratio(tmp_path, monkeypatch):
    report = importlib.import_module("skill_report")
    rows = tmp_path / "rows.jsonl"
    earlier = row("headrace", 0, -9.0, 99.0)
    unlike = {"length": 90, "learning_rate_schedule": {}, "clip_gradient_norm": None}
    others = [{"benchmark": "rivals"}, earlier, *ROWS, *(one | {"settings": unlike} for one in ROWS), *BUDGET_ROWS]
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
    assert "| resident | 64 | 9, then 1 | – | 0.50, then 1.00 | 0.700, 0.720 | 0.710 | – | – |" in page
    assert "| 1/2: 8 KiB | 64 | 9 | 8 | 0.50 | 0.710, 0.700 | 0.705 | -0.005 ± 0.015 | -0.007 ± 0.021 |" in page
    assert "| 1/8: 8 KiB | 64 | 9 | 8 | 0.50 | 0.600, 0.630 | 0.615 | -0.095 ± 0.005 | -0.126 ± 0.004 |" in page
    assert "Beyond 2 standard errors below the resident trainings: 1/8 (-0.126)." in prose
    assert "| 1/4: 8 KiB | 64 | 9 | 8 | 0.50 | 0.250, 0.250 | 0.250 | -0.250 ± 0.000 |" in page
    assert (tmp_path / "skill_memory.png").read_bytes()[:4] == b"\x89PNG"
    assert "-9.000" not in page
    assert [line for line in page.splitlines() if line.startswith("## ")][:2] == [
        "## camels_us",
        "## camels_us, constant learning rate, no clipping",
    ]
    assert all(len(line) <= 120 for line in page.splitlines() if line[:1] not in "|!")
