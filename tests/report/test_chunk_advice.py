"""Advice on chunk shapes follows from their sizes, and what it proposes is free of the fault."""

import dataclasses

import pytest

from headrace.report.chunk_advice import ChunkCost, advise


def cost(num_basins, num_steps, chunk_basins, chunk_steps, **changes):
    objects = -(-num_basins // chunk_basins) * -(-num_steps // chunk_steps)
    made = ChunkCost(
        dataset_id="d", variable="rain", array="rain", num_basins=num_basins, num_steps=num_steps,
        chunk_basins=chunk_basins, chunk_steps=chunk_steps, objects=objects, absent=0, only_missing=0, unreadable=0,
        stored_nbytes=num_basins * num_steps, decoded_nbytes=4 * num_basins * num_steps, sharded=False,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    ("made", "headlines"),
    [
        (cost(671, 12_784, 671, 365), ["Nothing to change"]),
        (cost(671, 12_784, 1, 365), ["Many small chunks"]),
        (cost(671, 350_000, 671, 350_000), ["Large chunks"]),
        (cost(2_000, 350_000, 2_000, 24), ["Many small chunks", "Chunks hold many basins"]),
        (cost(10, 100, 1, 10), ["Nothing to change"]),
    ],
)
def test_each_fault_is_named(made, headlines):
    found = [a.headline for a in advise([made])]
    assert found[: len(headlines)] == headlines or set(headlines) <= set(found)
    assert all(a.change == (a.headline != "Nothing to change") for a in advise([made]))


@pytest.mark.parametrize(
    ("num_basins", "num_steps"), [(671, 12_784), (10_000, 14_600), (200, 350_640), (1, 5_000_000), (30_000, 100)]
)
def test_the_shape_it_proposes_needs_no_advice(num_basins, num_steps):
    basins, steps = cost(num_basins, num_steps, 1, 24).better_shape()
    assert 1 <= basins <= num_basins
    assert 1 <= steps <= num_steps
    assert [a.headline for a in advise([cost(num_basins, num_steps, basins, steps)])] == ["Nothing to change"]


def test_variables_of_several_shapes_are_told_apart():
    other = cost(671, 12_784, 100, 365, variable="flow")
    (advice,) = advise([cost(671, 12_784, 671, 365), other])
    assert not advice.change
    assert "671 basins × 365 steps (rain)" in advice.text
    assert "100 basins × 365 steps (flow)" in advice.text


def test_a_window_alone_costs_the_chunks_it_touches():
    # One step needs one chunk: 10 basins × 100 steps for a single value.
    assert cost(10, 1_000, 10, 100).values_per_value(1) == 1_000
    # 101 steps touch two chunks wherever they begin: 2 × 1,000 values for 101.
    assert cost(10, 1_000, 10, 100).values_per_value(101) == pytest.approx(2_000 / 101)
    # A window as long as the record needs all of it.
    assert cost(10, 1_000, 10, 100).values_per_value(1_000) == 10
