"""The page about an index."""

from headrace import __version__
from headrace.loader import Index
from headrace.report.basin_list import basin_list
from headrace.report.chunk_map import chunk_sections
from headrace.report.coverage import coverage_groups
from headrace.report.findings import find_all
from headrace.report.heat_map import NUM_LEVELS
from headrace.report.overview import dataset_table, make_cards, read_datasets
from headrace.report.page import place_name, render
from headrace.report.questions import ask
from headrace.report.reading import reading
from headrace.report.statistics import variable_sections
from headrace.report.window_counts import REASONS, split_bars


def index_page(index: Index) -> str:
    """Return the page about an open index as HTML; it reads tables only, never a store."""
    datasets = read_datasets(index)
    series = ask(index, "series")
    window = index.config.window.spec()
    return render(
        "index.html",
        title=place_name(index.path),
        kind="index",
        path=str(index.path),
        digest=index.manifest.index_digest,
        version=__version__,
        window=window,
        missing=index.config.missing,
        cards=make_cards(index, datasets),
        datasets=dataset_table(datasets),
        findings=find_all(index, datasets, series),
        coverage=list(coverage_groups(index, datasets)),
        levels=range(NUM_LEVELS + 1),
        bars=split_bars(index, datasets),
        reasons=list(REASONS.values()),
        variables=list(variable_sections(index, datasets, series)),
        chunks=list(chunk_sections(index, datasets)),
        reading=reading(index),
        basins=basin_list(index, datasets),
    )
