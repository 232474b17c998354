"""Tables come out sorted whether they went in sorted or not."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.indexer.ordering import in_order, is_sorted

rows = st.lists(st.tuples(st.sampled_from(["", "a", "b", "é", "aa"]), st.integers(-3, 3)), max_size=12)


def table_of(pairs, cut):
    names, numbers = [p[0] for p in pairs], [p[1] for p in pairs]
    pieces = [(names[:cut], numbers[:cut]), (names[cut:], numbers[cut:])]
    schema = pa.schema([("name", pa.string()), ("number", pa.int32())])
    return pa.concat_tables([pa.table({"name": a, "number": b}, schema=schema) for a, b in pieces])


@given(rows, st.integers(0, 12))
def test_order_is_that_of_tuples(pairs, cut):
    found = in_order(table_of(pairs, cut), ("name", "number")).to_pylist()
    assert [(r["name"], r["number"]) for r in found] == sorted(pairs, key=lambda p: (p[0].encode(), p[1]))


@given(rows, st.integers(0, 12))
def test_only_what_is_sorted_counts_as_sorted(pairs, cut):
    assert is_sorted(table_of(pairs, cut), ("name", "number")) == (
        pairs == sorted(pairs, key=lambda p: (p[0].encode(), p[1]))
    )
