"""What a build reports: counts that add up, named warnings, within 100 columns."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import headrace
from headrace.indexer.progress import Bar, Lines, Showing, progress_for
from headrace.indexer.summary import print_summary
from headrace.schemas.errors import ConfigError
from indexing import build_inline, config, dataset, rows
from synthetic import write_store


def printed(report):
    stream = io.StringIO()
    print_summary(report, Console(file=stream, width=200))
    return stream.getvalue()


def test_summary_fits_100_columns_and_counts_every_window(tmp_path, monkeypatch):
    holes = np.zeros((3, 40), bool)
    holes[0, 5:9] = True
    long = "a_data_set_with_a_rather_long_identifier"
    store = write_store(
        tmp_path / "s.zarr",
        variables=("total_precipitation_of_the_day", "streamflow"),
        steps=40,
        gaps={20: 2},
        missing={"streamflow": holes},
        fill_value=0.0,
    )
    section = dataset(store, t_range_test=["2000-01-20", "2030-01-01"])
    report, _ = build_inline(config({long: section}), tmp_path / "i", monkeypatch)
    text = printed(report)
    assert max(len(line) for line in text.splitlines()) <= 100
    total = sum(r["num_windows"] for r in rows(tmp_path / "i", "windows"))
    assert report.num_windows == total
    assert f"{total:,} windows in" in text
    for said in (
        "target missing",
        "record too short",
        "time gap",
        "clipped",
        "missing rule",
        report.manifest.index_digest,
    ):
        assert said in text


def test_names_that_begin_alike_are_told_apart_on_a_narrow_terminal(tmp_path, monkeypatch):
    names = [f"temperature_{which}_of_the_second_product" for which in ("maximum", "minimum")]
    store = write_store(tmp_path / "s.zarr", variables=(*names, "streamflow"), steps=20)
    report, _ = build_inline(config({"camels_us_daily": dataset(store)}), tmp_path / "i", monkeypatch)
    stream = io.StringIO()
    print_summary(report, Console(file=stream, width=80))
    table = stream.getvalue().split("Variables of ")[1].split("missing rule")[0]
    assert "…" not in table
    column = slice(table.splitlines()[1].index("variable"), table.splitlines()[1].index("role"))
    assert "".join(line[column].strip() for line in table.splitlines()[2:]).startswith("".join((*names, "streamflow")))


def test_shares_and_reasons_are_those_of_the_tables(tmp_path, monkeypatch):
    """I12: record of 10, window of 4: every window that is not served has a reason and a count."""
    holes = np.zeros((2, 10), bool)
    holes[1, 5] = True
    store = write_store(tmp_path / "s.zarr", basins=2, steps=10, missing={"streamflow": holes})
    window = {"hindcast_length": 4, "forecast_length": 0, "warmup_length": 3}
    report, _ = build_inline(config({"a": dataset(store)}, window=window), tmp_path / "i", monkeypatch)
    (split,) = report.splits
    assert (split.num_basins, split.num_windows, split.basins_without) == (2, 13, 0)
    assert split.dropped == {"record_too_short": 6, "target_missing": 1}
    for number, words in ((0, "have none"), (1, "; 1 basin has none"), (2, "; 2 basins have none")):
        told = printed(replace(report, splits=(replace(split, basins_without=number),)))
        assert (words in told) == (number > 0)
    assert split.num_windows + sum(split.dropped.values()) == 2 * 10
    flow = next(v for v in report.variables if v.variable == "streamflow")
    assert flow.missing_share == pytest.approx(1 / 20)
    assert "I12" not in printed(report)


@pytest.mark.parametrize(("steps", "basins"), [(5, 2), (1, 1)])
def test_record_shorter_than_the_window_gives_counts_instead_of_windows(tmp_path, monkeypatch, steps, basins):
    """B17: record of 5 with a window of 10; one basin and one step."""
    store = write_store(tmp_path / "s.zarr", basins=basins, steps=steps)
    window = {"hindcast_length": 10, "forecast_length": 0, "warmup_length": 9}
    report, _ = build_inline(config({"a": dataset(store)}, window=window), tmp_path / "i", monkeypatch)
    assert report.num_windows == 0
    assert report.splits[0].dropped == {"record_too_short": steps * basins}
    assert any("no window can be served" in w for w in report.warnings)


def test_plain_lines_say_what_is_left_and_how_fast():
    stream = io.StringIO()
    lines = Lines(stream)
    lines.start(num_units=10, num_kept=4, nbytes=2_500_000)
    lines._next = 0.0
    lines.advance(num_units=2, nbytes=1_000_000)
    lines.advance(num_units=3, nbytes=500_000)
    lines._next = 0.0
    lines.advance(num_units=1, nbytes=1_000_000)
    lines.finish()
    first, second, last = stream.getvalue().splitlines()
    assert first == "scanning 6 of 10 units, 2.5 MB decoded (4 units kept)"
    assert second.startswith("2 of 6 units, 1.0 MB of 2.5 MB, ")
    assert second.endswith(" s left")
    assert last.startswith("scanned 6 units, 2.5 MB decoded in ")
    assert last.endswith(" GB/s")


def test_a_scan_that_breaks_off_is_not_called_done_and_an_interrupt_is_answered():
    stream = io.StringIO()
    lines = Lines(stream)
    lines.start(num_units=3, num_kept=0, nbytes=30)
    lines.advance(num_units=1, nbytes=10)
    Showing(lines).__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    first, last = stream.getvalue().splitlines()
    assert first.startswith("scanning 3 of 3 units")
    assert last == "stopping when the chunks under way are read; Ctrl-C again leaves at once"


def test_a_variable_without_training_values_shows_none(tmp_path, monkeypatch):
    store = write_store(tmp_path / "s.zarr", steps=20, missing={"precipitation": np.ones((3, 20), bool)})
    report, _ = build_inline(config({"a": dataset(store)}), tmp_path / "i", monkeypatch)
    line = next(line for line in printed(report).splitlines() if line.startswith("precipitation"))
    assert "no values" in line
    assert "0" not in line.replace("100.0%", "")


def test_terminal_gets_a_bar_and_a_file_gets_lines():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert isinstance(progress_for(io.StringIO()), Lines)
    stream = Terminal()
    bar = progress_for(stream)
    assert isinstance(bar, Bar)
    bar.start(num_units=2, num_kept=1, nbytes=100)
    bar.advance(num_units=1, nbytes=100)
    bar.finish()
    assert "scanning 1 of 2 units, 100 B decoded (1 units kept)" in stream.getvalue()
    assert "scanned 1 units, 100 B decoded" in stream.getvalue()


@pytest.mark.parametrize(("first_tested", "shared"), [("2000-01-11", 0), ("2000-01-10", 1), ("2000-01-03", 8)])
def test_periods_that_share_days_with_training_are_remarked_on(tmp_path, monkeypatch, first_tested, shared):
    store = write_store(tmp_path / "s.zarr", variables=("rain", "streamflow"), steps=40)
    periods = {"t_range_train": ["2000-01-01", "2000-01-10"], "t_range_test": [first_tested, "2000-01-30"]}
    report, _ = build_inline(config({"d": dataset(store, **periods)}), tmp_path / "i", monkeypatch)
    text = " ".join(printed(report).split())
    assert (f"t_range_train and t_range_test share {shared} steps of" in text) == (shared > 0)
    assert ("t_range_train and t_range_test share" in text) == (shared > 0)


@pytest.mark.parametrize(("length", "fits"), [(21, True), (22, False)])
def test_a_window_that_no_period_has_room_for_is_remarked_on(tmp_path, monkeypatch, length, fits):
    store = write_store(tmp_path / "s.zarr", variables=("rain", "streamflow"), steps=40, gaps={20: 2})
    window = {"hindcast_length": length, "forecast_length": 0, "warmup_length": 0}
    report, _ = build_inline(config({"d": dataset(store)}, window=window), tmp_path / "i", monkeypatch)
    text = " ".join(printed(report).split())
    assert ("no window fits t_range_train: it takes 22 steps in a row" in text) == (not fits)
    assert (report.num_windows > 0) == fits


@pytest.mark.parametrize("allowed", [False, True])
def test_data_sets_of_two_time_steps_are_remarked_on_before_a_loader_refuses_them(tmp_path, monkeypatch, allowed):
    stores = {
        name: write_store(tmp_path / f"{name}.zarr", variables=("rain", "streamflow"), steps=40, step_seconds=seconds)
        for name, seconds in {"a": 86_400, "b": 3600, "c": 86_400}.items()
    }
    sections = {name: dataset(store, t_range_train=["2000-01-01", "2000-01-02"]) for name, store in stores.items()}
    settings = config(sections, window={"hindcast_length": 1}, loader={"allow_mixed_time_steps": allowed})
    report, _ = build_inline(settings, tmp_path / "i", monkeypatch)
    text = " ".join(printed(report).split())
    assert ("time steps differ, 86400 s in a, 3600 s in b, 86400 s in c" in text) == (not allowed)
    with headrace.open_index(tmp_path / "i") as index:
        if not allowed:
            with pytest.raises(ConfigError, match="--datasets a,c, in Python"):
                headrace.WindowLoader(index, "train")
        headrace.WindowLoader(index, "train", datasets=None if allowed else ["a", "c"]).close()
