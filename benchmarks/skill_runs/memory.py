"""Rows of ``skill_budgets.py`` → a section on skill against memory, and a picture of it."""

import math
import statistics
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, Any]
Difference = Callable[[Row, Row], float]
_COMMAND = "python benchmarks/skill_budgets.py --data $HEADRACE_DATA --work-dir DIR --json docs/benchmarks/rows.jsonl"
_COLUMNS = (
    "memory", "days of each basin in a round", "rounds", "tiles a round", "basins a batch, of a perfect shuffle",
    "test NSE, each seed", "mean", "minus resident", "minus resident, basin by basin",
)  # fmt: skip
_ENOUGH_ERRORS = 2.0
"""Standard errors beyond which a difference is one."""


def last_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the last row of each training."""
    return list({(str(row["settings"]), row["seed"], row["budget_share"]): row for row in rows}.values())


def by_rate(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of trainings whose learning rate falls, and of those at a constant one."""
    falling = [row for row in rows if row["settings"]["learning_rate_decay"] != "none"]
    return falling, [row for row in rows if row["settings"]["learning_rate_decay"] == "none"]


def section(every: Sequence[Row], picture: str) -> list[str]:
    """Return the lines of the section: trainings whose learning rate falls, then those at a constant one."""
    rows, constant = by_rate(every)
    first = rows[0]
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in first["settings"].items())
    note = f" {first['note']}." if first["note"] else ""
    lines = [
        f"## Skill against memory: {first['basins']} basins of eleven sources",
        "",
        f"    {_COMMAND}",
        "",
        fill(
            "Headrace alone, one LSTM jointly on every daily record of ten years or more with precipitation and "
            f"streamflow (`benchmarks/skill_runs/joint.py`): {first['train_windows']:,} training windows over "
            f"{first['decoded_rows']:,} days of one basin, {first['decoded_nbytes'] / 2**20:.1f} MiB decoded. Every "
            "seed trains once with each budget, a share of those bytes, half of which hold a round while the other "
            "half takes the next. Resident trainings serve their first epoch in rounds too, as rows arrive, and mix it "
            f"less. NSE is the median over basins on test years that no training saw; {settings}. "
            f"{first['date']}, commit {first['commit']}, {first['processor']} with {first['cores']} cores.{note}",
            width=120,
        ),
        "",
        *_table(rows),
        "",
        fill(_verdict(rows), width=120),
        "",
        f"![test NSE against memory]({picture})",
        "",
    ]
    if constant:
        lines += ["The same at a constant learning rate (`--constant-rate`):", "", *_table(constant), ""]
        lines += [fill(_verdict(constant), width=120), ""]
    return lines


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}"]
    for share in _shares(rows):
        found = _of(rows, share)
        one = found[0]
        memory = f"1/{1 / share:g}: {one['memory_budget'] / 1024:,.0f} KiB" if share else "resident"
        mixed, number = f"{one['quality']['distinct_basins_ratio']:.2f}", one["quality"]["rounds"]
        rounds = f"{number} | {one['tiles_a_round']:.0f}"
        if not share:  # measured is the first epoch; the others have one round, and its order is a whole permutation
            mixed, rounds = f"{mixed}, then 1.00", f"{number}, then 1 | –"
        each = ", ".join(f"{row['nse_median']:.3f}" for row in found)
        lines.append(
            f"| {memory} | {one['round_rows'] / one['basins']:,.0f} | {rounds} | {mixed} | "
            f"{each} | {_mean(found):.3f} | {_against(rows, share, medians)} | "
            f"{_against(rows, share, basins)} |"
        )
    return lines


def _shares(rows: Sequence[Row]) -> list[float]:
    return [0.0, *sorted({row["budget_share"] for row in rows} - {0.0}, reverse=True)]


def _of(rows: Sequence[Row], share: float) -> list[Row]:
    return sorted((row for row in rows if row["budget_share"] == share), key=lambda row: row["seed"])


def _mean(rows: Sequence[Row]) -> float:
    return statistics.mean(row["nse_median"] for row in rows)


def medians(row: Row, resident: Row) -> float:
    """Return the difference of the medians over basins."""
    return float(row["nse_median"] - resident["nse_median"])


def basins(row: Row, resident: Row) -> float:
    """Return the median over basins of their differences: seeds agree on it better than on medians."""
    return statistics.median(nse - resident["nse"][basin] for basin, nse in row["nse"].items())


def difference(rows: Sequence[Row], share: float, of: Difference) -> tuple[float, float]:
    """Return the mean difference from the resident training of the same seed, and its standard error."""
    resident = {row["seed"]: row for row in _of(rows, 0.0)}
    found = [of(row, resident[row["seed"]]) for row in _of(rows, share) if row["seed"] in resident]
    error = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.inf
    return statistics.mean(found), error


def _against(rows: Sequence[Row], share: float, of: Difference) -> str:
    if not share:
        return "–"
    mean, error = difference(rows, share, of)
    return f"{mean:+.3f} ± {error:.3f}"


def _verdict(rows: Sequence[Row]) -> str:
    shares = _shares(rows)
    seeds = [row["nse_median"] for row in _of(rows, 0.0)]
    lost = []
    for share in shares[1:]:
        mean, error = min(
            (difference(rows, share, of) for of in (medians, basins)), key=lambda d: d[0] / max(d[1], 1e-9)
        )
        if mean < -_ENOUGH_ERRORS * error:
            lost.append(f"1/{1 / share:g} ({mean:+.3f})")
    what = (
        f"Beyond {_ENOUGH_ERRORS:g} standard errors below the resident trainings: {', '.join(lost)}."
        if lost
        else f"No budget is more than {_ENOUGH_ERRORS:g} standard errors below the resident trainings."
    )
    return (
        f"{what} Resident trainings of different seeds lie between {min(seeds):.3f} and {max(seeds):.3f}; ± is the "
        f"standard error of the mean of the differences, each between two trainings of one seed. In the last "
        "column a seed's difference is the median of those of its basins. Where a batch mixes less than about 0.9 of "
        "the basins of a perfect shuffle, the loader warns and names a budget that would do."
    )


def draw(every: Sequence[Row]) -> Figure:
    """Return NSE, and its difference from resident trainings, against the share of the split that memory holds."""
    rows, _ = by_rate(every)
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    shares = _shares(rows)
    for seed in sorted({row["seed"] for row in rows}):
        own = {row["budget_share"]: row["nse_median"] for row in rows if row["seed"] == seed}
        kept = [share for share in shares if share in own]
        places = [share or 1.0 for share in kept]
        left.plot(places, [own[share] for share in kept], "o-", color="tab:blue", alpha=0.35, linewidth=0.8)
    left.plot([share or 1.0 for share in shares], [_mean(_of(rows, s)) for s in shares], "s-", color="black")
    left.set(ylabel="median test NSE over basins", title="each seed, and their mean")
    told = [difference(rows, share, basins) for share in shares[1:]]
    right.errorbar(shares[1:], [mean for mean, _ in told], [error for _, error in told], fmt="s-", color="black")
    right.axhline(0.0, color="gray", linewidth=0.8)
    right.set(ylabel="NSE minus resident", title="basin by basin: mean of the seeds, standard error")
    for panel in (left, right):
        panel.set_xscale("log", base=2)
        panel.set_xticks([s or 1.0 for s in shares], [f"1/{1 / s:g}" if s else "all" for s in shares])
        panel.set(xlabel="memory, of the decoded training split", xlim=(0.85 * min(shares[1:]), 1.2))
        panel.title.set_fontsize(9)
        panel.margins(y=0.3)
    return figure
