"""Any source of the data folder as it was published: CSV text to NumPy, by the words of its ``meta.json``.

Nothing here calls the package under test, nor the script that writes the stores.
"""

import csv
import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = {"1D": timedelta(days=1), "1h": timedelta(hours=1), "15min": timedelta(minutes=15)}
ALWAYS_MISSING = {"", "NA", "NaN", "nan"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Series and attributes of one source.

    Parameters
    ----------
    basins
        Ids of all basins with a series, sorted.
    first
        Time of step 0, the earliest of any basin.
    step
        Distance between two steps.
    num_steps
        Up to the latest time of any basin.
    values
        Array name to float64 [basins, steps]; NaN where the text means missing or the row is absent.
    units
        Array name to unit.
    attributes
        Attribute name to basin id to number; text attributes are left out.
    attribute_units
        Attribute name to unit.
    """

    basins: list[str]
    first: datetime
    step: timedelta
    num_steps: int
    values: dict[str, NDArray[np.float64]]
    units: dict[str, str]
    attributes: dict[str, dict[str, float]]
    attribute_units: dict[str, str]

    def period(self, first: str, last: str) -> tuple[int, int]:
        """Return the steps [start, stop) from one date to another; a bare last date means its whole day."""
        end = datetime.fromisoformat(last)
        end += timedelta(days=1) if len(last) == len("2000-01-01") else self.step
        start, stop = ((moment - self.first) / self.step for moment in (datetime.fromisoformat(first), end))
        return max(math.ceil(start), 0), min(math.ceil(stop), self.num_steps)


def read_source(folder: Path) -> Source:
    """Read all tables of a source."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    step = STEPS[meta["step"]]
    pieces = []
    units: dict[str, str] = {}
    for table in meta["tables"]:
        for variable in table["variables"]:
            units.setdefault(variable["name"], variable["units"])
        for path in sorted((folder / table["dir"]).glob("*.csv.gz")):
            with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
                pieces.append((path.name.removesuffix(".csv.gz"), *read_table(file, table)))
    first = min(min(times) for _, times, _ in pieces)
    num_steps = (max(max(times) for _, times, _ in pieces) - first) // step + 1
    basins = sorted({basin for basin, _, _ in pieces})
    values = {name: np.full((len(basins), num_steps), np.nan) for name in units}
    for basin, times, columns in pieces:
        steps = [divmod(moment - first, step) for moment in times]
        assert not any(rest for _, rest in steps), f"{basin}: a time off the grid"
        for name, numbers in columns.items():
            values[name][basins.index(basin), [at for at, _ in steps]] = numbers
    attributes, attribute_units = read_attributes(folder, meta)
    return Source(
        basins=basins,
        first=first,
        step=step,
        num_steps=num_steps,
        values=values,
        units=units,
        attributes=attributes,
        attribute_units=attribute_units,
    )


def read_table(file: Iterator[str], table: Mapping[str, Any]) -> tuple[list[datetime], dict[str, list[float]]]:
    """Return the times of one file, and the numbers of each of its variables; of a repeated time one row stays."""
    reader = csv.reader(file, delimiter=table.get("sep", ","))
    place = {name.strip(): i for i, name in enumerate(next(reader))}
    wanted = [(place[column], value) for column, value in table.get("row_filter", {}).items()]
    rows = [row for row in reader if row and all(row[i] == value for i, value in wanted)]
    times = _times(rows, [place[column] for column in table["time_columns"]], table)
    if len(set(times)) < len(times):
        keep = table.get("duplicates", "error")
        assert keep in ("first", "last"), "a time comes twice"
        order = range(len(times)) if keep == "last" else reversed(range(len(times)))
        rows_of = {times[i]: rows[i] for i in order}
        times, rows = list(rows_of), list(rows_of.values())
    numbers = {}
    for variable in table["variables"]:
        names = variable["column"] if isinstance(variable["column"], list) else [variable["column"]]
        found = [place[name] for name in names if name in place]
        if found:
            read = _Reader(table["missing"], table.get("decimal", "."))
            numbers[variable["name"]] = [read.number(row[found[0]]) for row in rows]
    return times, numbers


def _times(rows: Sequence[Sequence[str]], columns: Sequence[int], table: Mapping[str, Any]) -> list[datetime]:
    pattern = table["time_format"]
    if pattern == "ymd":
        year, month, day = columns
        return [datetime(int(row[year]), int(row[month]), int(row[day])) for row in rows]
    texts = [row[columns[0]] for row in rows]
    if pattern in ("%Y-%m-%d", "%Y-%m-%d %H:%M"):  # ISO text, read ten times faster
        times = [datetime.fromisoformat(text) for text in texts]
    else:
        times = [datetime.strptime(text, pattern) for text in texts]
    if "floor" in table:
        assert table["floor"] == "1D"
        times = [datetime.combine(date(t.year, t.month, t.day), datetime.min.time()) for t in times]
    return times


class _Reader:
    """Text to number, by the missing flags of a table: a flag that is a number matches whatever equals it."""

    def __init__(self, missing: Sequence[str], decimal: str) -> None:
        self.texts = {*ALWAYS_MISSING, *missing}
        self.flags = {float(text) for text in missing if _is_number(text)}
        self.decimal = decimal

    def number(self, text: str) -> float:
        text = text.strip()
        if text in self.texts:
            return math.nan
        value = float(text.replace(self.decimal, "."))
        return math.nan if value in self.flags else value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_attributes(folder: Path, meta: Mapping[str, Any]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return every attribute all of whose values are numbers, and the units that ``meta.json`` gives."""
    found: dict[str, dict[str, float]] = {}
    units: dict[str, str] = {}
    for table in meta.get("attributes", []):
        path = folder / table["file"]
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter=table["sep"]))
        units |= table.get("units", {})
        for name in rows[0]:
            texts = {row[table["id_column"]]: row[name].strip() for row in rows}
            known = {basin: text for basin, text in texts.items() if text not in {"", *table["missing"]}}
            if name != table["id_column"] and known and all(map(_is_number, known.values())):
                found[name] = {basin: float(text) for basin, text in known.items()}
    return found, units
