"""A round in memory and the gather: every window is consecutive rows, so a batch is one call.

Legend: B windows, L input steps, P target steps, W warm-up steps, Vx inputs, Vy targets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.compiled import compiled
from headrace.loader.copy_windows import copy_windows
from headrace.loader.permutation import Order
from headrace.schemas.windows import WindowSpec

_CELLS_PER_PIECE = 4
"""Cells of the table of first guesses: most hold no more than one edge of a piece, and the table stays in the cache."""
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
        row, slot = np.empty(window.size, np.int64), np.empty(window.size, np.int64)
        start = np.empty(window.size, np.int32)
        stride = np.atleast_1d(np.asarray(self.stride, dtype=np.int64))
        finder.place(window, (self.row, self.slot, self.start, stride), (row, slot, start))
        return row, slot, start

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
        guess = np.searchsorted(done, edges, side="right") - 1
        self._guess = guess.astype(np.int32)

    def place(
        self, windows: NDArray[np.int64], pieces: tuple[NDArray[Any], ...], out: tuple[NDArray[Any], ...]
    ) -> None:
        """Work out where windows lie.

        Parameters
        ----------
        windows
            int64 [B] in [0, windows of the round).
        pieces
            Row, slot and start of each piece as in :class:`RoundWindows`, and strides, int64 [M] or [1].
        out
            int64, int64 and int32 [B], filled with row, slot and start of each window.
        """
        _place(windows, self._done, self._guess, self._shift, *pieces, *out)


@compiled
def _place(
    windows: Any,
    done: Any,
    guess: Any,
    shift: Any,
    first_row: Any,
    of_slot: Any,
    first_start: Any,
    stride: Any,
    row: Any,
    slot: Any,
    start: Any,
) -> None:
    for i in range(windows.size):
        window = windows[i]
        piece, last = guess[window >> shift], done.size - 2
        steps = 0
        while steps < _STEPS and window >= done[piece + 1]:
            piece += 1
            steps += 1
        if window >= done[piece + 1]:  # many short pieces lie close together
            piece += 1
            while piece < last:
                middle = (piece + last + 1) // 2
                if window >= done[middle]:
                    piece = middle
                else:
                    last = middle - 1
        ahead = (window - done[piece]) * stride[piece if stride.size > 1 else 0]
        row[i] = first_row[piece] + ahead
        slot[i] = of_slot[piece]
        start[i] = first_start[piece] + ahead


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
            copy_windows(
                (self.x_rows.numpy(), self.y_rows.numpy()),
                (x_row.numpy(), y_row.numpy()),
                (x_out.numpy(), y_out.numpy()),
            )
        else:
            torch.index_select(_sliding(self.x_rows, window.length), 0, x_row, out=x_out)
            torch.index_select(_sliding(self.y_rows, window.target_length), 0, y_row, out=y_out)


def _sliding(rows: torch.Tensor, length: int) -> torch.Tensor:
    """View [rows, V] as [rows - length + 1, length·V], row i holding rows i … i + length - 1."""
    num_rows, width = rows.shape
    return rows.as_strided((num_rows - length + 1, length * width), (max(width, 1), 1))
