"""Rules that hold for every file of the repository, whatever it says."""

import re

from tree import REPOSITORY, listed_files

MAX_SOURCE_LINES = 300

# Written so that these lines do not match themselves.
ABSOLUTE_PATH = re.compile(r"(?<![\w.}])/(?:w[o]rk|ro[o]t|h[o]me)/")
REGISTRY_HOST = re.compile(
    r"\b(?:p[y]pi\.(?:org|python\.org)|p[y]thonhosted\.org|d[o]wnload\.pytorch\.org|(?:conda\.)?a[n]aconda\.(?:org|com))"
)
VAGUE_NAMES = {"common", "helper", "helpers", "misc", "util", "utils"}


def text_of_listed_files():
    for name in listed_files():
        path = REPOSITORY / name
        if path.is_symlink():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            yield name, content.decode("utf-8", errors="replace")


def lines_matching(pattern):
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in text_of_listed_files()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_source_files_stay_within_the_line_budget():
    counts = {
        str(name): len(text.splitlines())
        for name, text in text_of_listed_files()
        if name.suffix == ".py" and name.parts[0] != "tests"
    }
    assert counts, "no source file found"
    assert {name: count for name, count in counts.items() if count > MAX_SOURCE_LINES} == {}


def test_no_file_names_a_path_of_one_machine():
    assert lines_matching(ABSOLUTE_PATH) == []


def test_no_file_names_a_package_registry():
    assert lines_matching(REGISTRY_HOST) == []


def test_modules_are_named_by_what_they_hold():
    vague = [
        str(name) for name in listed_files() if name.suffix == ".py" and VAGUE_NAMES & {*name.parts[:-1], name.stem}
    ]
    assert vague == []


def test_links_are_relative_and_resolve():
    links = [name for name in listed_files() if (REPOSITORY / name).is_symlink()]
    assert [str(name) for name in links if (REPOSITORY / name).readlink().is_absolute()] == []
    assert [str(name) for name in links if not (REPOSITORY / name).exists()] == []


def test_no_placeholder_is_left():
    assert lines_matching(re.compile("@" + "@[A-Z]")) == []
