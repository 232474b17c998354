"""Published records as they lie in the data folder: CSV text to NumPy, with no help from the package under test."""

import csv
import gzip
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Records:
    """Daily records of one source on the axis from the first to the last date of any basin.

    Parameters
    ----------
    basins
        Ids, sorted.
    first
        Date of step 0.
    values
        Column name to float64 [basins, steps]; NaN where the text is missing or the row absent.
    """

    basins: list[str]
    first: date
    values: dict[str, NDArray[np.float64]]

    def step(self, day: str) -> int:
        """Return the step of a date."""
        return int((date.fromisoformat(day) - self.first) / timedelta(days=1))

    @property
    def num_steps(self) -> int:
        """Steps on the axis."""
        return int(next(iter(self.values.values())).shape[1])


def read_records(folder: Path, time_column: str, columns: list[str]) -> Records:
    """Read ``folder/series/<basin>.csv.gz``; ``NA`` is missing."""
    tables = {}
    for path in sorted((folder / "series").glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            tables[path.name.removesuffix(".csv.gz")] = list(csv.DictReader(file))
    days = {b: [date.fromisoformat(row[time_column]) for row in rows] for b, rows in tables.items()}
    first, last = min(d[0] for d in days.values()), max(d[-1] for d in days.values())
    size = (last - first) // timedelta(days=1) + 1
    values = {name: np.full((len(tables), size), np.nan) for name in columns}
    for line, (basin, rows) in enumerate(tables.items()):
        for day, row in zip(days[basin], rows, strict=True):
            for name in columns:
                text = row[name].strip()
                values[name][line, (day - first).days] = np.nan if text == "NA" else float(text)
    return Records(basins=list(tables), first=first, values=values)
