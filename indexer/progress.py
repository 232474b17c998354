"""How a build tells what it is doing: a protocol, a bar for a terminal, plain lines for a log file, and silence."""

import sys
import time
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

FIRST_SECONDS, LINE_SECONDS = 1.0, 10.0
"""Seconds to the first line in between, and at most between two of them."""


class Progress(Protocol):
    """What a build reports while it runs."""

    def note(self, text: str) -> None:
        """Say something once."""

    def start(self, *, num_units: int, num_kept: int, nbytes: int) -> None:
        """Begin a scan of ``num_units`` units, ``num_kept`` of them known already, ``nbytes`` left to decode."""

    def advance(self, *, num_units: int, nbytes: int) -> None:
        """Count finished units and their decoded bytes."""

    def finish(self) -> None:
        """End the scan, however it ended."""


class Silent:
    """Reports nothing."""

    def note(self, text: str) -> None:
        """Drop the text."""

    def start(self, *, num_units: int, num_kept: int, nbytes: int) -> None:
        """Do nothing."""

    def advance(self, *, num_units: int, nbytes: int) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


class _Count:
    """What a scan has done so far, and since when."""

    def __init__(self, num_units: int, num_kept: int, nbytes: int) -> None:
        self.num_units, self.num_new, self.nbytes = num_units, num_units - num_kept, nbytes
        self.units_done = self.nbytes_done = 0
        self.began = time.monotonic()

    def add(self, num_units: int, nbytes: int) -> None:
        self.units_done += num_units
        self.nbytes_done += nbytes

    @property
    def rate(self) -> float:
        """Decoded bytes per second."""
        return self.nbytes_done / max(time.monotonic() - self.began, 1e-9)

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.units_done == self.num_new

    def first_line(self) -> str:
        kept = self.num_units - self.num_new
        return f"scanning {self.num_new} of {self.num_units} units, {_size(self.nbytes)} decoded ({kept} units kept)"

    def line(self) -> str:
        left = (self.nbytes - self.nbytes_done) / max(self.rate, 1e-9)
        return (
            f"{self.units_done} of {self.num_new} units, {_size(self.nbytes_done)} of {_size(self.nbytes)}, "
            f"{_size(self.rate)}/s, {left:.0f} s left"
        )

    def last_line(self) -> str:
        seconds = time.monotonic() - self.began
        return (
            f"scanned {self.units_done} units, {_size(self.nbytes_done)} decoded in {seconds:.1f} s, "
            f"{self.rate / 1e9:.3g} GB/s"
        )


class Lines:
    """Plain lines: where it begins, then after 1, 2, 4, 8 seconds and every ten seconds, and how it ended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._count: _Count | None = None
        self._next = self._pause = 0.0

    def note(self, text: str) -> None:
        """Write one line."""
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def start(self, *, num_units: int, num_kept: int, nbytes: int) -> None:
        """Say what is to be done."""
        self._count = _Count(num_units, num_kept, nbytes)
        self._pause = FIRST_SECONDS
        self._next = self._count.began + self._pause
        self.note(self._count.first_line())

    def advance(self, *, num_units: int, nbytes: int) -> None:
        """Say how far it is, now and then."""
        if self._count is None:
            return
        self._count.add(num_units, nbytes)
        now = time.monotonic()
        if now >= self._next and not self._count.done:
            self._pause = min(2 * self._pause, LINE_SECONDS)
            self._next = now + self._pause
            self.note(self._count.line())

    def finish(self) -> None:
        """Say what was done, unless it broke off: whoever stops it says more."""
        if self._count is not None and self._count.done:
            self.note(self._count.last_line())
        self._count = None


class Bar:
    """A progress bar with bytes per second and time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Bars | None = None
        self._count: _Count | None = None

    def note(self, text: str) -> None:
        """Print above the bar."""
        self._console.print(text, highlight=False, markup=False)

    def start(self, *, num_units: int, num_kept: int, nbytes: int) -> None:
        """Show the bar."""
        self._count = _Count(num_units, num_kept, nbytes)
        self.note(self._count.first_line())
        columns = (
            TextColumn("scanning"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Bars(*columns, console=self._console, transient=True)
        self._bars.add_task("scan", total=nbytes)
        self._bars.start()

    def advance(self, *, num_units: int, nbytes: int) -> None:
        """Move the bar."""
        if self._bars is not None and self._count is not None:
            self._count.add(num_units, nbytes)
            self._bars.advance(self._bars.task_ids[0], nbytes)

    def finish(self) -> None:
        """Take the bar away and say what was done, as plain lines do."""
        if self._bars is not None and self._count is not None:
            self._bars.stop()
            if self._count.done:
                self.note(self._count.last_line())
            self._bars = self._count = None


class Showing:
    """Context of a scan's progress: always finished, whatever happens inside."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __enter__(self) -> Progress:
        """Return the progress."""
        return self._progress

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish it."""
        self._progress.finish()
        if isinstance(error, KeyboardInterrupt):
            self._progress.note("stopping when the chunks under way are read; Ctrl-C again leaves at once")


def progress_for(stream: TextIO | None = None) -> Progress:
    """Return a bar on a terminal, plain lines elsewhere."""
    stream = sys.stderr if stream is None else stream
    return Bar(Console(file=stream)) if stream.isatty() else Lines(stream)


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"
