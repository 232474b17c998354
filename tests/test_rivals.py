"""The benchmark against other tools serves the windows it says, counts them right and reports what it measured."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
import zarr

from build_here import build_here
from headrace.schemas.config_io import parse_config
from tree import REPOSITORY

LENGTH = 30


@pytest.fixture(scope="module", autouse=True)
def benchmarks():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks"))
        yield


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """What every side of a small store is given."""
    stores = importlib.import_module("stores")
    folder = tmp_path_factory.mktemp("rivals")
    shape = replace(stores.DAILY, name="small", basins=3, steps=100, variables=3, chunks=(3, 40))
    store = stores.write_store(shape, folder)
    build_here(parse_config(stores.config_text(shape, store)), folder / "index")
    return {
        "store": str(store), "index": str(folder / "index"), "names": shape.names, "basins": 3, "steps": 100,
        "length": LENGTH, "batch_size": 16, "seconds": 60.0, "work_dir": str(folder),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        ("headrace", {"memory_budget": "auto", "epoch": 0}),
        ("headrace", {"memory_budget": "auto", "epoch": 1}),
        ("xarray", {"in_memory": True, "workers": 0}),
        ("xarray", {"in_memory": False}),
    ],
)
def test_a_side_serves_every_window_once_and_counts_them(job, program, settings):
    side = importlib.import_module(f"rivals.{program}_side").side
    row = side({**job, "settings": settings})
    assert row["windows"] == 3 * (100 - LENGTH + 1)
    assert row["windows_per_second"] == pytest.approx(row["windows"] / row["seconds"])
    first = 1 if settings.get("in_memory") is False else job["batch_size"]
    later = (row["windows"] - first) / (row["seconds"] - row["first_seconds"])
    assert row["later_windows_per_second"] == pytest.approx(later)
    assert 0 <= row["first_seconds"] <= row["seconds"]
    assert row["setup_seconds"] > 0


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_window_cut_out_of_xarray_is_that_of_the_store(job, in_memory):
    side = importlib.import_module("rivals.xarray_side")
    data = side.open_store({**job, "settings": {"in_memory": in_memory}})
    windows = side.SlicedDataset(data, job["names"], LENGTH)
    x, y = windows[2 * (100 - LENGTH + 1) + 7]
    group = zarr.open_group(job["store"], mode="r")
    wanted = np.stack([group[name][2, 7 : 7 + LENGTH] for name in job["names"][:-1]], axis=-1)
    np.testing.assert_array_equal(x.numpy(), wanted.astype(np.float32))
    np.testing.assert_array_equal(y.numpy(), group["flow"][2, 6 + LENGTH : 7 + LENGTH].astype(np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_serving_ends_when_time_is_up(job, threads):
    bare = importlib.import_module("rivals.bare_side")
    row = bare.side({**job, "seconds": 0.02, "settings": {"threads": threads}})
    assert row["seconds"] >= 0.02
    assert row["windows"] > 0
    assert row["windows"] % job["batch_size"] == 0


def rates(monkeypatch, table):
    """Answer instead of a process: windows per second by settings; None fails."""
    measure = importlib.import_module("rivals.measure")
    asked = []

    def answer(side, settings, base, seconds, limits, work_dir):
        asked.append((side.name, settings.get("workers"), seconds))
        rate = table[side.name, settings.get("workers")]
        if rate is None:
            return {"error": "nothing within 1 s"}
        return {
            "windows_per_second": rate, "later_windows_per_second": rate + 1, "setup_seconds": 1.5,
            "first_seconds": 0.1, "windows": 10, "seconds": 2.0, "peak_rss_bytes": 2**30,
        }  # fmt: skip

    monkeypatch.setattr(measure, "_ask", answer)
    return measure, asked


def rows_of(monkeypatch, tmp_path, table):
    measure, asked = rates(monkeypatch, table)
    sides = importlib.import_module("rivals.sides")
    grid = [{"workers": 0}, {"workers": 2}]
    contenders = [
        sides.Side(name="Headrace", program="headrace", defaults={}),
        sides.Side(name="other", program="xarray", defaults={"workers": 0}, grid=grid),
        sides.Side(name="third", program="xarray", defaults={"workers": 0}, grid=grid[:1]),
    ]
    limits = measure.Limits(seconds=9.0, sweep_seconds=3.0, setup_seconds=1.0, repeats=2)
    return measure.measure(contenders, {}, limits, tmp_path), asked


RATES = {("Headrace", None): 900.0, ("other", 0): 100.0, ("other", 2): 300.0, ("third", 0): None}


def test_the_best_of_a_grid_is_measured_beside_the_defaults_in_turn(monkeypatch, tmp_path):
    rows, asked = rows_of(monkeypatch, tmp_path, RATES)
    assert asked[:3] == [("other", 0, 3.0), ("other", 2, 3.0), ("third", 0, 3.0)]
    turn = [("Headrace", None, 9.0), ("other", 0, 9.0), ("other", 2, 9.0)]
    # What gave no rate is not asked again.
    assert asked[3:] == [*turn, ("third", 0, 9.0), *turn]
    found = {(row["side"], row["role"]): row["windows_per_second"] for row in rows}
    assert found["other", "best of the grid"] == [300.0, 300.0]
    assert found["other", "defaults"] == [100.0, 100.0]
    assert found["third", "defaults"] == []
    assert ("third", "best of the grid") not in found


def test_the_page_names_the_rival_that_comes_closest_and_what_failed(monkeypatch, tmp_path):
    report = importlib.import_module("rivals.report")
    common = {
        "store": "small", "length": 365, "batch_size": 512, "date": "2026-01-01", "commit": "abc", "processor": "P",
        "cores": 2, "memory_gib": 24, "limits": {"seconds": 9.0, "sweep_seconds": 3.0}, "index_seconds": 4.0,
    }  # fmt: skip
    rows = [row | common for row in rows_of(monkeypatch, tmp_path, RATES)[0]]
    stores = report.by_store([*rows, *rows])
    page = report.page(stores, "picture.png")
    assert "| other | best of the grid: workers 2 | 300 | 300 to 300 | 301 | 3.00 × | 1.5 | 1.00 |" in page
    assert "| third | defaults: workers 0 | none: nothing within 1 s |" in page
    assert "Closest: other (best of the grid), of which Headrace is 3.0 ×." in page
    report.draw(stores).savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
