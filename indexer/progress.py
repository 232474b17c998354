"""How a build tells what it is doing: a protocol, a bar for a terminal, plain lines for a log file, and silence."""

import sys
import time
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

LINE_SECONDS = 10.0


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


class Lines:
    """Plain lines, at most one in ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._total = self._done = self._units = self._num_units = 0
        self._began = self._last = 0.0

    def note(self, text: str) -> None:
        """Write one line."""
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def start(self, *, num_units: int, num_kept: int, nbytes: int) -> None:
        """Say what is to be done."""
        self._total, self._done, self._units, self._num_units = nbytes, 0, num_kept, num_units
        self._began = self._last = time.monotonic()
        self.note(
            f"scanning {num_units - num_kept} of {num_units} units, {_size(nbytes)} decoded ({num_kept} units kept)"
        )

    def advance(self, *, num_units: int, nbytes: int) -> None:
        """Say how far it is, now and then."""
        self._done += nbytes
        self._units += num_units
        now = time.monotonic()
        if now - self._last >= LINE_SECONDS:
            self._last = now
            rate = self._done / max(now - self._began, 1e-9)
            left = (self._total - self._done) / max(rate, 1e-9)
            self.note(
                f"{self._units} of {self._num_units} units, {_size(self._done)}, {_size(rate)}/s, {left:.0f} s left"
            )

    def finish(self) -> None:
        """Say nothing: the summary follows."""


class Bar:
    """A progress bar with bytes per second and time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Bars | None = None

    def note(self, text: str) -> None:
        """Print above the bar."""
        self._console.print(text, highlight=False, markup=False)

    def start(self, *, num_units: int, num_kept: int, nbytes: int) -> None:
        """Show the bar."""
        if num_kept:
            self.note(f"{num_kept} of {num_units} units kept from before")
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
        if self._bars is not None:
            self._bars.advance(self._bars.task_ids[0], nbytes)

    def finish(self) -> None:
        """Take the bar away."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


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
