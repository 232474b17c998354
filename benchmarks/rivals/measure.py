"""Run sides, each measurement in a process of its own: first the grids, once each, then all sides in turn."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rivals.environments import search_path
from rivals.sides import Settings, Side

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long things may take.

    Parameters
    ----------
    seconds
        Serving, in a measurement that counts.
    sweep_seconds
        Serving, in one that only chooses settings.
    setup_seconds
        From the start of the process to the first window; a side that takes longer has no rate.
    repeats
        Measurements of each side, taken in turn.
    """

    seconds: float
    sweep_seconds: float
    setup_seconds: float
    repeats: int


def measure(sides: Sequence[Side], base: Row, limits: Limits, work_dir: Path) -> list[Row]:
    """Return one row per side and settings that were measured.

    Parameters
    ----------
    sides
        Contenders.
    base
        What every job has in common.
    limits
        Times and repeats.
    work_dir
        Where packages are installed.
    """
    swept = {side.name: _sweep(side, base, limits, work_dir) for side in sides}
    entries = []
    for side in sides:
        entries.append(_Entry(side, "defaults", side.defaults))
        best = _best(swept[side.name])
        if best is not None and best != side.defaults:
            entries.append(_Entry(side, "best of the grid", best))
    found: dict[int, list[Row]] = {number: [] for number in range(len(entries))}
    for repeat in range(limits.repeats):
        for number, entry in enumerate(entries):
            given_up = found[number] and "error" in found[number][-1]
            if not given_up:
                row = _ask(entry.side, entry.settings, base, limits.seconds, limits, work_dir)
                found[number].append(row)
                _say(f"{repeat + 1}/{limits.repeats}", entry.side, entry.settings, row)
    return [_collected(entry, found[number], swept[entry.side.name]) for number, entry in enumerate(entries)]


@dataclass(frozen=True, slots=True)
class _Entry:
    side: Side
    role: str
    settings: Settings


def _sweep(side: Side, base: Row, limits: Limits, work_dir: Path) -> list[Row]:
    rows = []
    for settings in side.grid:
        row = _ask(side, settings, base, limits.sweep_seconds, limits, work_dir)
        _say("grid", side, settings, row)
        rows.append({"settings": settings} | row)
    return rows


def _best(swept: Sequence[Row]) -> Settings | None:
    rated = [row for row in swept if "error" not in row]
    return max(rated, key=lambda row: row["windows_per_second"])["settings"] if rated else None


def _ask(side: Side, settings: Settings, base: Row, seconds: float, limits: Limits, work_dir: Path) -> Row:
    """Run one side once; return its row, or ``{"error": …}``."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*search_path(side.rival, work_dir), os.environ.get("PYTHONPATH", "")]).rstrip(
            os.pathsep
        ),
        "PYTHONWARNINGS": "ignore",
    }
    job = json.dumps({**base, "settings": settings, "seconds": seconds, "work_dir": str(work_dir)})
    # A batch under way is served to its end, so that a slow side may take its time over again.
    most = limits.setup_seconds + 2 * seconds + 10
    process = subprocess.Popen(
        [sys.executable, "-m", f"rivals.{side.program}_side"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=work_dir, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(job, timeout=most)
    except subprocess.TimeoutExpired:
        # With the workers it started, which share its session.
        os.killpg(process.pid, 9)
        process.communicate()
        return {"error": f"nothing within {most:.0f} s"}
    if process.returncode != 0:
        return {"error": (err.strip().splitlines() or [f"ended with {process.returncode}"])[-1]}
    row: Row = json.loads(out.strip().splitlines()[-1])
    return row


def _collected(entry: _Entry, rows: Sequence[Row], swept: Sequence[Row]) -> Row:
    rated = [row for row in rows if "error" not in row]
    row: Row = {
        "benchmark": "rivals",
        "side": entry.side.name,
        "role": entry.role,
        "settings": entry.settings,
        "grid": list(swept),
    }
    for name in (
        "windows_per_second",
        "later_windows_per_second",
        "setup_seconds",
        "first_seconds",
        "windows",
        "seconds",
        "peak_rss_bytes",
    ):
        row[name] = [r[name] for r in rated]
    if not rated:
        row["error"] = rows[-1]["error"]
    return row


def median(row: Row) -> float | None:
    """Return the median rate of a row, or None where there is none."""
    return statistics.median(row["windows_per_second"]) if row["windows_per_second"] else None


def _say(when: str, side: Side, settings: Settings, row: Row) -> None:
    said = " ".join(f"{name}={value}" for name, value in settings.items())
    if "error" in row:
        text = row["error"]
    else:
        text = f"{row['windows_per_second']:12,.0f} windows/s, set-up {row['setup_seconds']:.1f} s"
    print(f"{when:>5}  {side.name:40} {said:45} {text}", flush=True)
