"""Read groups → normalised rows: raw chunks are read piece by piece, decoded and laid where they belong.

Values are handled in blocks of a few basins, so that a block is decoded, normalised and laid beside the other
variables while it is in the processor's cache. Legend: V variables, S basins of a block, T steps of a piece.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from headrace.loader.chunk_values import canonical, plain_rule
from headrace.loader.group_fetch import GroupFetch, GroupFetches, chunk_nbytes
from headrace.loader.lay import lay
from headrace.loader.layout import Layout
from headrace.loader.memory_gate import MemoryGate
from headrace.loader.normalize import Scaling
from headrace.loader.placement import Lines, Placement, Scattered, Stretch, lines_of, scattered
from headrace.loader.raw import RawReader
from headrace.loader.read_plan import OpenDataset, ReadGroup, cut_group, needed_chunks
from headrace.loader.storage import Rows
from headrace.objects.fetch import Fetch
from headrace.scratch import Lease, Scratch

_BLOCK_VALUES = 65_536
"""Values of one variable handled at once: 256 KiB of float32 fit the second-level cache with their temporaries."""
_ENOUGH_NBYTES = 2**20
"""Raw bytes from which on no further time chunk is read together: they and the rows they go to stay in the cache."""
_RAW_NBYTES = 64 * 2**20
"""Raw bytes that all readers hold together, besides one decoded chunk each."""


class RowFiller:
    """Turn read groups into rows.

    Parameters
    ----------
    datasets
        Open data sets.
    layout
        Which basin a slot is.
    x_scaling, y_scaling
        Per data set, over inputs and over targets.
    with_masks
        Whether a mask column follows for every input.
    num_readers
        Threads that fill at the same time.
    """

    def __init__(
        self,
        *,
        datasets: Sequence[OpenDataset],
        layout: Layout,
        x_scaling: Sequence[Scaling],
        y_scaling: Sequence[Scaling],
        with_masks: bool,
        num_readers: int,
    ) -> None:
        self._datasets, self._layout, self._with_masks = datasets, layout, with_masks
        self._scaling = {"input": x_scaling, "target": y_scaling}
        grids = [(array.grid, array.dtype.itemsize) for opened in datasets for array in opened.arrays]
        largest = max((g.basin.chunk_size * g.time.chunk_size * itemsize for g, itemsize in grids), default=0)
        self._gate = MemoryGate(_RAW_NBYTES + num_readers * largest)
        self._piece_nbytes = _RAW_NBYTES // (2 * num_readers)
        self._scratch = Scratch()
        self.raw = RawReader()
        self._fetches = GroupFetches(
            self.raw, num_readers=num_readers, piece_nbytes=self._piece_nbytes, most_nbytes=_RAW_NBYTES
        )

    def expect(self, group: ReadGroup, where: Placement) -> GroupFetch:
        """Say that a group will be filled next, after those that were named before."""
        opened = self._datasets[group.dataset]

        def pieces() -> list[ReadGroup]:
            wanted = replace(group, slots=where.only_placed(group.slots))
            enough = min(_ENOUGH_NBYTES, self._piece_nbytes)
            return cut_group(wanted, opened, needed_chunks(group, opened, where), self._piece_nbytes, enough)

        return self._fetches.expect(GroupFetch(opened, pieces))

    def forget(self, group: GroupFetch) -> None:
        """Say that a group will not be filled after all; for one that nobody fills."""
        self._fetches.forget(group)

    def fill(self, group: GroupFetch, rows: Rows, where: Placement) -> None:
        """Read what a group holds of the steps to be placed, and place it; raises as :meth:`RawReader.read`."""
        opened = group.opened
        with closing(self._fetches.pieces_of(group)) as pieces:
            for piece, fetches in pieces:
                nbytes = [chunk_nbytes(opened.arrays[v], piece) for v in piece.variables]
                held = max(nbytes) * (len(nbytes) + 1)  # all variables, and the one being decoded
                with self._gate.hold(held), self._scratch.lease() as lease:
                    self._fill_piece(opened, piece, rows, where, fetches, lease)

    def give_up(self) -> None:
        """Fail whatever waits for a bucket in other threads, now and later; what is on a disk is read on."""
        self._fetches.give_up()

    def verify(self, group: ReadGroup, where: Placement) -> None:
        """Compare the chunks behind rows that need not be read with the index; raises as :meth:`RawReader.check`."""
        opened = self._datasets[group.dataset]
        for time_chunk in needed_chunks(group, opened, where).tolist():
            for v in group.variables:
                self.raw.check(opened, v, opened.arrays[v].grid.basin.chunk_of(group.basin_start), time_chunk)

    def fill_without_arrays(self, rows: Rows, where: Placement) -> None:
        """Write the rows of data sets whose stores hold none of the variables: no group does."""
        for number, opened in enumerate(self._datasets):
            if not opened.arrays:
                slots = where.only_placed(np.flatnonzero(self._layout.dataset == number))
                self._fill_lacking(opened, rows, lines_of(where, slots, 0, np.iinfo(np.int64).max))

    def _fill_piece(
        self,
        opened: OpenDataset,
        piece: ReadGroup,
        rows: Rows,
        where: Placement,
        fetches: Sequence[Fetch],
        lease: Lease,
    ) -> None:
        raw = []
        try:
            # What was asked for last comes last: once it is there, hardly anything else is waited for.
            for v, fetch in zip(reversed(piece.variables), reversed(fetches), strict=True):
                raw.append(self.raw.read(opened, v, piece, fetch, lease))
                self._fetches.drop([fetch])
        finally:
            self._fetches.drop(fetches)
        basins = self._layout.basin[piece.slots]
        lines = opened.source.store_rows[basins] - piece.basin_start
        steps, order = (piece.step_start, piece.step_stop), opened.source.time_order
        every = lines_of(where, piece.slots, *steps) if order is None else scattered(where, piece.slots, *steps, order)
        self._fill_lacking(opened, rows, every)
        plain = [plain_rule(opened, v, *one) for v, one in zip(reversed(piece.variables), raw, strict=True)]
        alone = len(plain) == 1 and plain[0] is not None  # nothing is to stay in the cache for another variable
        height = piece.slots.size if alone else max(_BLOCK_VALUES // max(steps[1] - steps[0], 1), 1)
        for first in range(0, piece.slots.size, height):
            part = slice(first, min(first + height, piece.slots.size))
            stretches = every.part(part.start, part.stop)
            for v, (values, lost), rule in zip(reversed(piece.variables), raw, plain, strict=True):
                scales = self._scaling[opened.variables[v].role][piece.dataset].of(basins[part], opened.columns[v])
                if isinstance(stretches, Lines):
                    if rule is not None:
                        source = lines[part]
                    else:
                        values = canonical(opened, v, _picked(values, lines[part]), lost, basins[part])
                        source = np.arange(part.stop - part.start)
                    lay(values, rule, source, stretches, *scales, **self._column(opened, v, rows))
                else:
                    block = canonical(opened, v, _picked(values, lines[part]), lost, basins[part])
                    _scatter(block, stretches, *scales, **self._column(opened, v, rows))

    def _column(self, opened: OpenDataset, v: int, rows: Rows) -> "_Column":
        """Return where a variable goes; missing inputs become 0 there, and 1 in their mask."""
        column = opened.columns[v]
        if opened.variables[v].role != "input":
            return _Column(rows=rows.y, column=column, missing=np.float32(np.nan), mask=None)
        mask = len(opened.source.inputs) + column if self._with_masks else None
        return _Column(rows=rows.x, column=column, missing=np.float32(0), mask=mask)

    def _fill_lacking(self, opened: OpenDataset, rows: Rows, stretches: Iterable[Stretch]) -> None:
        """Write the constant columns of what a data set lacks."""
        source = opened.source
        for column, variable in enumerate(source.inputs):
            if variable.rule is None:
                for _, to, _ in stretches:
                    rows.x[to, column] = variable.fill_value
                    if self._with_masks:
                        rows.x[to, len(source.inputs) + column] = 1.0
        for column, variable in enumerate(source.targets):
            if variable.rule is None:
                for _, to, _ in stretches:
                    rows.y[to, column] = np.nan


class _Column(TypedDict):
    rows: NDArray[np.float32]
    column: int
    missing: np.float32
    mask: int | None


def _picked(values: NDArray[Any], lines: NDArray[np.int64]) -> NDArray[Any]:
    """Return ascending lines, without a copy where they are neighbours."""
    first, last = int(lines[0]), int(lines[-1])
    return values[first : last + 1] if last - first + 1 == lines.size else values[lines]


def _scatter(
    block: NDArray[np.float32],
    stretches: Scattered,
    mean: NDArray[np.float32],
    std: NDArray[np.float32],
    *,
    rows: NDArray[np.float32],
    column: int,
    missing: np.float32,
    mask: int | None,
) -> None:
    """Do what :func:`lay` does where steps of a mended time axis lie here and there."""
    for line, to, columns in stretches:
        values = (block[line, columns] - mean[line]) / std[line]
        gone = np.isnan(values)
        rows[to, column] = np.where(gone, missing, values)
        if mask is not None:
            rows[to, mask] = gone
