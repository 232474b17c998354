"""On random layouts, every table equals what a slow and obvious computation over the whole store gives."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.indexer import units
from indexing import Question, build_inline, config, dataset, date_of, rows, runs_of, served_by, windows_of
from layouts import periods, store_layouts, window_specs

POLICIES = ["keep", "drop_any_nan", "drop_all_nan"]


@st.composite
def cases(draw):
    layout = draw(store_layouts(max_basins=4, max_steps=40, max_variables=3))
    # With jumps of 2 and 3 steps only, no step length divides both: such a record is refused, elsewhere.
    assume(layout.steps > len(layout.gaps) + 1 or len(layout.gaps) < 2)
    names = list(layout.variables)
    num_targets = draw(st.integers(1, len(names)))
    return {
        "layout": layout,
        "inputs": names[num_targets:],
        "targets": names[:num_targets],
        "window": draw(window_specs(max_length=12)),
        "train": draw(periods(layout.steps)),
        "test": draw(st.none() | periods(layout.steps)),
        "policy": draw(st.sampled_from(POLICIES)),
        "missing": draw(st.sampled_from(["fill", "drop"])),
        "bin": draw(st.sampled_from([1, 7, 4096])),
        "basins": draw(st.sets(st.integers(0, layout.basins - 1), min_size=1)),
    }


@pytest.mark.slow
@settings(max_examples=35)
@given(case=cases())
def test_tables_equal_slow_answers_on_random_layouts(case):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        check(case, Path(folder), patch)


def check(case, folder, patch):
    patch.setattr(units, "MIN_BIN_STEPS", case["bin"])
    patch.setattr(units, "TASK_UNITS", 3)
    store = case["layout"].write(folder / "s.zarr")
    chosen = sorted(case["basins"])
    ids = [store.basin_ids[i] for i in chosen]
    ranges = {f"t_range_{s}": None if case[s] is None else spelled(store, case[s]) for s in ("train", "test")}
    variables = {"relevant": {n: n for n in case["inputs"]}, "target": {n: n for n in case["targets"]}}
    missing = {"target_nan_policy": case["policy"], "missing_policy": case["missing"]}
    settings = config(
        {"a": dataset(store, basins=ids, variables=variables, **ranges)},
        window=case["window"]._asdict(),
        missing=missing,
    )
    build_inline(settings, folder / "i", patch)
    truth = {name: values[chosen] for name, values in store.truth.items()}
    check_runs(folder / "i", truth)
    check_windows(folder / "i", store, truth, case)
    check_moments(folder / "i", truth, store, case)
    check_stats(folder / "i", truth, case)
    check_chunks(folder / "i", store)


def segments_of(store):
    """A record whose every step is a jump is regular, with a longer step."""
    jumps = np.diff(store.positions)
    cuts = [0, *(np.flatnonzero(jumps != jumps.min(initial=9**9)) + 1).tolist(), store.steps]
    return list(pairwise(cuts))


def spelled(store, period):
    return [date_of(store, period[0]), date_of(store, period[1] - 1)]


def check_runs(out, truth):
    for name, values in truth.items():
        found = [(r["basin"], r["start"], r["stop"]) for r in rows(out, "runs", variable=name)]
        assert found == runs_of(~np.isnan(values))


def check_windows(out, store, truth, case):
    window = case["window"]
    length = window.hindcast_length + window.forecast_length
    dropping = case["inputs"] if case["missing"] == "drop" else []
    for split in ("train", "test"):
        if case[split] is None:
            assert rows(out, "windows", split=split) == []
            continue
        question = Question(
            length=length,
            warmup=window.warmup_length,
            stride=window.stride,
            period=case[split],
            segments=segments_of(store),
            targets=[~np.isnan(truth[n]) for n in case["targets"]],
            inputs=[~np.isnan(truth[n]) for n in dropping],
            policy=case["policy"] if split == "train" else "keep",
        )
        served, dropped = windows_of(question, range(len(case["basins"])))
        assert served_by(out, "a", split, window.stride) == served
        assert {(r["basin"], r["reason"]): r["num_windows"] for r in rows(out, "dropped", split=split)} == dropped


def check_moments(out, truth, store, case):
    edges = {start for start, _ in segments_of(store)} | {e for s in ("train", "test") if case[s] for e in case[s]}
    for name, values in truth.items():
        found = rows(out, "moments", variable=name)
        by_basin = {}
        for row in found:
            by_basin.setdefault(row["basin"], []).append((row["start"], row["stop"]))
            seen = values[row["basin"], row["start"] : row["stop"]].astype(np.float64)
            seen = seen[~np.isnan(seen)]
            assert row["count"] == seen.size
            if seen.size:
                np.testing.assert_allclose(row["mean"], seen.mean(), rtol=1e-12)
                np.testing.assert_allclose(row["m2"], ((seen - seen.mean()) ** 2).sum(), rtol=1e-9, atol=1e-9)
                assert (row["min"], row["max"]) == (seen.min(), seen.max())
            assert not any(row["start"] < e < row["stop"] for e in edges)
        for spans in by_basin.values():
            assert [a for a, _ in spans] + [store.steps] == [0] + [b for _, b in spans]
        assert len(by_basin) == len(values)


def check_stats(out, truth, case):
    start, stop = case["train"]
    for name, values in truth.items():
        train = values[:, start:stop].astype(np.float64)
        for scope, basin, seen in [
            ("global", -1, train),
            ("dataset", -1, train),
            *(("basin", b, train[b]) for b in range(len(train))),
        ]:
            (row,) = rows(out, "stats", scope=scope, variable=name, basin=basin)
            seen = seen[~np.isnan(seen)]
            assert row["count"] == seen.size
            if seen.size:
                np.testing.assert_allclose([row["mean"], row["std"]], [seen.mean(), seen.std()], rtol=1e-9, atol=1e-9)
                assert (row["min"], row["max"]) == (seen.min(), seen.max())


def check_chunks(out, store):
    for row in rows(out, "chunks"):
        box = (slice(row["basin_start"], row["basin_stop"]), slice(row["time_start"], row["time_stop"]))
        array = store.arrays[row["variable"]]
        assert row["valid_count"] == (~np.isnan(array.truth[box])).sum()
        absent = array.absent[box]
        assert absent.all() if row["state"] == "absent" else not absent.any()
        assert (row["state"] == "missing") <= (row["valid_count"] == 0)
        assert (row["stored_nbytes"] == 0) == (row["state"] == "absent") == (row["fingerprint"] == "")
