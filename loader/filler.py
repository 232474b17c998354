"""Read groups → normalised rows: raw chunks are read piece by piece, decoded and laid where they belong.

Values are handled in blocks of a few basins, so that a block is decoded, normalised and laid beside the other
variables while it is in the processor's cache. Legend: V variables, S basins of a block, T steps of a piece.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headrace.loader.chunk_values import canonical
from headrace.loader.lay import lay
from headrace.loader.layout import Layout
from headrace.loader.memory_gate import MemoryGate
from headrace.loader.normalize import Scaling
from headrace.loader.placement import Placement, Stretch, stretches_of
from headrace.loader.raw import RawReader
from headrace.loader.read_plan import OpenDataset, ReadGroup, cut_group, needed_chunks
from headrace.loader.storage import Rows
from headrace.objects.fetch import Fetch
from headrace.scratch import Lease, Scratch
from headrace.store import StoredArray

_BLOCK_VALUES = 32_768
"""Values of one variable handled at once: 128 KiB of float32 fit the second-level cache with their temporaries."""
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
        largest = max((_decoded_nbytes(a) for opened in datasets for a in opened.arrays), default=0)
        self._gate = MemoryGate(_RAW_NBYTES + num_readers * largest)
        self._piece_nbytes = _RAW_NBYTES // (2 * num_readers)
        self._scratch = Scratch()
        self.raw = RawReader()
        self._fetching: set[Fetch] = set()
        self._given_up = False

    def fill(self, group: ReadGroup, rows: Rows, where: Placement) -> None:
        """Read what a group holds of the steps to be placed, and place it; raises as :meth:`RawReader.read`."""
        opened = self._datasets[group.dataset]
        chunks = needed_chunks(group, opened, where)
        wanted = replace(group, slots=where.only_placed(group.slots))
        pieces = cut_group(wanted, opened, chunks, self._piece_nbytes)
        fetches = self._fetch(opened, pieces[:1])
        try:
            for number, piece in enumerate(pieces):
                fetches += self._fetch(opened, pieces[number + 1 : number + 2])  # while this one is decoded
                arrays = [opened.arrays[v] for v in piece.variables]
                together = len(arrays[0].grid.time.chunks_of(piece.step_start, piece.step_stop))
                decoded = max(_decoded_nbytes(array) for array in arrays) * together
                held = decoded * (len(arrays) + 1)  # all variables, and the one being decoded
                with self._gate.hold(held), self._scratch.lease() as lease:
                    self._fill_piece(opened, piece, rows, where, fetches[: len(arrays)], lease)
                del fetches[: len(arrays)]
        finally:
            for fetch in fetches:
                self._drop(fetch)

    def give_up(self) -> None:
        """Fail whatever waits for a bucket in other threads, now and later; what is on a disk is read on."""
        self._given_up = True
        for fetch in list(self._fetching):
            fetch.give_up()

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
                self._fill_lacking(opened, rows, stretches_of(where, slots, 0, np.iinfo(np.int64).max, None))

    def _fetch(self, opened: OpenDataset, pieces: Iterable[ReadGroup]) -> list[Fetch]:
        found = [self.raw.fetch(opened, v, piece) for piece in pieces for v in piece.variables]
        self._fetching.update(found)
        if self._given_up:
            for fetch in found:
                fetch.give_up()
        return found

    def _drop(self, fetch: Fetch) -> None:
        self._fetching.discard(fetch)
        fetch.drop()

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
        for v, fetch in zip(piece.variables, fetches, strict=True):
            raw.append(self.raw.read(opened, v, piece, fetch, lease))
            self._drop(fetch)
        basins = self._layout.basin[piece.slots]
        lines = opened.source.store_rows[basins] - piece.basin_start
        height = max(_BLOCK_VALUES // max(piece.step_stop - piece.step_start, 1), 1)
        every = stretches_of(where, piece.slots, piece.step_start, piece.step_stop, opened.source.time_order)
        self._fill_lacking(opened, rows, every)
        cuts = np.searchsorted([line for line, _, _ in every], np.arange(0, piece.slots.size + height, height)).tolist()
        for number, first in enumerate(range(0, piece.slots.size, height)):
            part = slice(first, first + height)
            stretches = [(line - first, to, columns) for line, to, columns in every[cuts[number] : cuts[number + 1]]]
            span = slice(int(lines[part][0]), int(lines[part][-1]) + 1)
            for v, (values, lost) in zip(piece.variables, raw, strict=True):
                picked = values[span]
                if picked.shape[0] != basins[part].size:
                    picked = picked[lines[part] - span.start]
                block = canonical(opened, v, picked, lost, basins[part])
                scaling = self._scaling[opened.variables[v].role][piece.dataset]
                self._place(opened, v, block, scaling.of(basins[part], opened.columns[v]), stretches, rows)

    def _place(
        self,
        opened: OpenDataset,
        v: int,
        block: NDArray[np.float32],
        scales: tuple[NDArray[np.float32], NDArray[np.float32]],
        stretches: Iterable[Stretch],
        rows: Rows,
    ) -> None:
        """Scale a block into its rows; missing inputs become 0 there, and 1 in their mask."""
        is_input, column = opened.variables[v].role == "input", opened.columns[v]
        out, missing = (rows.x, np.float32(0)) if is_input else (rows.y, np.float32(np.nan))
        mask = len(opened.source.inputs) + column if is_input and self._with_masks else None
        mean, std = scales
        for line, to, columns in stretches:
            values = block[line, columns]
            if isinstance(to, slice):
                lay(values, mean[line], std[line], out[to], column=column, missing=missing, mask=mask)
                continue
            laid = np.empty((values.size, 2), np.float32)
            lay(values, mean[line], std[line], laid, column=0, missing=missing, mask=1)
            out[to, column] = laid[:, 0]
            if mask is not None:
                out[to, mask] = laid[:, 1]

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


def _decoded_nbytes(array: StoredArray) -> int:
    """Return the bytes of a whole decoded chunk; those at the edge are stored whole."""
    return array.grid.basin.chunk_size * array.grid.time.chunk_size * array.dtype.itemsize
