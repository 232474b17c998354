"""Pages about an index, about a run that was evaluated, and about one that was not."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from browser import Browser, find_browser, running_browser
from headrace.commands.report_pages import report_of
from large_index import write_large_index
from report_folders import write_index_of_two, write_run


@dataclass(frozen=True)
class Pages:
    """Folders and the pages written about them."""

    index: Path
    run: Path
    bare_run: Path
    index_page: Path
    run_page: Path
    bare_page: Path


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """An index, a run that was evaluated, one that was not, and a page about each."""
    folder = tmp_path_factory.mktemp("reports")
    index = write_index_of_two(folder)
    run, bare = folder / "run", folder / "bare"
    write_run(run, index, evaluated=True)
    write_run(bare, index, evaluated=False)
    names = [folder / f"{name}.html" for name in ("index", "run", "bare")]
    for place, out in zip((index, run, bare), names, strict=True):
        report_of(place, out)
    return Pages(index, run, bare, *names)


@pytest.fixture(scope="session")
def large_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of ten thousand basins."""
    return write_large_index(tmp_path_factory.mktemp("large") / "index")


@pytest.fixture(scope="session")
def large_page(large_index: Path) -> Path:
    """The page about it."""
    out = large_index.parent / "large.html"
    report_of(large_index, out)
    return out


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium that several tests share."""
    path = find_browser()
    if path is None:
        pytest.skip("needs Chromium on PATH: apt-get install chromium")
    with running_browser(path, tmp_path_factory.mktemp("browser")) as running:
        yield running
