"""Windows and observed targets of every basin, those with the fewest windows to train on first."""

from collections.abc import Sequence

from headrace.loader import Index
from headrace.report.find_table import FindTable, find_table
from headrace.report.numbers import count, plural, share
from headrace.report.overview import Dataset, splits_of
from headrace.report.questions import ask

MOST_BASINS = 12_000


def basin_list(index: Index, datasets: Sequence[Dataset]) -> FindTable:
    """Return the basins, at most :data:`MOST_BASINS`; a dash stands for a split that a basin is not in."""
    periods = {d.dataset_id: set(d.periods) for d in datasets}
    splits = splits_of(datasets)
    rows = []
    for row in ask(index, "basins", most=MOST_BASINS):
        member = periods[row["dataset_id"]] & set(row["splits"].split(","))
        windows = [count(row[split]) if split in member else "–" for split in splits]
        rows.append((row["basin_id"], row["dataset_id"], *windows, share(row["target_share"])))
    num_basins = sum(d.num_basins for d in datasets)
    left = num_basins - len(rows)
    note = (
        f"Here are the {count(len(rows))} with the fewest windows to train on; "
        f"headrace sql finds the other {count(left)}."
        if left > 0
        else f"{plural(num_basins, 'basin')}, those with the fewest windows to train on first."
    )
    header = ("basin", "data set", *splits, "target observed")
    return find_table("basins", "Windows of each basin", header, rows, note, texts=2)
