"""What is forecast from the tables is what a loader reads."""

import pytest

import headrace
from headrace.loader.read_forecast import forecast_reads

POOLS = 2


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_reads_are_those_of_a_loader_that_keeps_nothing(index, share):
    forecast = forecast_reads(index, "train", [share], num_pools=POOLS)
    (budget,) = forecast.budgets
    assert budget.budget_nbytes <= share * forecast.decoded_nbytes
    with headrace.WindowLoader(
        index, split="train", batch_size=16, seed=0, memory_budget=budget.budget_nbytes, cache_dir="off", num_workers=1
    ) as loader:
        assert sum(len(batch.start) for batch in loader) == loader.num_windows
        assert loader.read_amplification == pytest.approx(budget.reads_per_chunk)
    assert budget.reads_per_chunk > 1
    assert budget.num_rounds > 1


def test_a_budget_without_room_for_a_window_is_left_out(index):
    assert forecast_reads(index, "train", [1e-9], num_pools=POOLS).budgets == ()
