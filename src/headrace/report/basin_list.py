"""Windows and observed targets of every basin, those with the fewest windows to train on first."""

from headrace.loader import Index
from headrace.report.find_table import FindTable, find_table
from headrace.report.numbers import count, plural, share
from headrace.report.questions import Row, ask
from headrace.schemas.config import SPLITS

MOST_BASINS = 12_000
_HEADER = ("basin", "data set", *SPLITS, "target observed")


def basin_list(index: Index, num_basins: int) -> FindTable:
    """Return the basins, at most :data:`MOST_BASINS` of ``num_basins``."""
    rows = [_cells(row) for row in ask(index, "basins", most=MOST_BASINS)]
    left = num_basins - len(rows)
    note = (
        f"Here are the {count(len(rows))} with the fewest windows to train on; "
        f"headrace sql finds the other {count(left)}."
        if left > 0
        else f"{plural(num_basins, 'basin')}, those with the fewest windows to train on first."
    )
    return find_table("basins", "Windows of each basin", _HEADER, rows, note, texts=2)


def _cells(row: Row) -> tuple[str, ...]:
    member = row["splits"].split(",")
    windows = [count(row[split]) if split in member else "–" for split in SPLITS]
    return row["basin_id"], row["dataset_id"], *windows, share(row["target_share"])
