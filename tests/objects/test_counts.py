"""Requests of other processes are counted once, whatever order their work ends in."""

import pytest

from headrace.objects import counts
from headrace.objects.counts import RequestCounts, Share, add_shares, request_counts, share_since


def counted(requests: int) -> RequestCounts:
    return RequestCounts(requests=requests, nbytes=10 * requests, retries=1, throttles=0)


def test_what_lies_between_the_first_and_the_last_share_counts_once():
    before = request_counts()
    shares = [
        Share(process="a:1", before=counted(5), after=counted(9)),
        Share(process="a:1", before=counted(4), after=counted(7)),
        Share(process="b:1", before=counted(0), after=counted(2)),
    ]
    add_shares(shares)
    assert request_counts() - before == RequestCounts(requests=7, nbytes=70, retries=0, throttles=0)


def test_this_process_is_not_counted_twice():
    before = request_counts()
    counts.counter.add(requests=3)
    add_shares([share_since(before)])
    assert (request_counts() - before).requests == 3


def test_a_summary_says_what_was_asked():
    words = str(RequestCounts(requests=1234, nbytes=5_600_000, retries=3, throttles=2))
    assert words == ("1,234 requests to object storage, 5.6 MB received, 3 sent again, 2 answers asked for fewer")


@pytest.mark.parametrize("name", ["requests", "nbytes", "retries", "throttles"])
def test_differences_are_taken_one_by_one(name: str):
    assert getattr(RequestCounts(**{name: 5}) - RequestCounts(**{name: 3}), name) == 2
