"""Calendars that NumPy does not know, from the store to the batch: every value stands at its date (B10)."""

import csv
import io
from pathlib import Path

import cftime
import numpy as np
import pytest

import headrace
from build_here import build_here
from command_line import run_headrace
from encoding import decode_value
from headrace.schemas.config_io import parse_config
from synthetic import write_store

WARMUP, LENGTH = 2, 4


def index_of(folder: Path, calendar: str, train: tuple[str, str], hole: int) -> Path:
    """Index a store of two basins from 20 February 2000 on; the second lacks rain at one step."""
    missing = np.zeros((2, 40), dtype=bool)
    missing[1, hole] = True
    store = write_store(
        folder / "s.zarr",
        basins=2,
        steps=40,
        variables=("rain", "flow"),
        chunks=(1, 7),
        calendar=calendar,
        time_start="2000-02-20",
        missing={"rain": missing},
    )
    section = {
        "timeseries": str(store.path),
        "t_range_train": list(train),
        "t_range_test": ["2000-03-10", "2000-03-20"],
        "variables": {"relevant": ["rain"], "target": ["flow"]},
    }
    config = {
        "datasets": {"d": section},
        "window": {"hindcast_length": LENGTH, "forecast_length": 0, "warmup_length": WARMUP},
        "normalization": {"method": "none"},
    }
    return build_here(parse_config(config), folder / "index")


@pytest.mark.parametrize(
    ("calendar", "train", "leap_day", "days"),
    [
        ("noleap", ("2000-02-26", "2000-03-04"), None, 7),
        ("360_day", ("2000-02-26", "2000-03-04"), "2000-02-30", 9),
        ("standard", ("2000-02-26", "2000-03-04"), "2000-02-29", 8),
    ],
)
def test_values_stand_at_their_dates_and_inspect_names_them(tmp_path, calendar, train, leap_day, days):
    first = cftime.datetime(2000, 2, 20, calendar=calendar)
    numbers = cftime.date2num(first, "days since 2000-01-01", calendar=calendar) + np.arange(40)
    dates = [
        f"{d:%Y-%m-%d}" for d in cftime.num2date(numbers, "days since 2000-01-01", calendar=calendar)
    ]  # fmt: skip
    assert [d for d in ("2000-02-29", "2000-02-30") if d in dates][-1:] == ([leap_day] if leap_day else [])
    hole = dates.index(leap_day or "2000-02-28")
    index_folder = index_of(tmp_path, calendar, train, hole)
    seen: set[tuple[int, str]] = set()
    with (
        headrace.open_index(index_folder) as index,
        headrace.WindowLoader(index, "train", batch_size=5, num_workers=1) as loader,
    ):
        assert [str(t)[:10] for t in index.times("d")] == dates
        for batch in loader:
            for basin, start, x, y in zip(batch.basin.tolist(), batch.start.tolist(), batch.x, batch.y, strict=True):
                for step in range(LENGTH):
                    if (basin, start + step) == (1, hole):
                        assert x[step, 0] == 0
                    else:
                        assert decode_value(x[step, 0].item()) == (0, 0, basin, start + step)
                for step, value in enumerate(y[:, 0].tolist(), start=start + WARMUP):
                    assert decode_value(value) == (0, 1, basin, step)
                    seen.add((basin, dates[step]))
    wanted = [d for d in dates if train[0] <= d <= train[1]]
    assert len(wanted) == days
    assert seen == {(basin, d) for basin in (0, 1) for d in wanted}
    gaps = run_headrace("inspect", index_folder, "gaps", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(gaps.out))
    assert (row["variable"], row["missing_steps"], row["from_time"][:10]) == ("rain", "1", dates[hole])
    years = run_headrace("inspect", index_folder, "coverage", "--format", "csv")
    assert {row["year"] for row in csv.DictReader(io.StringIO(years.out))} == {"2000"}
