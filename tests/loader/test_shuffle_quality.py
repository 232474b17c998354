"""How well batches mix, from plans alone: against a perfect shuffle, and from start to end of an epoch (H12)."""

import dataclasses

import numpy as np
import pytest

from headrace.loader.mixing import thin_rounds
from headrace.loader.round_windows import windows_at
from headrace.loader.times import DatasetTimes
from headrace.schemas.time_axis import Segment, TimeAxis
from planned import Planned, planned
from random_windows import windows_from

BASINS, STEPS, LENGTH, BATCH, TIME_CHUNK = 256, 2000, 60, 256, 100
WINDOWS = windows_from([(0, b, 0, STEPS - LENGTH + 1) for b in range(BASINS)], 1)


def split(share: float) -> Planned:
    return planned(WINDOWS, LENGTH, share, basins_per_chunk=8)


def measured(share: float, seed: int, epoch: int):
    case = split(share)
    return case.quality(case.epoch(seed=seed, epoch=epoch), batch_size=BATCH, chunk_steps=TIME_CHUNK, max_batches=400)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("share", [0.0625, 0.125, 0.5, 0.9])
def test_batches_of_a_bounded_budget_mix_basins_and_times_as_a_perfect_shuffle_does(share, seed):
    """Field case H12."""
    """A budget of 1/8 of the split holds two rounds of 1/16 each."""
    found = measured(share, seed, epoch=0).as_dict()
    assert found["distinct_basins_ratio"] >= 0.9
    assert found["distinct_time_chunks_ratio"] >= 0.9
    assert found["distinct_months_ratio"] >= 0.9
    assert found["entropy_basin_ratio"] >= 0.9


@pytest.mark.parametrize("share", [0.004, 0.01, 0.02, 0.04])
def test_rounds_that_mix_badly_are_noticed_and_larger_ones_named_that_mix_well(share):
    case = split(share)
    measured_share = measured(share, 0, epoch=0).as_dict()["distinct_basins_ratio"]
    told, times = thin_rounds(case.epoch(), BASINS, BATCH)
    assert measured_share < 0.9
    assert told == pytest.approx(measured_share, rel=0.25)  # batches across two rounds mix a little more
    enough = share * times
    assert 0.87 <= measured(enough, 0, epoch=0).as_dict()["distinct_basins_ratio"] <= 0.95
    assert thin_rounds(split(1.1 * enough).epoch(), BASINS, BATCH) is None
    assert thin_rounds(case.epoch(shuffle=False), BASINS, BATCH) is None


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("share", [0.0625, 0.125, 0.5, 0.9])
def test_every_tenth_of_an_epoch_mixes_as_the_first(share, seed):
    found = measured(share, seed, epoch=1)
    assert len(found.by_tenth) == 10
    assert found.worst_tenth_ratio >= 0.95


