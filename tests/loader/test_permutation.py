"""Keyed permutations: bijective, seekable, the same in every version of every library, and well mixed."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.permutation import Permutation, derive_key, hash_floats, mix64

keys = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("size", [*range(1, 70), 255, 256, 257, 1000, 4095, 4097, 65_537, 100_003])
def test_a_permutation_is_a_bijection(size):
    image = Permutation(derive_key(size), size)(np.arange(size))
    assert np.array_equal(np.sort(image), np.arange(size))


@given(key=keys, size=st.integers(1, 3000), data=st.data())
def test_any_element_can_be_computed_alone(key, size, data):
    order = Permutation(key, size)
    whole = order(np.arange(size))
    some = np.array(data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=9)))
    assert np.array_equal(order(some), whole[some])


@pytest.mark.parametrize("size", [10**9, 2**40 + 7, 2**60])
def test_huge_domains_stay_inside_and_collide_nowhere(size):
    positions = np.arange(20_000) * (size // 20_000)
    image = Permutation(derive_key(1, 2), size)(positions)
    assert image.min() >= 0
    assert image.max() < size
    assert np.unique(image).size == np.unique(positions).size


def test_positions_given_are_not_changed():
    positions = np.arange(50)
    Permutation(3, 50)(positions)
    assert np.array_equal(positions, np.arange(50))


def test_values_are_those_of_the_first_release():
    """A change here breaks resuming from every checkpoint there is."""
    assert mix64(0) == 16294208416658607535
    assert derive_key(0, 0, 3, 0) == 686978441575363380
    assert derive_key(7, 1, 2) != derive_key(7, 2, 1)
    assert Permutation(derive_key(42, 1), 17)(np.arange(17)).tolist() == [
        2,
        4,
        11,
        15,
        0,
        9,
        12,
        8,
        5,
        1,
        16,
        14,
        3,
        6,
        7,
        13,
        10,
    ]
    assert hash_floats(derive_key(42, 1), 10).argsort().tolist() == [0, 7, 8, 5, 2, 4, 3, 1, 9, 6]
    content = Permutation(derive_key(5), 1_000_003)(np.arange(100_000)).astype("<i8").tobytes()
    assert hashlib.sha256(content).hexdigest()[:16] == "ca2786529199c1d1"


def test_keys_give_different_orders():
    orders = {tuple(Permutation(derive_key(seed), 20)(np.arange(20)).tolist()) for seed in range(200)}
    assert len(orders) == 200


@pytest.mark.parametrize("size", [64, 1000, 5003])
def test_neighbours_end_up_far_apart(size):
    """The mean distance of two random places is a third of the domain."""
    distance = [
        np.abs(np.diff(Permutation(derive_key(seed), size)(np.arange(size)))).mean() / size for seed in range(20)
    ]
    assert np.mean(distance) == pytest.approx(1 / 3, rel=0.05)


def test_every_place_is_reached_from_everywhere():
    """Chi-square over which of 16 tenths the first elements land in, over many keys."""
    size, bins = 160, 16
    image = np.concatenate([Permutation(derive_key(seed, 9), size)(np.arange(16)) for seed in range(500)])
    counts = np.bincount(image // (size // bins), minlength=bins)
    expected = image.size / bins
    assert ((counts - expected) ** 2 / expected).sum() < 45  # 15 degrees of freedom: 1 in 10⁴ above 44.3


def test_hash_floats_are_even_and_a_function_of_the_key():
    values = hash_floats(derive_key(3), 10_000)
    assert values.min() >= 0
    assert values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=0.02)
    assert np.array_equal(values, hash_floats(derive_key(3), 10_000))
    assert np.array_equal(values[:100], hash_floats(derive_key(3), 100))
