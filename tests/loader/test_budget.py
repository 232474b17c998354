"""Sizes as people write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.loader.budget import human_nbytes, memory_budget_nbytes, parse_nbytes
from headrace.schemas.config import LoaderConfig
from headrace.schemas.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("512", 512),
        (" 1 KiB ", 1024),
        ("1.5MiB", 3 * 2**19),
        ("2GiB", 2**31),
        ("2gb", 2 * 10**9),
        ("3 kB", 3000),
        ("1 TiB", 2**40),
        ("0", 0),
        (7, 7),
        (2e9, 2 * 10**9),
        (np.int64(5), 5),
    ],
)
def test_sizes_are_read_as_written(text, nbytes):
    assert parse_nbytes(text, "memory_budget") == nbytes


@pytest.mark.parametrize(
    "text", ["512", " 1 KiB ", "1.5MiB", "2gb", "3 kB", "1 TiB", "7B", "2 XiB", "GiB", "1,5GiB", "2K"]
)
def test_a_configuration_takes_the_sizes_that_a_loader_takes(text):
    def taken(read):
        try:
            read()
        except ValueError:
            return False
        return True

    assert taken(lambda: LoaderConfig(cache_limit=text)) == taken(lambda: parse_nbytes(text, "cache_limit"))


@pytest.mark.parametrize("text", ["", "GiB", "2 XiB", "-1", "1,5GiB", "two", -1, True, None, float("nan"), [2]])
def test_what_is_no_size_is_refused_by_name(text):
    with pytest.raises(ConfigError, match="memory_budget"):
        parse_nbytes(text, "memory_budget")


def test_auto_is_some_of_the_free_memory():
    assert 2**20 < memory_budget_nbytes("auto") < 2**50


@given(st.integers(0, 2**50))
def test_sizes_for_people_are_right_to_a_tenth_of_their_unit(nbytes):
    number, unit = human_nbytes(nbytes).split()
    assert abs(float(number) * parse_nbytes(f"1{unit}", "x") - nbytes) <= 0.051 * parse_nbytes(f"1{unit}", "x")