@pytest.mark.parametrize("seed", range(2))
def test_a_resident_split_is_shuffled_perfectly_after_its_first_epoch(seed):
    found = measured(1.0, seed, epoch=1)
    assert found.rounds == 1
    for name, value in found.served.items():
        assert value == pytest.approx(found.perfect[name], rel=0.01, abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_the_first_epoch_of_a_resident_split_mixes_all_times_but_few_basin_chunks_at_once(seed):
    """It takes basin chunks as they arrive, in eight rounds; one that holds every basin costs nothing in mixing."""
    narrow = measured(1.0, seed, epoch=0)
    assert narrow.rounds == 8
    assert 0.15 <= narrow.as_dict()["distinct_basins_ratio"] <= 0.25  # 32 of 256 basins at once
    assert narrow.as_dict()["distinct_time_chunks_ratio"] >= 0.9
    assert narrow.worst_tenth_ratio >= 0.95
    case = planned(WINDOWS, LENGTH, 1.0, basins_per_chunk=BASINS)
    wide = case.quality(case.epoch(seed=seed), batch_size=BATCH, chunk_steps=TIME_CHUNK, max_batches=400)
    assert wide.as_dict()["distinct_basins_ratio"] >= 0.9
    assert wide.worst_tenth_ratio >= 0.95


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_an_epoch_serves_every_window_once_in_an_order_of_its_own(share):
    case = split(share)
    everything = np.arange(WINDOWS.total)
    orders = []
    for epoch in (1, 2):
        slot, start = windows_at(case.tiles, case.epoch(epoch=epoch), everything)
        orders.append(slot * STEPS + start)
        assert np.unique(orders[-1]).size == WINDOWS.total
    assert (orders[0] != orders[1]).mean() > 0.9


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_windows_may_be_asked_for_in_any_order(share):
    case = split(share)
    everything, some = np.arange(WINDOWS.total), np.random.default_rng(0).integers(0, WINDOWS.total, 500)
    slot, start = windows_at(case.tiles, case.epoch(), everything)
    of_some = windows_at(case.tiles, case.epoch(), some)
    assert (of_some[0] == slot[some]).all()
    assert (of_some[1] == start[some]).all()


def test_measures_are_those_of_counting_batch_by_batch():
    case = split(0.2)
    plan = case.epoch(seed=4)
    found = case.quality(plan, batch_size=BATCH, chunk_steps=TIME_CHUNK)
    slot, start = windows_at(case.tiles, plan, np.arange(WINDOWS.total))
    last = start.astype(np.int64) + LENGTH - 1
    month = (np.datetime64("1970-01-01") + last).astype("datetime64[M]").astype(int) % 12
    full = WINDOWS.total // BATCH if WINDOWS.total % BATCH else WINDOWS.total // BATCH - 1
    for name, values in {"basins": slot, "time_chunks": last // TIME_CHUNK, "months": month}.items():
        batches = [values[i * BATCH : (i + 1) * BATCH] for i in range(full)]
        assert found.served[f"distinct_{name}"] == pytest.approx(np.mean([len(set(b.tolist())) for b in batches]))
    shares = [np.unique(slot[i * BATCH : (i + 1) * BATCH], return_counts=True)[1] / BATCH for i in range(full)]
    assert found.served["entropy_basin"] == pytest.approx(np.mean([-(s * np.log(s)).sum() for s in shares]))
    assert found.served["entropy_dataset"] == 0
    assert found.as_dict()["entropy_dataset_ratio"] == 1


def test_an_order_without_shuffling_is_seen_for_what_it_is():
    case = split(1.0)
    found = case.quality(case.epoch(shuffle=False), batch_size=BATCH, chunk_steps=TIME_CHUNK).as_dict()
    assert found["distinct_basins"] < 1.2
    assert found["distinct_basins_ratio"] < 0.05
    assert found["distinct_tiles_ratio"] < 0.05


def test_fewer_batches_are_taken_from_every_part_of_the_epoch():
    case = split(0.2)
    plan = case.epoch()
    some = case.quality(plan, batch_size=BATCH, chunk_steps=TIME_CHUNK, max_batches=50)
    every = case.quality(plan, batch_size=BATCH, chunk_steps=TIME_CHUNK, max_batches=400)
    assert some.batches == 50
    assert [t["tenth"] for t in some.by_tenth] == list(range(1, 11))
    assert some.served["distinct_basins"] == pytest.approx(every.served["distinct_basins"], rel=0.05)


@pytest.mark.parametrize("windows", [1, 5, 64, 130])
def test_a_few_windows_are_measured_too(windows):
    case = planned(windows_from([(0, 0, 0, windows)], 1), LENGTH, 1.0)
    found = case.quality(case.epoch(), batch_size=BATCH, chunk_steps=TIME_CHUNK, max_batches=400)
    assert found.served["distinct_basins"] == 1
    assert found.batch_size == min(windows, BATCH)


def test_months_follow_the_calendar_of_the_data_set():
    axis = TimeAxis(segments=(Segment(start=0, stop=720, seconds=0),), step_seconds=86400, calendar="360_day")
    steps = np.arange(720)
    thirty = DatasetTimes(axis=axis, chunk_steps=30).month_of(steps)
    assert (thirty == steps // 30 % 12 + 1).all()
    plain = DatasetTimes(axis=dataclasses.replace(axis, calendar="standard"), chunk_steps=30).month_of(steps)
    assert plain[[30, 31, 58, 59, 364]].tolist() == [1, 2, 2, 3, 12]
