"""An answer that is not the object, garbled on its way or given by something in between, is never the last word."""

import pytest

import headrace
from build_here import build_here
from cloud_joint import CloudJoint, epoch_bytes
from fault_rules import Fault, Rule
from headrace.objects.counts import request_counts
from headrace.schemas.errors import DamagedChunkError, ReadError, StaleIndexError
from indexing import table_bytes
from odd_answers import ODD

SOME: tuple[Fault, ...] = ("garbled", "page", "other_etag", "bare_not_found", "cut_relabelled", "cut_unmarked")
OBJECT = r"zarr/\w+/(c/)?\d"
CHUNK = r"river.zarr/rain/c/1/1$"


def tolerant(cloud: CloudJoint) -> CloudJoint:
    """Return the same, where a chunk that cannot be decoded is missing."""
    config = cloud.config
    missing = config.missing.model_copy(update={"on_bad_chunk": "missing"})
    return CloudJoint(folder=cloud.folder, config=config.model_copy(update={"missing": missing}))


def states(index) -> set[str]:
    with headrace.open_index(index) as opened:
        return set(opened.sql("select distinct state from chunks")["state"].to_pylist())


def test_odd_answers_that_pass_change_neither_an_index_nor_an_epoch(cloud, proxy, tmp_path):
    """A4: of every object the first answer is an odd one."""
    config = tolerant(cloud).config
    build_here(config, tmp_path / "calm")
    expected = epoch_bytes(tmp_path / "calm")
    odd = [Rule(fault=fault, key=OBJECT, share=1 / (len(SOME) - n), attempts=1) for n, fault in enumerate(SOME)]
    proxy.use(*odd)
    before = request_counts()
    build_here(config, tmp_path / "index")
    met = [e.fault for e in proxy.exchanges if e.fault]
    assert set(met) == set(SOME)
    assert (request_counts() - before).retries >= len(met)
    assert table_bytes(tmp_path / "index") == table_bytes(tmp_path / "calm")
    assert "error" not in states(tmp_path / "index")
    proxy.use(*odd)
    assert epoch_bytes(tmp_path / "index") == expected
    assert len({e.fault for e in proxy.asked("GET", r"(rain|warmth|flow)/(c/)?\d")}) > len(SOME) - 1


@pytest.mark.parametrize("fault", ODD)
def test_an_odd_answer_is_asked_for_once_more_and_counted(cloud, proxy, tmp_path, fault):
    once = Rule(fault=fault, key=CHUNK, attempts=1)
    build_here(cloud.config, tmp_path / "calm")
    num_objects = len(proxy.asked("GET", OBJECT))
    proxy.use(once)
    before = request_counts()
    build_here(cloud.config, tmp_path / "odd")
    assert [e.fault for e in proxy.asked("GET", CHUNK)] == [fault, ""]
    more = len(proxy.asked("GET", OBJECT)) - num_objects
    assert more == (request_counts() - before).retries <= 3, "what is decoded with it is asked for with it"
    proxy.use(once)
    before = request_counts()
    epoch_bytes(tmp_path / "odd")
    assert [e.fault for e in proxy.asked("GET", CHUNK)] == [fault, ""]
    assert 1 <= (request_counts() - before).retries <= (3 if fault == "garbled" else 1)


def test_a_chunk_that_comes_garbled_twice_is_damaged(cloud, proxy, tmp_path):
    build_here(cloud.config, tmp_path / "calm")
    proxy.use(Rule(fault="garbled", key=CHUNK))
    for work in (lambda: build_here(cloud.config, tmp_path / "index"), lambda: epoch_bytes(tmp_path / "calm")):
        with pytest.raises(DamagedChunkError, match=r"rain/c/1/1 \(\d+ bytes\)"):
            work()
    assert len(proxy.asked("GET", CHUNK)) == 4
    build_here(tolerant(cloud).config, tmp_path / "missing")
    assert "error" in states(tmp_path / "missing")
    assert len(proxy.asked("GET", CHUNK)) == 6


def test_a_chunk_that_did_change_is_told_as_before(cloud, proxy, tmp_path):
    """C5: what comes twice alike is the bucket's word."""
    build_here(cloud.config, tmp_path / "index")
    victim = cloud.folder / "river.zarr" / "rain" / "c" / "1" / "1"
    victim.write_bytes((victim.parent / "0").read_bytes())
    with pytest.raises(StaleIndexError, match=r"(?s)chunk changed.*rain/c/1/1.*size:etag"):
        epoch_bytes(tmp_path / "index")
    victim.unlink()
    with pytest.raises(StaleIndexError, match=r"(?s)rain/c/1/1.*size:etag absent"):
        epoch_bytes(tmp_path / "index")
    assert len(proxy.asked("GET", CHUNK)) == 1 + 2 + 2
    proxy.use(Rule(fault="other_etag", key=r"flow/c/0/0$"))
    with pytest.raises(ReadError, match=r"store changed while the index was built[\s\S]*flow/c/0/0"):
        build_here(cloud.config, tmp_path / "new")
