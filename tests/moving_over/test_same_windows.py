"""Training windows are those that torchhydro 0.2.0 lists, for every target policy: golden sets, and asked afresh."""

import json

import pytest

from torchhydro_cases import POLICIES, headrace_answers, random_case, torchhydro_questions, write_case
from torchhydro_environment import VERSION, Torchhydro
from tree import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "torchhydro_windows"


@pytest.mark.parametrize("policy", POLICIES)
def test_training_windows_equal_the_golden_sets_of_torchhydro(policy, tmp_path):
    golden = json.loads((GOLDEN / f"{policy}.json").read_text(encoding="utf-8"))
    assert golden["provenance"]["torchhydro"] == VERSION
    for case in golden["cases"]:
        assert case["questions"][0]["policy"] == policy
        folder = tmp_path / str(case["seed"])
        ours = headrace_answers(case, write_case(case, folder), folder / "index")
        for question, answer, expected in zip(case["questions"], ours, case["answers"], strict=True):
            assert answer == expected, (case["seed"], question)


def test_golden_sets_ask_what_matters():
    cases = [case for policy in POLICIES for case in json.loads((GOLDEN / f"{policy}.json").read_text())["cases"]]
    assert {len(case["targets"]) for case in cases} == {1, 2}
    assert {len(case["sources"]) for case in cases} == {1, 2}
    shapes = [question["shape"] for case in cases for question in case["questions"]]
    assert len({shape["warmup_length"] for shape in shapes}) > 5
    assert any(s["warmup_length"] == 0 for s in shapes)
    counts = [sum(stop - start for rows in a.values() for _, start, stop in rows) for c in cases for a in c["answers"]]
    assert sum(count > 0 for count in counts) > len(counts) / 2


@pytest.mark.slow
@pytest.mark.network
def test_training_windows_equal_torchhydros_on_random_stores(tmp_path):
    with Torchhydro() as torchhydro:
        for seed in range(1000, 1100):
            case = random_case(seed, questions=6)
            folder = tmp_path / str(seed)
            stores = write_case(case, folder)
            ours = headrace_answers(case, stores, folder / "index")
            for question, answer in zip(torchhydro_questions(case, stores), ours, strict=True):
                assert answer == torchhydro.ask("windows", **question), (seed, question)
