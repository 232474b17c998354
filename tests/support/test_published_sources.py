import gzip
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from published_sources import Source, read_source


def written(folder: Path, text: str, *, step: str = "1D", **table: Any) -> Source:
    """Write one table with one basin, and read it."""
    whole: Mapping[str, Any] = {
        "dir": "series",
        "time_columns": ["t"],
        "time_format": "%Y-%m-%d",
        "missing": ["NA"],
        "variables": [{"column": "q", "name": "flow", "units": "m3/s"}],
        **table,
    }
    (folder / "series").mkdir()
    with gzip.open(folder / "series" / "b.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    (folder / "meta.json").write_text(json.dumps({"step": step, "tables": [whole]}), encoding="utf-8")
    return read_source(folder)


def test_absent_rows_and_flags_are_missing_on_a_regular_axis(tmp_path: Path) -> None:
    source = written(tmp_path, "t,q\n2000-01-01,1\n2000-01-03,NA\n2000-01-04,-999.00\n2000-01-05,0\n", missing=["-999"])
    np.testing.assert_array_equal(source.values["flow"], [[1, np.nan, np.nan, np.nan, 0]])


def test_commas_semicolons_and_german_dates_are_read(tmp_path: Path) -> None:
    text = "t;q\n01.02.2000 02:00:00;1,5\n02.02.2000 00:00:00;Luecke\n"
    source = written(
        tmp_path, text, sep=";", decimal=",", time_format="%d.%m.%Y %H:%M:%S", missing=["Luecke"], floor="1D"
    )
    assert source.first == datetime(2000, 2, 1)
    np.testing.assert_array_equal(source.values["flow"], [[1.5, np.nan]])


def test_rows_of_another_parameter_are_left_out_and_a_column_may_have_several_names(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        "PARAM,y,m,d,05\n1,2000,1,1,7\n2,2000,1,1,9\n1,2000,1,2,8\n",
        time_columns=["y", "m", "d"],
        time_format="ymd",
        row_filter={"PARAM": "1"},
        variables=[{"column": ["02", "05"], "name": "flow", "units": "m3/s"}],
    )
    np.testing.assert_array_equal(source.values["flow"], [[7, 8]])


def test_of_a_repeated_time_the_row_that_is_asked_for_stays(tmp_path: Path) -> None:
    text = "t,q\n2000-01-01,1\n2000-01-01,2\n2000-01-02,3\n"
    for how, expected in (("first", [1, 3]), ("last", [2, 3])):
        folder = tmp_path / how
        folder.mkdir()
        np.testing.assert_array_equal(written(folder, text, duplicates=how).values["flow"], [expected])
    (tmp_path / "none").mkdir()
    with pytest.raises(AssertionError, match="twice"):
        written(tmp_path / "none", text)


def test_a_bare_last_date_means_its_whole_day_and_periods_stay_inside_the_record(tmp_path: Path) -> None:
    rows = "".join(f"2000-01-{day:02d} {hour:02d}:00,1\n" for day in (1, 2, 3) for hour in range(24))
    source = written(tmp_path, "t,q\n" + rows, step="1h", time_format="%Y-%m-%d %H:%M")
    assert source.period("2000-01-02", "2000-01-02") == (24, 48)
    assert source.period("2000-01-02 06:00", "2000-01-02 08:00") == (30, 33)
    assert source.period("1999-01-01", "2001-01-01") == (0, 72)
