"""Runs are maximal, and stitching the runs of two neighbours gives the runs of both together."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.indexer.runs import Runs, find_runs, join, observed_per_step, stitch
from indexing import runs_of

masks = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=25))


def spans(runs):
    return list(zip(runs.row.tolist(), runs.start.tolist(), runs.stop.tolist(), strict=True))


@given(masks, st.integers(0, 9), st.integers(0, 9))
def test_runs_are_the_maximal_stretches_of_each_row(mask, row, step):
    found = spans(find_runs(mask, first_row=row, first_step=step))
    assert found == [(b + row, s + step, e + step) for b, s, e in runs_of(mask)]


@given(masks, st.lists(st.integers(1, 24), unique=True, max_size=4))
def test_stitched_units_give_the_runs_of_the_whole(mask, cuts):
    edges = [0, *sorted(c for c in cuts if c < mask.shape[1]), mask.shape[1]]
    parts = [find_runs(mask[:, a:b], first_step=a) for a, b in pairwise(edges)]
    assert spans(stitch(join(parts))) == runs_of(mask)


@given(masks)
def test_counts_from_runs_are_counts_of_the_mask(mask):
    runs = find_runs(mask, first_row=3, first_step=7)
    assert observed_per_step(runs, 7, 7 + mask.shape[1]).tolist() == mask.sum(axis=0).tolist()


def test_no_runs_stay_no_runs():
    assert len(stitch(Runs.none())) == len(join([])) == 0
