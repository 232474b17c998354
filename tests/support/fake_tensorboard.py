"""A stand-in for torch's writer of TensorBoard files: it keeps what it is told, in memory."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest import mock

MODULE = "torch.utils.tensorboard"


class FakeWriter:
    """Takes scalars; ``made`` lists every writer since the block began."""

    made: "list[FakeWriter]" = []  # noqa: RUF012 - emptied where a block begins

    def __init__(self, log_dir: str, purge_step: int) -> None:
        self.log_dir, self.purge_step = log_dir, purge_step
        self.scalars: list[tuple[str, float, int]] = []
        self.flushed = self.closed = False
        FakeWriter.made.append(self)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.flushed = False
        self.scalars.append((tag, value, step))

    def flush(self) -> None:
        self.flushed = True

    def close(self) -> None:
        self.closed = True


@contextmanager
def fake_tensorboard() -> Iterator[list[FakeWriter]]:
    """Let imports find the stand-in; gives the list of writers that are made."""
    module = ModuleType(MODULE)
    module.SummaryWriter = FakeWriter  # type: ignore[attr-defined]
    FakeWriter.made = []
    with mock.patch.dict(sys.modules, {MODULE: module}):
        yield FakeWriter.made


@contextmanager
def no_tensorboard() -> Iterator[None]:
    """Let imports find none, whether or not it is installed."""
    with mock.patch.dict(sys.modules, {MODULE: None}):
        yield
