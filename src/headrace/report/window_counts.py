"""Windows of each split, and why others are not served: bars in a table, so that the numbers stand beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.loader import Index
from headrace.report.numbers import count, share
from headrace.report.overview import Dataset
from headrace.report.questions import rows_of
from headrace.schemas.config import SPLITS

REASONS = {
    "record_too_short": "record too short",
    "time_gap": "gap in the time axis",
    "target_missing": "target missing",
    "input_missing": "input missing",
}
"""Reason in the table ``dropped`` → words; what it means is said on the page."""


SERVED = "k0"
"""Class of the part of a bar that is served."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar: class of its colour, per cent of the bar, and words."""

    kind: str
    width: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBar:
    """One row: a split of a data set."""

    dataset_id: str
    split: str
    basins: str
    served: str
    dropped: str
    pieces: list[Piece]
    reasons: str


def split_bars(index: Index, datasets: Sequence[Dataset]) -> list[SplitBar]:
    """Return a bar per data set and split; a whole bar is every window that the period has room for."""
    dropped = rows_of(index, "SELECT dataset_id, split, reason, num_windows FROM why_dropped")
    bars = []
    for dataset in datasets:
        for split in SPLITS:
            if split not in dataset.splits:
                continue
            reasons = {
                r["reason"]: r["num_windows"]
                for r in dropped
                if (r["dataset_id"], r["split"]) == (dataset.dataset_id, split)
            }
            bars.append(_bar(dataset, split, reasons))
    return bars


def _bar(dataset: Dataset, split: str, reasons: dict[str, int]) -> SplitBar:
    row = dataset.splits[split]
    served = int(row["windows"])
    universe = served + sum(reasons.values())
    parts = {"served": served, **{reason: reasons.get(reason, 0) for reason in REASONS}}
    pieces = [
        Piece(f"k{number}", round(100 * n / universe, 3), f"{count(n)} {REASONS.get(name, name)}")
        for number, (name, n) in enumerate(parts.items())
        if n
    ]
    without = row["basins"] - row["with_windows"]
    return SplitBar(
        dataset_id=dataset.dataset_id,
        split=split,
        basins=f"{count(row['with_windows'])} of {count(row['basins'])}" if without else count(row["basins"]),
        served=count(served),
        dropped=f"{count(universe - served)} ({share((universe - served) / universe)})" if universe > served else "–",
        pieces=pieces,
        reasons="; ".join(piece.words for piece in pieces if piece.kind != SERVED)
        or ("" if universe else "the period has no room for a window"),
    )
