"""Rows of ``skill.py`` → one Markdown page, and one picture beside it.

    python benchmarks/skill_runs/report.py docs/benchmarks/rows.jsonl --out docs/benchmarks/skill.md

Of trainings that were made more than once the last one counts.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, Any]
_SIDES = {"neuralhydrology": "neuralhydrology 1.13.0", "headrace": "Headrace"}
_STAGES = ("import", "prepare", "train", "evaluate")
_COMMAND = "python benchmarks/skill.py --data $HEADRACE_DATA --work-dir DIR --json docs/benchmarks/rows.jsonl"

_HEAD = """# The same skill as neuralhydrology, and the seconds it takes

    {command}

One LSTM on all basins of a source, trained with neuralhydrology's `GenericDataset` and with Headrace: the same basins,
periods, variables, windows, model and settings, on the CPU. NSE is the median over basins on test years that neither
has seen; each training has a seed of its own. Seconds are those of the whole process: imports, data preparation
(reading NetCDF files and listing windows; building the index), training and evaluation. The NetCDF files for
neuralhydrology are made beforehand and not counted.

![test NSE of every training]({picture})
"""
_DIFFERENCES = """## Where the sides are not the same

- neuralhydrology scales inputs by their statistics with the warm-up days before the period, Headrace by those of the
  period; statics by a standard deviation with N - 1, Headrace with N.
- Its NSE* divides the error in normalised units by the basin's std in mm/day plus 0.1; Headrace's by the std in
  normalised units plus 0.1, so that both have one unit.
- It leaves the LSTM's second forget bias at its random start, Headrace sets it to 0; the first is 3 in both.
- Weights and order are drawn by other generators: equal seeds do not mean equal runs.
"""
_BUDGET_COLUMNS = ("memory", "rounds", "basins a batch, of a perfect shuffle", "test NSE, each seed", "mean", "seconds")


def main() -> None:
    """Read rows, write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="file with JSON rows; those of other benchmarks are passed over")
    parser.add_argument("--out", type=Path, required=True, help="the page; the picture takes its name with .png")
    args = parser.parse_args()
    cases = by_case(read_rows(args.rows))
    if not cases:
        raise SystemExit(f"{args.rows} holds no row of skill.py")
    picture = args.out.with_suffix(".png")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(cases, picture.name), encoding="utf-8")
    draw(cases).savefig(picture, dpi=120)
    print(f"{args.out}\n{picture}")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of this benchmark."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [row for row in rows if row["benchmark"] == "skill"]


