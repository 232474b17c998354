"""Progress for a person: a live bar on a terminal, plain lines everywhere else."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

LINE_SECONDS = 10.0
"""Time between two plain lines of one pass."""


class RichProgress:
    """Shows loss, windows per second and the share of time spent waiting for data.

    On a terminal one bar per pass, gone when it ends; elsewhere a line every ten seconds. A summary stays either way.
    Use as a context manager, or call :meth:`close`.

    Parameters
    ----------
    console
        Where to; standard error by default, so that results on standard output can be piped.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._name = ""
        self._total = 0
        self._line_at = 0.0

    def begin(self, task: str, total: int, done: int = 0) -> None:
        """Start a pass of ``total`` batches of which ``done`` were made before."""
        self.close()
        self._name, self._total = task, total
        self._line_at = time.monotonic() + LINE_SECONDS
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[state]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task(task, total=total, completed=done, state="")
            self._bar.start()

    def update(self, done: int, *, loss: float | None, samples_per_second: float, wait_share: float) -> None:
        """Say that ``done`` batches are made."""
        if self._bar is None and time.monotonic() < self._line_at:
            return
        state = f"{samples_per_second:,.0f} windows/s  waiting {wait_share:.1%}"
        if loss is not None:
            state = f"loss {loss:.4f}  {state}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, state=state)
            return
        self._line_at = time.monotonic() + LINE_SECONDS
        self._line(f"{self._name}  {done}/{self._total}  {state}")

    def finish(self, summary: str | None = None) -> None:
        """End the pass; ``summary`` is one line worth keeping."""
        self.close()
        if summary is not None:
            self._line(summary)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None

    def __enter__(self) -> "RichProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _line(self, text: str) -> None:
        # soft_wrap: one line stays one line in a log, whatever width the console believes it has.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
