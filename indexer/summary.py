"""The report of a build on a terminal: small tables and the warnings, within 100 columns."""

from collections.abc import Iterable
from itertools import groupby
from math import isnan
from operator import attrgetter

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headrace.indexer.report import BuildReport, SplitReport, VariableReport

WIDTH = 100
_REASONS = {
    "record_too_short": "record too short",
    "time_gap": "time gap",
    "target_missing": "target missing",
    "input_missing": "input missing",
}


def print_summary(report: BuildReport, console: Console) -> None:
    """Print the report."""
    console.print(render(report), width=min(WIDTH, console.width))


def render(report: BuildReport) -> RenderableType:
    """Return the report as something rich prints."""
    parts: list[RenderableType] = [_windows(report.splits)]
    parts += [_variables(name, found) for name, found in groupby(report.variables, key=attrgetter("dataset_id"))]
    parts += [Text(f"- {note}", style="dim") for note in report.notes]
    parts += [Text(f"! {warning}", style="yellow") for warning in report.warnings]
    parts.append(Text(_last_line(report)))
    return Group(*parts)


def _windows(splits: tuple[SplitReport, ...]) -> Table:
    table = Table(title="Windows", title_justify="left", box=None, pad_edge=False)
    table.add_column("data set", overflow="fold")
    table.add_column("split")
    for name in ("basins", "windows"):
        table.add_column(name, justify="right")
    table.add_column("dropped, and why")
    for s in splits:
        why = ", ".join(f"{n:,} {_REASONS[reason]}" for reason, n in s.dropped.items())
        basins = "basin has" if s.basins_without == 1 else "basins have"
        without = f"{s.basins_without:,} {basins} none" if s.basins_without and s.num_windows else ""
        table.add_row(
            s.dataset_id,
            s.split,
            f"{s.num_basins:,}",
            f"{s.num_windows:,}",
            "; ".join(t for t in (why, without) if t) or "-",
        )
    return table


def _variables(dataset_id: str, variables: Iterable[VariableReport]) -> Table:
    title = f"Variables of {dataset_id} (mean to max: training values)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("variable", "role", "unit"):
        table.add_column(name, overflow="fold")  # names that begin alike must not be cut to the same text
    for name in ("missing", "mean", "std", "min", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for v in variables:
        numbers = [_number(x) for x in (v.mean, v.std, v.low, v.high)]
        if isnan(v.mean):
            numbers = ["no values", "-", "-", "-"]
        table.add_row(v.variable, v.role, v.unit or "-", f"{v.missing_share:.1%}", *numbers)
    return table


def _number(value: float) -> str:
    return f"{value:.4g}"


def _last_line(report: BuildReport) -> str:
    scan = report.scan
    rate = (
        f", {scan.nbytes / 1e6:,.0f} MB decoded in {scan.seconds:.1f} s ({scan.rate / 1e6:,.0f} MB/s with start-up)"
        if scan.units_scanned
        else ""
    )
    nbytes = sum(t.nbytes for t in report.manifest.tables.values())
    return (
        f"{report.num_windows:,} windows in {report.out}; {scan.units_scanned:,} units scanned, "
        f"{scan.units_kept:,} kept{rate}; "
        f"tables {nbytes / 1e6:.2f} MB, index {report.manifest.index_digest}"
        + (f"; {scan.requests}" if scan.requests.requests else "")
    )
