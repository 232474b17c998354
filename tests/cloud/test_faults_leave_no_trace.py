"""Indexes and batches made through faults are those made without, byte for byte; what cannot be had is an error."""

import pytest

import headrace
from build_here import build_here
from cloud_joint import epoch_bytes
from cloud_project import write_cloud_project
from command_line import run_headrace
from fault_proxy import FaultProxy
from fault_rules import Fault, Rule
from headrace.schemas.errors import ReadError, SourceError, StaleIndexError, StorageError
from indexing import table_bytes

PASSING: list[Fault] = [
    "slow_down",
    "too_many_requests",
    "server_error",
    "reset_before",
    "reset_within",
    "cut_short",
    "slow_first_byte",
]
SEED = 1
CHUNK = r"zarr/(rain|warmth|flow)/(c/)?\d"


def storm(proxy: FaultProxy, seed: int) -> None:
    """Make every fault, at more than a tenth of the requests in all."""
    rules = [Rule(fault=fault, share=0.015) for fault in PASSING]
    proxy.use(*rules, Rule(fault="expired_token", share=0.015, attempts=1), seed=seed)


@pytest.mark.slow
def test_an_index_and_an_epoch_under_faults_equal_those_without(cloud, proxy, tmp_path):
    """A4, D1, D2."""
    build_here(cloud.config, tmp_path / "calm")
    expected = epoch_bytes(tmp_path / "calm")
    assert len(expected) > 5
    storm(proxy, SEED)
    build_here(cloud.config, tmp_path / "stormy")
    assert table_bytes(tmp_path / "stormy") == table_bytes(tmp_path / "calm")
    assert epoch_bytes(tmp_path / "stormy") == expected
    met = [e.fault for e in proxy.exchanges if e.fault]
    assert len(met) > 0.05 * len(proxy.exchanges)
    assert len(set(met)) > len(PASSING) / 2, "the seed lets them meet most kinds"


@pytest.mark.slow
def test_dask_threads_meet_the_same_faults(cloud, proxy, tmp_path):
    headrace.build_index(cloud.config, tmp_path / "calm")
    storm(proxy, SEED)
    headrace.build_index(cloud.config, tmp_path / "stormy")
    assert table_bytes(tmp_path / "stormy") == table_bytes(tmp_path / "calm")
    assert any(e.fault for e in proxy.exchanges)


@pytest.mark.parametrize("fault", ["server_error", "denied", "cut_unmarked", "cut_relabelled"])
def test_a_chunk_that_cannot_be_had_ends_the_build_and_is_never_filled(cloud, proxy, tmp_path, fault):
    """A3, A5: under a fault that stays there is an error that names the object, and no index."""
    impatient = cloud.reached(max_retries=1)
    proxy.use(Rule(fault=fault, key=CHUNK, methods=("GET",)))
    with pytest.raises(ReadError, match=r"(rain|warmth|flow)/"):
        build_here(impatient.config, tmp_path / "index")
    assert not (tmp_path / "index" / "manifest.json").exists()


@pytest.mark.parametrize("fault", ["server_error", "denied", "cut_unmarked", "cut_relabelled"])
def test_a_chunk_that_cannot_be_had_ends_the_epoch_and_is_never_filled(cloud, proxy, tmp_path, fault):
    """A3, A5."""
    build_here(cloud.reached(max_retries=1).config, tmp_path / "index")
    proxy.use(Rule(fault=fault, key=CHUNK, methods=("GET",)))
    with pytest.raises((ReadError, StaleIndexError), match=r"(rain|warmth|flow)/"):
        epoch_bytes(tmp_path / "index")


@pytest.mark.parametrize("fault", ["cut_relabelled", "denied"])
@pytest.mark.parametrize("document", [r"river.zarr/zarr\.json", r"rain/zarr\.json", r"creek.zarr/rain/\.zarray"])
def test_metadata_that_cannot_be_had_whole_is_an_error_and_no_absent_array(cloud, proxy, tmp_path, fault, document):
    proxy.use(Rule(fault=fault, key=document))
    with pytest.raises(SourceError):
        build_here(cloud.reached(max_retries=1).config, tmp_path / "index")
    assert proxy.asked("GET", document)
    assert not (tmp_path / "index" / "manifest.json").exists()


def test_a_bucket_that_denies_what_does_not_exist_proves_nothing_absent(cloud, proxy, bucket, tmp_path):
    """A3, A5: without the right to list, a chunk that was never written is answered with 403."""
    victim = bucket.path / "river.zarr" / "rain" / "c" / "0" / "0"
    build_here(cloud.config, tmp_path / "whole")
    proxy.use(Rule(fault="absent_is_denied"))
    with pytest.raises(SourceError, match=r"(?s)403.*no proof that they are absent"):
        build_here(cloud.config, tmp_path / "denied")
    proxy.use(Rule(fault="absent_is_denied", key=CHUNK))
    assert epoch_bytes(tmp_path / "whole")
    victim.unlink()
    with pytest.raises(ReadError, match=r"(?s)rain/c/0/0.*403"):
        epoch_bytes(tmp_path / "whole")


def test_the_summary_of_a_build_counts_what_was_sent_again(bucket, proxy, tmp_path):
    """D1, D2."""
    config = write_cloud_project(bucket, tmp_path, bucket.server.storage(endpoint_url=proxy.url))
    proxy.use(Rule(fault="slow_down", key=r"rain/\d", attempts=1), Rule(fault="reset_before", key="flow", attempts=1))
    outcome = run_headrace("build-index", config, "--out", tmp_path / "index")
    assert outcome.code == 0, outcome.err
    faults = [e.fault for e in proxy.exchanges if e.fault]
    assert faults.count("slow_down") > 3
    assert faults.count("reset_before") > 3
    said = " ".join((outcome.out + outcome.err).split())
    throttled = faults.count("slow_down")
    assert f"{len(proxy.exchanges)} requests" in said, said
    assert f"{len(faults)} sent again" in said, said
    assert f"{throttled} answers asked for fewer" in said, said


@pytest.mark.parametrize("phase", ["build", "epoch"])
def test_a_chunk_that_is_never_answered_ends_at_the_deadline(cloud, proxy, tmp_path, phase):
    """D3: one dead chunk ends the work with its name, after `timeout_seconds` and what one try takes."""
    impatient = cloud.reached(timeout_seconds=1.5, max_retries=100).config
    if phase == "epoch":
        build_here(impatient, tmp_path / "index")
    proxy.use(Rule(fault="silent", key=r"rain/c/1/1$", seconds=60))
    with pytest.raises(StorageError, match=r"(?s)rain/c/1/1.*no answer in time \([2-4] tries in [12] s\)"):
        build_here(impatient, tmp_path / "index") if phase == "build" else epoch_bytes(tmp_path / "index")
    assert len(proxy.asked("GET", r"rain/c/1/1$")) <= 4
