"""What users of neighbouring tools really hit: every case has a test, whose docstring names it by letter and number."""

import ast
import functools
import re
from importlib.metadata import requires

import pytest

from tree import REPOSITORY

CASES = {
    "A1": "zeros stay zeros in both formats, whatever the fill value's name",
    "A2": "an absent chunk is its fill value, counted, and a policy where that is 0",
    "A3": "a fault on the way is never an absent chunk",
    "A4": "two scans of one store give the same bytes, and a sample can be scanned again",
    "A5": "no right to read is an error that names the key",
    "A7": "fill value 0 of a float target is pointed out",
    "A8": "declared and configured flags are missing, others are named",
    "A10": "packed integers are decoded in float64, once for both phases",
    "A11": "inputs, targets and statics decode alike",
    "A14": "a cut chunk is an error or missing, never absent",
    "A15": "only what a period needs is read",
    "B1": "ids are text and keep their zeros",
    "B3": "repeated basins are listed, or one row is chosen",
    "B4": "float ids are refused",
    "B6": "basin files may come from a spreadsheet",
    "B7": "every kind of text id is the same text",
    "B8": "unsorted, repeated and missing times are named, or mended on request",
    "B10": "calendars without leap days or with 30-day months",
    "B12": "the step comes from differences; months are refused",
    "B13": "data sets of different steps",
    "B14": "a gap makes segments",
    "B15": "steps beside a gap are not neighbours",
    "B17": "no window at all is a result with counts",
    "C1": "a chunk grid for each variable",
    "C2": "each chunk is read once, whatever the other variables' grids",
    "C3": "dimensions by name, in any order",
    "C5": "shards are read within the memory that was predicted",
    "C7": "many tiny chunks, in both formats, and a word about them",
    "C8": "no graph entry for each chunk",
    "C9": "time in tiny chunks is read once",
    "C11": "format 3 with and without consolidated metadata, and with a stale one",
    "C13": "windows are runs, not objects",
    "C14": "hundreds of millions of windows take no memory",
    "D1": "servers that ask for fewer requests are waited for, and counted",
    "D2": "faults on the way are tried again, mistakes in the configuration are not",
    "D3": "one layer of tries with one deadline",
    "D4": "http and https, bucket in the path or in the host name",
    "D6": "anonymous requests look for no credentials",
    "D7": "locators cross processes, and each process has one client",
    "D9": "a cap on requests for the process, within its open files",
    "D10": "a store that is not there is named, with what is beside it",
    "D11": "nothing is guessed",
    "E1": "no fork after reading",
    "E2": "no codec in a forked process",
    "E3": "no DuckDB in workers",
    "E4": "one thread owns DuckDB",
    "E5": "plans are a few arrays",
    "E6": "twenty epochs need no more memory than two",
    "E7": "what each rank reads and holds",
    "E8": "one numeric thread for each gather thread",
    "E9": "chunks are read once, however small the memory budget",
    "E11": "the cache deletes its own files only",
    "E12": "too little memory or disk is an error with both numbers",
    "E14": "a plain script works without a main guard",
    "E15": "PyTorch is the only tensor library",
    "F1": "a bounded number of tasks",
    "F2": "the memory of tasks is known before they start",
    "F3": "tasks are locators",
    "F4": "killed workers and clients lose what was in flight",
    "F7": "an altered chunk makes the index stale",
    "G1": "tables without rows have their schema",
    "G2": "integers are never null",
    "H1": "equal numbers of batches on every rank",
    "H2": "len() is what comes",
    "H3": "done and resumed make the epoch",
    "H4": "states count what was handed out",
    "H6": "epochs go on by themselves",
    "H7": "the order does not depend on threads",
    "H8": "ranks that differ fail at the start",
    "H10": "the order without shuffling",
    "H12": "a bounded budget mixes as a full shuffle",
    "H13": "short records are served",
    "H14": "iterating twice, seeds and states",
    "H15": "last batches with several threads",
    "I1": "means in float64",
    "I2": "variances by merged moments",
    "I3": "statistics do not depend on order or chunks",
    "I5": "missing statics are listed by basin and attribute",
    "I7": "a missing input has a policy for each variable",
    "I10": "valid ranges come from the configuration alone",
    "I12": "every window that is not served has a reason and a count",
    "I13": "statistics of the training period alone",
}


def test_pytorch_is_the_only_tensor_library() -> None:
    """Field case E15."""
    needed = {re.split(r"[^\w-]", line, maxsplit=1)[0].lower() for line in requires("headrace") or []}
    assert "torch" in needed
    assert not needed & {"jax", "jaxlib", "tensorflow", "keras"}


@functools.cache
def named_cases() -> set[str]:
    """Return every case that the docstring of a test, or of what it is made from, names."""
    found: set[str] = set()
    for path in (REPOSITORY / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found |= set(re.findall(r"\b[A-I]\d{1,2}\b", ast.get_docstring(node) or ""))
    return found


@pytest.mark.parametrize("case", CASES)
def test_case_has_a_test_that_names_it(case: str) -> None:
    assert case in named_cases(), f"no test names {case}: {CASES[case]}"
