"""Rows of ``skill.py`` and ``skill_budgets.py`` → one Markdown page, and pictures beside it.

    python benchmarks/skill_report.py docs/benchmarks/rows.jsonl --out docs/benchmarks/skill.md

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
from skill_runs import memory

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
neuralhydrology are made beforehand and not counted. Sections that say so were run with `--constant-rate` and
`--no-clipping`.

![test NSE of every training]({picture})
"""
_DIFFERENCES = """## Where the sides are not the same

- neuralhydrology's NSE* divides the error in normalised units by the basin's std in mm/day plus 0.1; Headrace's by the
  std in normalised units plus 0.1, so that both have one unit. Its loss and gradients are therefore smaller, by about
  the square of the target's std in mm/day, and the same `clip_gradient_norm` seldom shortens them. Where that std is
  far from 1, compare the trainings without clipping.
- neuralhydrology scales inputs by their statistics with the warm-up days before the period, Headrace by those of the
  period; statics by a standard deviation with N - 1, Headrace with N.
- It leaves the LSTM's second forget bias at its random start, Headrace sets it to 0; the first is 3 in both.
- Weights and order are drawn by other generators: equal seeds do not mean equal runs.

Both compute NSE, KGE, RMSE, FHV, FLV and peak timing of every basin in the seconds of their evaluation, and write what
they predicted; Headrace also draws its pictures.
"""


def main() -> None:
    """Read rows, write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="file with JSON rows; those of other benchmarks are passed over")
    parser.add_argument("--out", type=Path, required=True, help="the page; the picture takes its name with .png")
    args = parser.parse_args()
    rows = read_rows(args.rows)
    cases = by_case([row for row in rows if row["benchmark"] == "skill"])
    budgets = memory.last_rows([row for row in rows if row["benchmark"] == "skill_budgets"])
    if not cases or not budgets:
        raise SystemExit(f"{args.rows} lacks rows of skill.py or of skill_budgets.py")
    pictures = args.out.with_suffix(".png"), args.out.with_name(f"{args.out.stem}_memory.png")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    parts = [_HEAD.format(command=_COMMAND, picture=pictures[0].name)]
    for case, of_case in cases.items():
        parts += [*_section(case, of_case), ""]
    parts += [_DIFFERENCES, *memory.section(budgets, pictures[1].name)]
    args.out.write_text("\n".join(parts), encoding="utf-8")
    draw(cases).savefig(pictures[0], dpi=120)
    memory.draw(budgets).savefig(pictures[1], dpi=120)
    print(args.out, *pictures, sep="\n")


def read_rows(path: Path) -> list[Row]:
    """Return all rows."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def by_case(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return case, and how it is trained where that is unusual → the last row of each side and seed."""
    last: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        title = row["case"]
        title += "" if row["settings"].get("learning_rate_schedule") else ", constant learning rate"
        title += "" if row["settings"]["clip_gradient_norm"] else ", no clipping"
        last.setdefault(title, {})[row["side"], row["seed"]] = row
    return {case: list(found.values()) for case, found in last.items()}


def _section(case: str, rows: Sequence[Row]) -> list[str]:
    first = rows[0]
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in first["settings"].items() if value)
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
    sides = {side: _of(rows, side) for side in _SIDES}
    for side, found in sides.items():
        stages = ", ".join(f"{_median(found, f'{stage}_seconds'):.1f}" for stage in _STAGES)
        whole, cpu = (f"{_median(found, name):.1f}" for name in ("seconds", "cpu_seconds"))
        lines.append(f"| {_SIDES[side]} | {_each(found)} | {_mean(found):.3f} | {whole} | {stages} | {cpu} |")
    lines += ["", _verdict(sides)]
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


def _of(rows: Sequence[Row], side: str) -> list[Row]:
    return sorted((row for row in rows if row["side"] == side), key=lambda row: row["seed"])


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
    """Return a panel per case: a dot per training, sides beside each other."""
    figure = Figure(figsize=(3.2 * len(cases), 3.2), layout="constrained")
    panels = figure.subplots(1, len(cases), squeeze=False)[0]
    for panel, (case, rows) in zip(panels, cases.items(), strict=True):
        for place, side in enumerate(_SIDES):
            found = _of(rows, side)
            color = "tab:orange" if side == "neuralhydrology" else "tab:blue"
            panel.plot([place] * len(found), [row["nse_median"] for row in found], "o", color=color, alpha=0.7)
            panel.hlines(_mean(found), place - 0.25, place + 0.25, color=color)
        panel.set_xticks(range(len(_SIDES)), _SIDES.values(), fontsize=8)
        panel.set_title(case.replace(", ", ",\n", 1), fontsize=9)
        panel.set(ylabel="median test NSE over basins")
        panel.margins(x=0.3, y=0.3)
    return figure


if __name__ == "__main__":
    main()
