"""A store whose metadata, coordinates or attributes changed after the build is never served as if it had not (F7)."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zarr

import headrace
from build_here import build_here
from command_line import run_headrace
from headrace.schemas.errors import ConfigError, HeadraceError, SourceError, StaleIndexError
from headrace.store import StoredArray
from indexing import build_inline, table_bytes
from oracle_loader import OracleLoader, check_epoch
from store_changes import CHANGES, HARMLESS, Changing, copied, edit, swap, touch, write_changing

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
NO_REBUILD = ("renamed_id", "array_gone", "static_gone")
"""Changes after which this configuration fits its stores no more."""
BOTH_FORMATS = ("fill_value", "dtype", "codec", "chunks")
CASES = [(k, f) for i, k in enumerate(CHANGES) for f in ((2, 3) if k in BOTH_FORMATS else (2 + i % 2,))]
FACTORS = {"units": 1e-3, "area_unit": 100.0}
"""Changes of units, and what becomes of flow; the oracle knows one pair of units only."""
FRESH = ("reversed_ids", "time_shifted", "scale_factor", "appended", "static_values")
RESCANNED = {
    **{kind: {"flow"} for kind in ("scale_factor", "fill_value", "units")},
    **{kind: {"rain"} for kind in ("add_offset", "missing_value", "_FillValue", "dtype", "codec", "chunks")},
    "appended": {"rain", "flow"},
    "time_shifted": {"rain", "flow"},  # the same periods cut the steps elsewhere
    "array_new": {"warmth"},
    # a volume over the area of another basin, or another area
    **{kind: {"flow"} for kind in ("reversed_ids", "static_order", "area_values", "area_unit")},
}
"""Arrays that a new build scans; every other change scans none."""


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Changing, Path]]:
    """Return stores and an index per Zarr format, each with a copy that keeps the times of its files."""
    found = {}
    for zarr_format in (2, 3):
        folder = tmp_path_factory.mktemp("changing")
        stores = write_changing(folder / "now", zarr_format)
        shutil.copytree(folder / "now", folder / "kept")
        found[zarr_format] = (stores, folder / "kept")
    return found


@pytest.fixture
def restored(templates: dict[int, tuple[Changing, Path]], tmp_path: Path) -> Callable[[int], Changing]:
    """Return a function that puts the stores of a format back as they were indexed."""

    def restore(zarr_format: int) -> Changing:
        stores, kept = templates[zarr_format]
        stores.folder.rename(tmp_path / "before")  # moving away is faster than deleting
        shutil.copytree(kept, stores.folder)
        return stores

    return restore


def warnings_of(caplog: Any) -> list[str]:
    """Return what was said about stores that changed since this was last asked."""
    found = [r.getMessage() for r in caplog.records if r.name == "headrace.loader.freshness"]
    caplog.clear()
    return found


def opened_with(caplog: Any, index: Path) -> list[str]:
    """Open an index and return what is said about it."""
    with headrace.open_index(index):
        return warnings_of(caplog)


def served(stores: Changing, split: str = "train") -> list[headrace.Batch]:
    with headrace.open_index(stores.index) as index, headrace.WindowLoader(index, split, num_workers=1) as loader:
        return list(loader)


@pytest.mark.parametrize(("kind", "zarr_format"), CASES)
def test_a_change_is_named_and_a_new_build_serves_what_is_stored_now(restored, monkeypatch, caplog, kind, zarr_format):
    change, words = CHANGES[kind]
    stores = restored(zarr_format)
    before = served(stores) if kind in FACTORS else []
    change(stores)

    with headrace.open_index(stores.index) as index:
        (said,) = warnings_of(caplog)
        with pytest.raises(StaleIndexError) as caught:
            headrace.WindowLoader(index, "train", num_workers=1)
    assert words in said
    assert words in str(caught.value)
    assert f"headrace build-index CONFIG --out {stores.index}" in said
    found = run_headrace("check", "--index", stores.index)
    assert found.code == caught.value.exit_code == 4
    assert words in found.err
    assert "build-index" in found.err

    if kind in NO_REBUILD:
        with pytest.raises(HeadraceError):
            build_here(stores.config, stores.index)
        return
    _, scanned = build_inline(stores.config, stores.index, monkeypatch)
    assert {unit.array for task in scanned.tasks for unit in task.units} == RESCANNED.get(kind, set())
    if kind in FRESH:
        build_inline(stores.config, stores.folder / "fresh", monkeypatch)
        assert table_bytes(stores.index) == table_bytes(stores.folder / "fresh")
    with headrace.open_index(stores.index) as index, headrace.WindowLoader(index, "train", num_workers=1) as loader:
        assert warnings_of(caplog) == []
        batches = list(loader)
        if kind in FACTORS:
            pairs = zip(batches, before, strict=True)
            assert all(torch.allclose(new.y, old.y * FACTORS[kind], rtol=1e-6, equal_nan=True) for new, old in pairs)
        elif kind == "calendar":  # these days are the same in both calendars
            assert [str(t) for t in index.times("d")[:2]] == ["2000-01-01 00:00:00", "2000-01-02 00:00:00"]
        else:
            check_epoch(batches, OracleLoader(stores.config, "train"), loader)


@pytest.mark.parametrize(("kind", "zarr_format"), [(k, 2 + i % 2) for i, k in enumerate(HARMLESS)])
def test_what_changes_no_value_is_no_change(restored, monkeypatch, caplog, kind, zarr_format):
    stores = restored(zarr_format)
    HARMLESS[kind](stores)
    assert served(stores)
    assert warnings_of(caplog) == []
    assert run_headrace("check", "--index", stores.index).code == 0
    _, scanned = build_inline(stores.config, stores.index, monkeypatch)
    assert scanned.keys == []


def test_an_untouched_store_is_opened_without_reading_a_value(restored, monkeypatch, caplog):
    stores = restored(2)
    monkeypatch.setattr(StoredArray, "read", pytest.fail)
    monkeypatch.setattr("headrace.coordinates.read_vector", pytest.fail)
    assert opened_with(caplog, stores.index) == []
    with headrace.open_index(stores.index) as index, headrace.WindowLoader(index, "train"):
        pass


def test_an_index_without_its_stores_opens_and_answers(restored, caplog):
    stores = restored(2)
    for name in ("s.zarr", "a.zarr"):
        shutil.rmtree(stores.folder / name)
    assert opened_with(caplog, stores.index) == []
    for topic in ("dropped", "stats"):
        assert run_headrace("inspect", stores.index, topic).code == 0
    found = run_headrace("sql", stores.index, "select count(*) as n from arrays", "--format", "csv")
    assert (found.code, found.out) == (0, "n\n9\n")
    with pytest.raises(SourceError, match="store not found"):
        served(stores)


def test_an_attributes_store_that_is_gone_is_not_needed_to_serve(restored, caplog):
    stores = restored(2)
    shutil.rmtree(stores.folder / "a.zarr")
    assert opened_with(caplog, stores.index) == []
    assert served(stores)


def test_only_the_data_sets_that_are_served_have_to_be_fresh(tmp_path):
    one, two = write_changing(tmp_path / "one"), write_changing(tmp_path / "two")
    datasets = {"one": one.config.datasets["d"], "two": two.config.datasets["d"]}
    index_folder = build_here(one.config.model_copy(update={"datasets": datasets}), tmp_path / "index")
    swap(two.series["basin"])
    with headrace.open_index(index_folder) as index:
        with headrace.WindowLoader(index, "train", datasets=["one"], num_workers=1) as loader:
            assert sum(len(batch) for batch in loader) == loader.num_windows
        with pytest.raises(StaleIndexError, match=r"two: .*basin ids differ"):
            headrace.WindowLoader(index, "train")


def test_a_mended_time_axis_is_compared_as_it_is_stored(restored, caplog):
    order = np.random.default_rng(0).permutation(24)
    stores = restored(2)
    stores.series["time"][:] = order
    config = stores.config.model_copy(
        update={"datasets": {"d": stores.config.datasets["d"].model_copy(update={"fix_time": "sort"})}}
    )
    stores = Changing(folder=stores.folder, config=config, index=build_here(config, stores.folder / "mended"))
    touch(stores.folder / "s.zarr" / "time")
    assert opened_with(caplog, stores.index) == []
    swap(stores.series["time"])
    first = int(np.flatnonzero(order == 0)[0])
    (said,) = opened_with(caplog, stores.index)
    was, now = (f"2000-01-{1 + int(day):02d}T00:00:00" for day in (order[first], order[::-1][first]))
    assert f"stored step {first} was {was}, is {now}" in said
    with pytest.raises(StaleIndexError, match="times differ"):
        served(stores)


def test_a_store_copied_over_itself_is_stale_for_its_chunks_alone(restored, caplog):
    stores = restored(2)
    copied(stores)
    touch(stores.folder / "s.zarr")
    assert opened_with(caplog, stores.index) == []
    with pytest.raises(StaleIndexError, match="chunk changed"):
        served(stores)


def test_a_configuration_that_points_to_a_copy_gets_an_index_of_it(restored, monkeypatch):
    stores = restored(2)
    moved = stores.folder / "moved"
    for name in ("s.zarr", "a.zarr"):
        shutil.copytree(stores.folder / name, moved / name, copy_function=shutil.copyfile)
        shutil.rmtree(stores.folder / name)
    section = stores.config.datasets["d"].model_copy(
        update={"timeseries": str(moved / "s.zarr"), "attributes": str(moved / "a.zarr")}
    )
    config = stores.config.model_copy(update={"datasets": {"d": section}})
    before = fingerprint(stores.index)
    _, scanned = build_inline(config, stores.index, monkeypatch)
    assert {unit.array for task in scanned.tasks for unit in task.units} == {"rain", "flow"}
    assert fingerprint(stores.index) == before
    assert served(stores)


def fingerprint(index: Path) -> str:
    with headrace.open_index(index) as opened:
        return str(opened.sql("select fingerprint from datasets").to_pylist()[0]["fingerprint"])


def test_check_says_what_changed_although_a_new_build_would_be_refused(restored):
    stores = restored(2)
    edit(stores.series["time"], units="days since 1970-01-01")
    found = run_headrace("check", "--index", stores.index)
    assert found.code == 4
    assert "stored step 0 was 2000-01-01T00:00:00, is 1970-01-01T00:00:00" in found.err
    assert "period lies outside the record" in found.err


def test_check_of_a_store_that_is_gone_stays_a_source_error(restored):
    stores = restored(2)
    shutil.rmtree(stores.folder / "s.zarr")
    assert run_headrace("check", "--index", stores.index).code == 3


@pytest.mark.parametrize("name", ["time", "basin"])
def test_a_coordinate_that_cannot_be_read_as_before_is_a_change(restored, name):
    stores = restored(2)
    group = stores.series
    if name == "time":
        edit(group["time"], units="months since 2000-01-01")
    else:
        del group["basin"]
        group.create_array("basin", shape=(3,), dtype="int64", attributes={"_ARRAY_DIMENSIONS": ["basin"]})[:] = [
            1,
            2,
            3,
        ]
    with pytest.raises(
        StaleIndexError, match=f"array {name}: cannot be read as before: (time unit|basin ids are stored)"
    ):
        served(stores)


def test_damaged_metadata_is_named(restored):
    stores = restored(2)
    (stores.folder / "s.zarr" / "rain" / ".zarray").write_text("{")
    with pytest.raises(StaleIndexError, match=r"array rain: cannot be looked at: .*JSONDecodeError"):
        served(stores)


def test_a_message_names_a_few_changes_and_counts_the_others(restored):
    stores = restored(2)
    for array in (stores.series["rain"], stores.series["flow"], stores.attributes["slope"]):
        edit(array, scale_factor=7.0, add_offset=1.0, missing_value=3)
    with pytest.raises(StaleIndexError, match="and 3 more"):
        served(stores)


def test_the_config_error_of_a_build_is_kept_where_nothing_changed(tmp_path):
    zarr.open_group(str(tmp_path / "empty.zarr"), mode="w", zarr_format=2)
    with pytest.raises(ConfigError):
        write_changing(tmp_path, basins=["nowhere"])
