"""What looks wrong in the data, as far as the tables of an index tell: each with where, and what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from headrace.loader import Index
from headrace.report.numbers import count, plural, value
from headrace.report.overview import Dataset
from headrace.report.questions import Row, ask, rows_of
from headrace.schemas.sentinels import looks_like_flag
from headrace.schemas.units import same_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at.

    Parameters
    ----------
    kind
        What sort of thing, in two or three words.
    where
        Data set and variable or split.
    text
        What was found.
    fix
        What to do.
    serious
        Whether training goes wrong if nobody looks.
    """

    kind: str
    where: str
    text: str
    fix: str
    serious: bool = True


def find_all(index: Index, datasets: Sequence[Dataset], series: Sequence[Row]) -> list[Finding]:
    """Return everything that looks wrong, what is serious first.

    Parameters
    ----------
    index, datasets
        The index.
    series
        Rows of the query ``series``.
    """
    found = [
        *_splits(datasets),
        *_shared_days(index),
        *_flags(index),
        *_units(series),
        *_chunks(index),
        *_spread(index, series),
        *_absent_variables(series),
        *_time(index),
    ]
    return sorted(found, key=lambda f: not f.serious)


def _splits(datasets: Sequence[Dataset]) -> Iterator[Finding]:
    for dataset in datasets:
        for split, row in dataset.splits.items():
            without = row["basins"] - row["with_windows"]
            where = f"{dataset.dataset_id}, {split}"
            if row["basins"] and not row["windows"]:
                yield Finding(
                    kind="no window",
                    where=where,
                    text=f"none of {plural(row['basins'], 'basin')} has a window",
                    fix="look at the reasons below: the period, the window's length, or the missing targets",
                )
            elif without:
                yield Finding(
                    kind="basins without windows",
                    where=where,
                    text=f"{count(without)} of {plural(row['basins'], 'basin')} have no window",
                    fix="they take no part in this split; the list of basins names those without windows to train on",
                    serious=False,
                )


def _shared_days(index: Index) -> Iterator[Finding]:
    for row in ask(index, "shared_days"):
        yield Finding(
            kind="splits overlap",
            where=f"{row['dataset_id']}, {row['first_split']} and {row['second_split']}",
            text=f"{plural(row['steps'], 'step')} of {plural(row['basins'], 'basin')} are targets of both",
            fix=f"scores on {row['second_split']} flatter the model: move its period, or give it basins of its own",
        )


def _flags(index: Index) -> Iterator[Finding]:
    for row in ask(index, "extremes"):
        for side, extreme, basins in (
            ("smallest", row["min"], row["with_min"]),
            ("largest", row["max"], row["with_max"]),
        ):
            if looks_like_flag(extreme):
                yield Finding(
                    kind="suspicious fill value",
                    where=f"{row['dataset_id']}, {row['variable']}",
                    text=f"{value(extreme, 6)} is the {side} value, in {count(basins)} of "
                    f"{plural(row['basins'], 'basin')}; files often write it for missing",
                    fix=f"if it means missing, set missing_values: [{extreme:g}] for this variable",
                )


def _units(series: Sequence[Row]) -> Iterator[Finding]:
    for name in dict.fromkeys(row["variable"] for row in series):
        rows = [row for row in series if row["variable"] == name and row["present"] and row["unit"]]
        odd = [(a, b) for a, b in combinations(rows, 2) if not same_unit(a["unit"], b["unit"])]
        if odd:
            listed = "; ".join(f"{row['dataset_id']}: {row['unit']}" for row in rows)
            yield Finding(
                kind="units differ",
                where=name,
                text=f"the model sees one column in several units ({listed})",
                fix="set scale, offset and unit (or per_area) where it differs, so that all data sets agree",
            )


def _chunks(index: Index) -> Iterator[Finding]:
    policy = index.config.missing.absent_chunk
    for row in rows_of(index, "SELECT * FROM read_cost"):
        where = f"{row['dataset_id']}, {row['variable']}"
        if row["unreadable"]:
            yield Finding(
                kind="unreadable chunks",
                where=where,
                text=f"{count(row['unreadable'])} of {plural(row['num_chunks'], 'object')} cannot be decoded and count "
                "as missing",
                fix="write them again from their source, then run build-index again",
            )
        if row["absent"]:
            yield Finding(
                kind="absent chunks",
                where=where,
                text=f"{count(row['absent'])} of {plural(row['num_chunks'], 'object')} were never written",
                fix=f"where the fill value is 0 they count as zeros (missing.absent_chunk: {policy}); if nothing was "
                "written there, set it to missing"
                if policy == "valid_zero"
                else f"they are missing (missing.absent_chunk: {policy})",
                serious=policy == "valid_zero",
            )


def _spread(index: Index, series: Sequence[Row]) -> Iterator[Finding]:
    flat = {(r["dataset_id"], r["variable"]): r["basins"] for r in ask(index, "flat_basins")}
    for row in series:
        where = f"{row['dataset_id']}, {row['variable']}"
        if not row["present"]:
            continue
        if not row["count"]:
            yield Finding(
                kind="no training value",
                where=where,
                text="nothing is observed in the training period",
                fix="the variable is scaled by 1; leave it out, or move the period",
            )
        elif row["min"] == row["max"]:
            yield Finding(
                kind="zero variance",
                where=where,
                text=f"every training value is {value(row['mean'])}",
                fix="the variable tells the model nothing and is scaled by 1; leave it out",
                serious=row["role"] != "static",
            )
        elif basins := flat.get((row["dataset_id"], row["variable"])):
            yield Finding(
                kind="zero variance",
                where=where,
                text=f"in {plural(basins, 'basin')} every training value is the same",
                fix="look whether they hold a fill value; headrace sql lists them: select basin, mean from stats where "
                "scope = 'basin' and min = max",
                serious=False,
            )


def _absent_variables(series: Sequence[Row]) -> Iterator[Finding]:
    for row in series:
        if not row["present"]:
            yield Finding(
                kind="variable not there",
                where=f"{row['dataset_id']}, {row['variable']}",
                text="the store has no such array, and the configuration allows that (required: false)",
                fix="the model gets its fill_value instead",
                serious=False,
            )


def _time(index: Index) -> Iterator[Finding]:
    for row in rows_of(index, "SELECT dataset_id, count(*) AS gaps FROM time_gaps GROUP BY dataset_id ORDER BY ALL"):
        yield Finding(
            kind="gaps in time",
            where=row["dataset_id"],
            text=f"the time axis jumps in {plural(row['gaps'], 'place')}",
            fix="no window crosses them; for windows that do, store the times between as steps with missing values",
            serious=False,
        )
    for row in rows_of(index, "SELECT DISTINCT dataset_id FROM time_order ORDER BY ALL"):
        yield Finding(
            kind="mended time axis",
            where=row["dataset_id"],
            text="the store's times are out of order or repeat; the index uses the mended axis",
            fix="sort the store to read it in fewer pieces",
            serious=False,
        )
