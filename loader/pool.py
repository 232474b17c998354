"""A round in memory and the gather: every window is consecutive rows, so a batch is one call.

Legend: B windows, L input steps, P target steps, W warm-up steps, Vx inputs, Vy targets.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.copy_windows import copy_windows
from headrace.loader.permutation import Order
from headrace.schemas.windows import WindowSpec

_CELLS_PER_PIECE = 16
"""Cells of the table of first guesses: few hold an edge of a piece."""
_STEPS = 2
"""Pieces that a guess may lie behind before binary search takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundWindows:
    """The windows of one round, as pieces (runs of starts inside one tile), struct of arrays.

    Parameters
    ----------
    done
        int64 [M + 1], windows before each piece.
    row
        int64 [M], pool row of the first window of each piece.
    start
        int32 [M], its store step.
    slot
        int64 [M], slot of each piece.
    stride
        Steps, and so pool rows, between windows of a piece: the same for all, or int64 [M].
    """

    done: NDArray[np.int64]
    row: NDArray[np.int64]
    start: NDArray[np.int32]
    slot: NDArray[np.int64]
    stride: int | NDArray[np.int64]

    def locate(
        self, positions: NDArray[np.int64], order: Order | None, finder: "PieceFinder"
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return pool row, slot and start of the windows at positions of the round.

        Parameters
        ----------
        positions
            int64 [B] in [0, windows of the round).
        order
            Permutation of the round's windows; None keeps their natural order.
        finder
            Over ``done``.
        """
        window = positions if order is None else order(positions)
        piece = finder(window)
        ahead = self.ahead(window, piece)
        return self.row[piece] + ahead, self.slot[piece], (self.start[piece] + ahead).astype(np.int32)

    def ahead(self, window: NDArray[np.int64], piece: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return by how many steps windows start after the first one of their pieces."""
        number = window - self.done[piece]
        return number * (self.stride if isinstance(self.stride, int) else self.stride[piece])


class PieceFinder:
    """Find the pieces that windows lie in; a table of first guesses is several times faster than binary search.

    Parameters
    ----------
    done
        int64 [M + 1], windows before each piece, from 0 on, rising.
    """

    def __init__(self, done: NDArray[np.int64]) -> None:
        self._done = done
        cells = _CELLS_PER_PIECE * done.size
        self._shift = max(int(done[-1]).bit_length() - cells.bit_length(), 0)
        edges = np.arange((int(done[-1]) >> self._shift) + 1) << self._shift
        self._guess: NDArray[np.int64] = np.searchsorted(done, edges, side="right") - 1

    def __call__(self, windows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the piece of each window, int64 like ``windows``, which lie in [0, windows of the round)."""
        piece: NDArray[np.int64] = self._guess[windows >> self._shift]
        for _ in range(_STEPS):
            beyond = windows >= self._done[piece + 1]
            if not beyond.any():
                return piece
            piece += beyond
        left = np.flatnonzero(windows >= self._done[piece + 1])  # many short pieces lie close together
        piece[left] = np.searchsorted(self._done, windows[left], side="right") - 1
        return piece


class Pool:
    """Rows of a round, and the gather of windows from them: compiled on the host, ``index_select`` on a device.

    Parameters
    ----------
    x
        float32 [rows, Vx], contiguous; on a device as a tensor.
    y
        float32 [rows, Vy], contiguous.
    window
        Shape of a window; the pool must hold at least L rows.
    """

    def __init__(
        self, x: NDArray[np.float32] | torch.Tensor, y: NDArray[np.float32] | torch.Tensor, window: WindowSpec
    ) -> None:
        self.x_rows, self.y_rows = torch.as_tensor(x), torch.as_tensor(y)
        self._window = window

    def gather(self, x_row: torch.Tensor, y_row: torch.Tensor, x_out: torch.Tensor, y_out: torch.Tensor) -> None:
        """Copy windows into a batch.

        Parameters
        ----------
        x_row, y_row
            int64 [B], first pool row of the inputs and of the targets of each window.
        x_out
            float32 [B, L · Vx], contiguous destination.
        y_out
            float32 [B, P · Vy], contiguous destination.
        """
        window = self._window
        if self.x_rows.is_cpu:
            copy_windows(self.x_rows.numpy(), x_row.numpy(), x_out.numpy())
            copy_windows(self.y_rows.numpy(), y_row.numpy(), y_out.numpy())
        else:
            torch.index_select(_sliding(self.x_rows, window.length), 0, x_row, out=x_out)
            torch.index_select(_sliding(self.y_rows, window.target_length), 0, y_row, out=y_out)


def _sliding(rows: torch.Tensor, length: int) -> torch.Tensor:
    """View [rows, V] as [rows - length + 1, length·V], row i holding rows i … i + length - 1."""
    num_rows, width = rows.shape
    return rows.as_strided((num_rows - length + 1, length * width), (max(width, 1), 1))