def by_case(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return case, and whether its learning rate falls → the last row of each side, budget and seed."""
    last: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        constant = not row["settings"].get("learning_rate_schedule")
        last.setdefault(row["case"] + (", constant learning rate" if constant else ""), {})[
            row["side"], row["budget_share"], row["seed"]
        ] = row
    return {case: list(found.values()) for case, found in last.items()}


def page(cases: dict[str, list[Row]], picture: str) -> str:
    """Return the Markdown page."""
    parts = [_HEAD.format(command=_COMMAND, picture=picture)]
    for case, rows in cases.items():
        parts += [*_section(case, rows), ""]
    return "\n".join([*parts, _DIFFERENCES])


def _section(case: str, rows: Sequence[Row]) -> list[str]:
    first = rows[0]
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in first["settings"].items())
    note = f" {first['note']}." if first["note"] else ""
    lines = [
        f"## {case}",
        "",
        fill(
            f"{len(first['nse'])} basins, {first['train_windows']:,} training windows and "
            f"{sum(first['steps'].values()):,} scored test steps on both sides, {first['parameters']:,} parameters; "
            f"{settings}. {first['date']}, commit {first['commit']}, {first['processor']} with {first['cores']} "
            f"cores.{note}",
            width=120,
        ),
        "",
        "| side | test NSE, each seed | mean | seconds, median | import, prepare, train, evaluate | CPU seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    sides = {side: _of(rows, side, None) for side in _SIDES}
    for side, found in sides.items():
        stages = ", ".join(f"{_median(found, f'{stage}_seconds'):.1f}" for stage in _STAGES)
        whole, cpu = (f"{_median(found, name):.1f}" for name in ("seconds", "cpu_seconds"))
        lines.append(f"| {_SIDES[side]} | {_each(found)} | {_mean(found):.3f} | {whole} | {stages} | {cpu} |")
    lines += ["", _verdict(sides)]
    shares = sorted({row["budget_share"] for row in rows if row["budget_share"] is not None}, reverse=True)
    if shares:
        lines += ["", *_budgets(rows, shares)]
    return lines


def _verdict(sides: dict[str, list[Row]]) -> str:
    theirs, ours = sides["neuralhydrology"], sides["headrace"]
    difference = _mean(ours) - _mean(theirs)
    spread = max(_spread(theirs), _spread(ours))
    within = "within" if abs(difference) <= spread else "beyond"
    ratio, cpu = (_median(theirs, name) / _median(ours, name) for name in ("seconds", "cpu_seconds"))
    text = (
        f"The means differ by {difference:+.3f}, {within} the {spread:.3f} by which seeds of one side differ. "
        f"From end to end Headrace is {ratio:.2f} × as fast as neuralhydrology, which uses {cpu:.2f} × its CPU seconds."
    )
    return fill(text, width=120)


def _budgets(rows: Sequence[Row], shares: Sequence[float]) -> list[str]:
    lines = [
        "Headrace, with memory for a share of the decoded training split:",
        "",
        f"| {' | '.join(_BUDGET_COLUMNS)} |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for share in (None, *shares):
        found = _of(rows, "headrace", share)
        memory = "resident" if share is None else f"1/{1 / share:g}: {found[0]['memory_budget'] / 1024:,.0f} KiB"
        mixed = found[0]["quality"]["distinct_basins_ratio"]
        lines.append(
            f"| {memory} | {found[0]['rounds']} | {mixed:.2f} | {_each(found)} | {_mean(found):.3f} | "
            f"{_median(found, 'seconds'):.1f} |"
        )
    resident = [row["nse_median"] for row in _of(rows, "headrace", None)]
    bounded = [row for share in shares for row in _of(rows, "headrace", share)]
    mean = _mean(bounded)
    where = "below" if mean < min(resident) else "above" if mean > max(resident) else "inside"
    text = (
        f"All {len(bounded)} bounded trainings together have a mean of {mean:.3f}, "
        f"{mean - statistics.mean(resident):+.3f} from the resident ones "
        f"and {where} their range of {min(resident):.3f} to {max(resident):.3f}."
    )
    return [*lines, "", fill(text, width=120)]


def _of(rows: Sequence[Row], side: str, share: float | None) -> list[Row]:
    return sorted((r for r in rows if (r["side"], r["budget_share"]) == (side, share)), key=lambda row: row["seed"])


def _each(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row['nse_median']:.3f}" for row in rows)


def _mean(rows: Sequence[Row]) -> float:
    return statistics.mean(row["nse_median"] for row in rows)


def _spread(rows: Sequence[Row]) -> float:
    found = [row["nse_median"] for row in rows]
    return max(found) - min(found)


def _median(rows: Sequence[Row], name: str) -> float:
    return statistics.median(row[name] for row in rows)


def draw(cases: dict[str, list[Row]]) -> Figure:
    """Return a panel per case: a dot per training, sides and budgets side by side."""
    figure = Figure(figsize=(4.8 * len(cases), 3.6), layout="constrained")
    panels = figure.subplots(1, len(cases), squeeze=False)[0]
    for panel, (case, rows) in zip(panels, cases.items(), strict=True):
        shares = sorted({row["budget_share"] for row in rows if row["budget_share"] is not None}, reverse=True)
        groups = [("neuralhydrology", "neuralhydrology", None), ("Headrace", "headrace", None)]
        groups += [(f"1/{1 / share:g}", "headrace", share) for share in shares]
        for place, (_, side, share) in enumerate(groups):
            found = _of(rows, side, share)
            color = "tab:orange" if side == "neuralhydrology" else "tab:blue"
            panel.plot([place] * len(found), [row["nse_median"] for row in found], "o", color=color, alpha=0.7)
            panel.hlines(_mean(found), place - 0.25, place + 0.25, color=color)
        panel.set_xticks(range(len(groups)), [label for label, _, _ in groups], fontsize=8)
        panel.set(title=case, ylabel="median test NSE over basins")
        panel.margins(x=0.15, y=0.3)
    return figure


if __name__ == "__main__":
    main()
