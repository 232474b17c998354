"""Rows of ``run_rivals.py`` → one Markdown page with a table per store, and one picture beside it.

    python benchmarks/rivals/report.py docs/benchmarks/rows.jsonl --out docs/benchmarks/rivals.md

Of rows that were measured more than once the last one counts; a row of another run than the bare gather's says so.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, Any]
_OURS = "Headrace"


def main() -> None:
    """Read rows, write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="file with JSON rows; those of other benchmarks are passed over")
    parser.add_argument("--out", type=Path, required=True, help="the page; the picture takes its name with .png")
    args = parser.parse_args()
    stores = by_store(read_rows(args.rows))
    if not stores:
        raise SystemExit(f"{args.rows} holds no row of run_rivals.py")
    picture = args.out.with_suffix(".png")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(stores, picture.name), encoding="utf-8")
    draw(stores).savefig(picture, dpi=120)
    print(f"{args.out}\n{picture}")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of this benchmark."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [row for row in rows if row["benchmark"] == "rivals"]


def by_store(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return store → rows in the order in which sides were first measured, the last row of each."""
    last: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        last.setdefault(row["store"], {})[row["side"], row["role"]] = row
    return {store: list(found.values()) for store, found in last.items()}


def page(stores: dict[str, list[Row]], picture: str) -> str:
    """Return the Markdown page."""
    parts = ["# Headrace and what its users have today", "", f"![windows per second of every side]({picture})", ""]
    for store, rows in stores.items():
        parts += [*_store_section(store, rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def _store_section(store: str, rows: Sequence[Row]) -> list[str]:
    first = rows[0]
    ours = _rate_of(rows, _OURS)
    lines = [
        f"## {store}",
        "",
        f"{first['length']} steps, batches of {first['batch_size']}, {first['date']}, commit {first['commit']}, "
        f"{first['processor']} with {first['cores']} cores, {first['memory_gib']} GiB; "
        f"{first['limits']['seconds']:g} s a side and repeat, {first['limits']['sweep_seconds']:g} s a setting.",
        "",
        "| side | settings | windows/s, median | spread | after the first batch | Headrace is | set-up, s "
        "| peak memory without workers, GiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_line(row, ours, "" if _run(row) == _run(first) else f" *({_run(row)})*") for row in rows]
    return [*lines, "", *_weakest(rows, ours)]


def _run(row: Row) -> str:
    """Return what tells rows of one run from those of another."""
    return f"commit {row['commit']}, {row['limits']['seconds']:g} s"


def _line(row: Row, ours: float | None, other_run: str) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in row["settings"].items())
    head = f"| {row['side']} | {row['role']}: {settings}{other_run} |"
    rates = row["windows_per_second"]
    if not rates:
        return f"{head} none: {row['error']} | | | | | |"
    rate = statistics.median(rates)
    times = "" if ours is None else f"{ours / rate:,.2f} ×"
    setup = statistics.median(row["setup_seconds"])
    peak = max(row["peak_rss_bytes"]) / 2**30
    later = [value for value in row["later_windows_per_second"] if value is not None]
    rest = _short(statistics.median(later)) if later else "one batch only"
    spread = f"{_short(min(rates))} to {_short(max(rates))}"
    return f"{head} {_short(rate)} | {spread} | {rest} | {times} | {setup:.1f} | {peak:.2f} |"


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _weakest(rows: Sequence[Row], ours: float | None) -> list[str]:
    """Return what speaks least for Headrace: the rival that comes closest, and every rival that is ready sooner."""
    others = [r for r in rows if not r["side"].startswith((_OURS, "bare")) and r["windows_per_second"]]
    own = next((r for r in rows if r["side"] == _OURS and r["windows_per_second"]), None)
    if ours is None or own is None or not others:
        return []
    closest = max(others, key=lambda r: statistics.median(r["windows_per_second"]))
    ratio = ours / statistics.median(closest["windows_per_second"])
    said = f"Closest: {closest['side']} ({closest['role']}), of which Headrace is {ratio:,.1f} ×."
    setup = statistics.median(own["setup_seconds"])
    sooner = sorted({r["side"] for r in others if statistics.median(r["setup_seconds"]) < setup})
    if sooner:
        said += f" Ready sooner than Headrace's {setup:.1f} s: {', '.join(sooner)}."
    return [said + f" The index took {own['index_seconds']:.1f} s, once."]


def _rate_of(rows: Sequence[Row], side: str) -> float | None:
    rates = next((row["windows_per_second"] for row in rows if row["side"] == side), [])
    return statistics.median(rates) if rates else None


def draw(stores: dict[str, list[Row]]) -> Figure:
    """Return bars of the medians, one panel per store, on a logarithmic axis."""
    figure = Figure(figsize=(10, 0.6 + sum(0.8 + 0.28 * len(rows) for rows in stores.values())), layout="constrained")
    panels = figure.subplots(len(stores), 1, squeeze=False, height_ratios=[3 + len(r) for r in stores.values()])[:, 0]
    for panel, (store, rows) in zip(panels, stores.items(), strict=True):
        rated = [row for row in rows if row["windows_per_second"]]
        names = [row["side"] + ("" if row["role"] == "defaults" else ", best of its grid") for row in rated]
        rates = [statistics.median(row["windows_per_second"]) for row in rated]
        colors = [
            "tab:blue" if row["side"].startswith(_OURS) else "0.6" if row["side"].startswith("bare") else "tab:orange"
            for row in rated
        ]
        bars = panel.barh(names, rates, color=colors)
        panel.bar_label(bars, [_short(rate) for rate in rates], padding=3, fontsize=8)
        panel.set(xscale="log", title=store, xlabel="windows per second")
        panel.margins(x=0.15)
        panel.tick_params(axis="y", labelsize=8)
        panel.invert_yaxis()
    return figure


if __name__ == "__main__":
    main()
