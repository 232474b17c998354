"""What an index holds, in one glance: cards, and a row per data set."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.loader import Index
from headrace.report.numbers import count, plural, short_count, size, step_length
from headrace.report.plot import DataTable
from headrace.report.questions import Row, ask, rows_of
from headrace.schemas.config import SPLITS
from headrace.schemas.dates import iso_text


@dataclass(frozen=True, slots=True)
class Card:
    """A number, what it counts, and a few words more."""

    number: str
    name: str
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set: its row of the table, the words for its record, and the splits it has."""

    row: Row
    first: str
    last: str
    splits: dict[str, Row]
    periods: dict[str, Row]

    @property
    def dataset_id(self) -> str:
        """Its id."""
        return str(self.row["dataset_id"])

    @property
    def num_basins(self) -> int:
        """Basins."""
        return int(self.row["num_basins"])

    @property
    def num_steps(self) -> int:
        """Time steps of the record."""
        return int(self.row["num_steps"])


def read_datasets(index: Index) -> list[Dataset]:
    """Return the data sets in the order of the configuration."""
    rows = {row["dataset_id"]: row for row in rows_of(index, "SELECT * FROM datasets")}
    splits, periods = ask(index, "splits"), rows_of(index, "SELECT * FROM periods")
    found = []
    for name in index.dataset_ids:
        axis = index.time_axis(name)
        whole_days = axis.step_seconds % 86_400 == 0
        final = axis.segments[-1]
        last = final.seconds + axis.step_seconds * (final.stop - final.start - 1)
        first, latest = (iso_text(s, axis.calendar) for s in (axis.segments[0].seconds, last))
        found.append(
            Dataset(
                row=rows[name],
                first=_date(first, whole_days=whole_days),
                last=_date(latest, whole_days=whole_days),
                splits={row["split"]: row for row in splits if row["dataset_id"] == name},
                periods={row["split"]: row for row in periods if row["dataset_id"] == name},
            )
        )
    return found


def _date(text: str, *, whole_days: bool) -> str:
    return text[:10] if whole_days else text[:16].replace("T", " ")


def splits_of(datasets: Sequence[Dataset]) -> list[str]:
    """Return the splits that some data set has a period for."""
    return [split for split in SPLITS if any(split in d.periods for d in datasets)]


def make_cards(index: Index, datasets: Sequence[Dataset]) -> list[Card]:
    """Return the numbers at the top of the page."""
    stored = rows_of(index, "SELECT sum(stored_nbytes)::BIGINT AS stored, count(*) AS objects FROM chunks")[0]
    tables = sum(entry.nbytes for entry in index.manifest.tables.values())
    lengths = sorted({step_length(d.row["step_seconds"]) for d in datasets})
    cards = [
        Card(count(len(datasets)), "data sets" if len(datasets) != 1 else "data set"),
        Card(short_count(sum(d.num_basins for d in datasets)), "basins"),
        Card(short_count(sum(d.num_basins * d.num_steps for d in datasets)), "basin steps", f"of {', '.join(lengths)}"),
    ]
    for split in SPLITS:
        rows = [d.splits[split] for d in datasets if split in d.splits]
        if rows:
            basins = sum(row["with_windows"] for row in rows)
            windows = sum(row["windows"] for row in rows)
            cards.append(Card(short_count(windows), f"{split} windows", f"in {plural(basins, 'basin')}"))
    return [
        *cards,
        Card(size(stored["stored"] or 0), "stored", f"{plural(stored['objects'], 'object')}; index {size(tables)}"),
    ]


def dataset_table(datasets: Sequence[Dataset]) -> DataTable:
    """Return a row per data set."""
    rows, splits = [], splits_of(datasets)
    for d in datasets:
        periods = [f"{_day(d.periods[s]['time_start'])} – {_day(d.periods[s]['time_last'])}" if s in d.periods else "–"
                   for s in splits]  # fmt: skip
        step, record = step_length(d.row["step_seconds"]), f"{d.first} – {d.last}"
        rows.append((d.dataset_id, count(d.num_basins), count(d.num_steps), step, record, *periods))
    header = ("data set", "basins", "steps", "step", "record", *(f"{split} targets" for split in splits))
    return DataTable(caption="Data sets, their records and periods", header=header, rows=rows)


def _day(text: str) -> str:
    """Return an ISO time without its clock where that says midnight."""
    return text[:10] if text[10:16] in ("", "T00:00", " 00:00") else text[:16].replace("T", " ")
