"""A round in memory and the gather: every window is consecutive rows, so a batch is one ``index_select``.

Legend: B windows, L input steps, P target steps, W warm-up steps, Vx inputs, Vy targets.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.loader.permutation import Permutation
from headrace.schemas.windows import WindowSpec


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
        Steps, and so pool rows, between windows of a piece.
    """

    done: NDArray[np.int64]
    row: NDArray[np.int64]
    start: NDArray[np.int32]
    slot: NDArray[np.int64]
    stride: int

    def locate(
        self, positions: NDArray[np.int64], order: Permutation | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return pool row, slot and start of the windows at positions of the round.

        Parameters
        ----------
        positions
            int64 [B] in [0, windows of the round).
        order
            Permutation of the round's windows; None keeps their natural order.
        """
        window = positions if order is None else order(positions)
        piece = np.searchsorted(self.done, window, side="right") - 1
        ahead = (window - self.done[piece]) * self.stride
        return self.row[piece] + ahead, self.slot[piece], (self.start[piece] + ahead).astype(np.int32)


class Pool:
    """Rows of a round and the strided views that windows are gathered from.

    Parameters
    ----------
    x
        float32 [rows, Vx], contiguous.
    y
        float32 [rows, Vy], contiguous.
    window
        Shape of a window; the pool must hold at least L rows.
    """

    def __init__(self, x: NDArray[np.float32], y: NDArray[np.float32], window: WindowSpec) -> None:
        self._warmup = window.warmup_length
        self._x = _sliding(torch.from_numpy(x), window.length)
        self._y = _sliding(torch.from_numpy(y), window.target_length)

    def gather(self, rows: torch.Tensor, x_out: torch.Tensor, y_out: torch.Tensor) -> None:
        """Copy windows into a batch.

        Parameters
        ----------
        rows
            int64 [B], first pool row of each window.
        x_out
            float32 [B, L, Vx], contiguous destination.
        y_out
            float32 [B, P, Vy], contiguous destination.
        """
        torch.index_select(self._x, 0, rows, out=x_out.flatten(1))
        torch.index_select(self._y, 0, rows + self._warmup, out=y_out.flatten(1))


def _sliding(rows: torch.Tensor, length: int) -> torch.Tensor:
    """View [rows, V] as [rows - length + 1, length·V], row i holding rows i … i + length - 1."""
    num_rows, width = rows.shape
    return rows.as_strided((num_rows - length + 1, length * width), (max(width, 1), 1))
