"""Which basins and which steps of a store a data set asks for.

Pure functions of the configuration and the coordinates: names become store rows, dates become steps.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.coordinates import pad_id
from headrace.indexer.problems import Problems
from headrace.schemas.config import SPLITS, DatasetConfig, Split, SplitBasins
from headrace.schemas.dates import iso_text
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.time_axis import TimeAxis
from headrace.schemas.windows import TimeRange, WindowSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Basins:
    """Configured basins of a data set, in store order.

    Parameters
    ----------
    ids
        Text ids.
    rows
        Store row of each.
    splits
        Splits each belongs to, comma-separated, such as ``train,valid,test``.
    """

    ids: tuple[str, ...]
    rows: tuple[int, ...]
    splits: tuple[str, ...]

    def without(self, dropped: Iterable[int]) -> "Basins":
        """Return the basins but those at the given positions."""
        gone = set(dropped)
        keep = [i for i in range(len(self.ids)) if i not in gone]
        return Basins(
            ids=tuple(self.ids[i] for i in keep),
            rows=tuple(self.rows[i] for i in keep),
            splits=tuple(self.splits[i] for i in keep),
        )

    def of_split(self, split: Split) -> list[int]:
        """Return the positions of the basins of a split, ascending."""
        return [i for i, text in enumerate(self.splits) if split in text.split(",")]


def select_basins(rows: Mapping[str, int], config: DatasetConfig, *, key: str, uri: str) -> Basins:
    """Return the configured basins in store order.

    Raises
    ------
    ConfigError
        The store lacks some of them (listed with near matches), or none is named.
    """
    if isinstance(config.basins, SplitBasins):
        wanted: dict[str, list[Split]] = {}
        for split in SPLITS:
            for name in _named(getattr(config.basins, split), rows, config.id_width):
                members = wanted.setdefault(name, [])
                if split not in members:
                    members.append(split)
    else:
        wanted = {name: list(SPLITS) for name in _named(config.basins, rows, config.id_width)}
    if not wanted:
        raise ConfigError(
            describe(
                "data set has no basins",
                where=f"{key}.basins",
                expected="at least one basin",
                got=f"none, of {len(rows)} in {uri}",
                fix="name some, or write basins: all",
            )
        )
    unknown = [name for name in wanted if name not in rows]
    if unknown:
        listed = ", ".join(_with_near_match(name, rows) for name in unknown[:10])
        more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
        raise ConfigError(
            describe(
                f"{len(unknown)} of {len(wanted)} basins are not in the store",
                where=f"{key}.basins, {uri}",
                expected=f"ids such as {', '.join(list(rows)[:3])}",
                got=f"{listed}{more}",
                fix="correct the ids, or set id_width if leading zeros were lost",
            )
        )
    chosen = [name for name in rows if name in wanted]
    return Basins(
        ids=tuple(chosen),
        rows=tuple(rows[name] for name in chosen),
        splits=tuple(",".join(wanted[name]) for name in chosen),
    )


def _named(basins: str | tuple[str, ...], rows: Mapping[str, int], id_width: int | None) -> list[str]:
    if basins == "all":
        return list(rows)
    names = [basins] if isinstance(basins, str) else basins
    return [pad_id(name.strip(), id_width) for name in names]


def basin_remarks(rows: Mapping[str, int], config: DatasetConfig, *, key: str) -> list[str]:
    """Say which ids are named more than once, and which periods or basins of a split stand alone."""
    if not isinstance(config.basins, SplitBasins):
        return _repeated(_named(config.basins, rows, config.id_width), f"{key}.basins")
    remarks = []
    for split in SPLITS:
        names = _named(getattr(config.basins, split), rows, config.id_width)
        remarks += _repeated(names, f"{key}.basins.{split}")
        if bool(names) == (config.period(split) is not None):
            continue
        remarks.append(
            f"{key}.basins.{split}: {len(set(names))} basins, but there is no t_range_{split}, so it has no windows"
            if names
            else f"{key}.basins names none for {split}, so t_range_{split} has no windows"
        )
    return remarks


def _repeated(names: list[str], where: str) -> list[str]:
    again = [name for name, count in Counter(names).items() if count > 1]
    if not again:
        return []
    more = ", …" if len(again) > 4 else ""
    plural = "basin is" if len(again) == 1 else "basins are"
    return [
        f"{where}: {len(again)} {plural} named more than once and taken once ({', '.join(again[:4])}{more}); "
        f"{len(names)} entries, {len(set(names))} basins"
    ]


def _with_near_match(name: str, rows: Mapping[str, int]) -> str:
    bare = name.lstrip("0")
    same = [known for known in rows if known.lstrip("0") == bare]
    near = same or difflib.get_close_matches(name, list(rows), n=1, cutoff=0.75)
    return f"{name} (near: {near[0]})" if near else name


def select_periods(config: DatasetConfig, axis: TimeAxis, *, key: str, problems: Problems) -> dict[Split, TimeRange]:
    """Return the steps of each configured period, clipped to the record; what is wrong goes to ``problems``."""
    record = _span(axis, TimeRange(start=0, stop=axis.num_steps))
    periods: dict[Split, TimeRange] = {}
    for split in SPLITS:
        dates = config.period(split)
        if dates is None:
            continue
        where = f"{key}.t_range_{split}"
        with problems.collecting():
            period, clipped = axis.range_of(*dates, key=where)
            if period.start >= period.stop:
                raise ConfigError(
                    describe(
                        "period lies outside the record",
                        where=where,
                        expected=f"dates within {record}",
                        got=f"{dates[0]} to {dates[1]}",
                        fix="choose a period that overlaps the record",
                    )
                )
            if clipped:
                problems.remarks.append(
                    f"{where}: {dates[0]} to {dates[1]} reaches beyond the record {record}; "
                    f"clipped to {_span(axis, period)}"
                )
            periods[split] = period
    if not periods and not any(config.period(s) for s in SPLITS):
        problems.remarks.append(f"{key}: no t_range_train, t_range_valid or t_range_test, so it has no windows")
    return periods


def overlap_remarks(periods: Mapping[Split, TimeRange], basins: Basins, *, key: str) -> list[str]:
    """Return a remark for each split that shares target steps and basins with training: its scores would flatter."""
    train, trained = periods.get("train"), set(basins.of_split("train"))
    remarks = []
    for split in SPLITS:
        period, both = periods.get(split), len(trained.intersection(basins.of_split(split)))
        if split == "train" or train is None or period is None or not both:
            continue
        shared = min(train.stop, period.stop) - max(train.start, period.start)
        if shared > 0:
            remarks.append(
                f"{key}: t_range_train and t_range_{split} share {shared} steps of {both} basins, so scores on {split} "
                "count steps that were trained on"
            )
    return remarks


def room_remarks(periods: Mapping[Split, TimeRange], axis: TimeAxis, spec: WindowSpec, *, key: str) -> list[str]:
    """Return a remark for each split in which no window has room, whatever is observed."""
    remarks = []
    for split, period in periods.items():
        room = max(min(period.stop, s.stop) - max(s.start, period.start - spec.warmup_length) for s in axis.ranges())
        if room < spec.length:
            remarks.append(
                f"{key}: no window fits t_range_{split}: it takes {spec.length} steps in a row, and with "
                f"{spec.warmup_length} steps of warm-up before the period there are {max(room, 0)}"
            )
    return remarks


def step_remarks(axes: Mapping[str, TimeAxis], *, allowed: bool) -> list[str]:
    """Return a remark where data sets have different time steps, which no loader serves together unless allowed."""
    steps = {name: axis.step_seconds for name, axis in axes.items()}
    if allowed or len(set(steps.values())) < 2:
        return []
    listed = ", ".join(f"{seconds} s in {name}" for name, seconds in steps.items())
    return [
        f"datasets: time steps differ, {listed}: a loader serves those of one step, chosen with --datasets, or all "
        "with loader.allow_mixed_time_steps: true"
    ]


def _span(axis: TimeAxis, period: TimeRange) -> str:
    seconds = axis.seconds()
    first, last = (iso_text(int(seconds[i]), axis.calendar) for i in (period.start, period.stop - 1))
    return f"{first} to {last}"
