"""Read groups → normalised rows, in threads: each stored chunk is read and decoded once.

Values are handled in blocks of a few basins, so that a block is decoded, normalised and laid beside the other
variables while it is in the processor's cache. Legend: V variables, S basins of a block, T steps of a group.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future, wait

import numpy as np
from numpy.typing import NDArray

from headrace.decode import decode
from headrace.loader.layout import Layout
from headrace.loader.normalize import Scaling
from headrace.loader.read_plan import OpenDataset, ReadGroup
from headrace.loader.storage import Rows
from headrace.schemas.errors import StaleIndexError, describe
from headrace.store import StoredArray

_BLOCK_VALUES = 32_768
"""Values of one variable handled at once: 128 KiB of float32 fit the second-level cache with their temporaries."""


class GroupReader:
    """Fill rows from read groups, each at most once.

    Parameters
    ----------
    datasets
        Open data sets.
    layout
        Where rows lie.
    groups
        All read groups of the split.
    x_scaling, y_scaling
        Per data set, over inputs and over targets.
    rows
        Destination.
    with_masks
        Whether a mask column follows for every input.
    executor
        Reader threads.
    """

    def __init__(
        self,
        *,
        datasets: Sequence[OpenDataset],
        layout: Layout,
        groups: Sequence[ReadGroup],
        x_scaling: Sequence[Scaling],
        y_scaling: Sequence[Scaling],
        rows: Rows,
        with_masks: bool,
        executor: Executor,
    ) -> None:
        self._datasets, self._layout, self._groups, self._rows = datasets, layout, groups, rows
        self._scaling = {"input": x_scaling, "target": y_scaling}
        self._with_masks = with_masks
        self._executor = executor
        self._lock = threading.Lock()
        self._futures: dict[int, Future[None]] = {}
        self._left_over: set[int] = set()
        self._of_slot: list[list[int]] = [[] for _ in range(layout.num_slots)]
        for number, group in enumerate(groups):
            for slot in group.slots:
                self._of_slot[slot].append(number)
        self.chunks_read = 0
        self.bytes_read = 0
        for number in range(len(datasets)):
            self._fill_lacking(number)

    def new_pass(self) -> None:
        """Remember which reads an earlier pass left under way: if one of them fails, the new pass reads again."""
        with self._lock:
            self._left_over = {number for number, read in self._futures.items() if not read.done()}

    def start(self, slots: NDArray[np.int64]) -> list[Future[None]]:
        """Begin reading whatever the slots still need, in their order, and return what to wait for.

        A read that failed is tried again: what was in its way may be gone when the epoch is served once more.
        """
        with self._lock:
            needed = dict.fromkeys(number for slot in slots for number in self._of_slot[slot])
            for number in needed:
                group, earlier = self._groups[number], self._futures.get(number)
                if earlier is None or _failed(earlier):
                    self._futures[number] = self._executor.submit(self._read, group)
                elif number in self._left_over:
                    self._futures[number] = self._executor.submit(self._read_unless_done, earlier, group)
                    self._left_over.discard(number)
            return [self._futures[number] for number in needed]

    def open_for_reads(self) -> bool:
        """Return whether reads can still begin; not after the loader was closed or the interpreter began to end."""
        try:
            self._executor.submit(int)
        except RuntimeError:
            return False
        return True

    def idle(self, timeout: float | None) -> bool:
        """Wait until no read is under way; False when some still is after ``timeout`` seconds."""
        with self._lock:
            # wait() would wait for ever for a read that was cancelled before it began
            running = [read for read in self._futures.values() if not read.done()]
        return not wait(running, timeout).not_done

    def _fill_lacking(self, number: int) -> None:
        """Write the constant columns of inputs and targets that a data set lacks."""
        own = np.flatnonzero(self._layout.dataset == number)
        if own.size == 0:
            return
        rows = slice(int(self._layout.base[own[0]]), int(self._layout.base[own[-1] + 1]))
        source = self._datasets[number].source
        for column, variable in enumerate(source.inputs):
            if variable.rule is None:
                self._rows.x[rows, column] = variable.fill_value
                if self._with_masks:
                    self._rows.x[rows, len(source.inputs) + column] = 1.0
        for column, variable in enumerate(source.targets):
            if variable.rule is None:
                self._rows.y[rows, column] = np.nan

    def _read_unless_done(self, earlier: Future[None], group: ReadGroup) -> None:
        if earlier.cancelled() or earlier.exception() is not None:
            self._read(group)

    def _read(self, group: ReadGroup) -> None:
        opened = self._datasets[group.dataset]
        raw = [self._raw(opened, v, group) for v in group.variables]
        basins = self._layout.basin[group.slots]
        lines = opened.source.store_rows[basins] - group.basin_start
        height = max(_BLOCK_VALUES // max(group.step_stop - group.step_start, 1), 1)
        for first in range(0, group.slots.size, height):
            part = slice(first, first + height)
            for v, (values, absent) in zip(group.variables, raw, strict=True):
                self._place(opened, v, group, part, values[_span(lines[part])], absent, basins[part])

    def _raw(self, opened: OpenDataset, v: int, group: ReadGroup) -> tuple[NDArray[np.generic], list[slice]]:
        """Read the raw values of one variable and say which step ranges hold nothing but missing values."""
        array, variable = opened.arrays[v], opened.variables[v]
        basin_chunk = array.grid.basin.chunk_of(group.basin_start)
        lost: list[slice] = []
        broken = False
        for time_chunk in array.grid.time.chunks_of(group.step_start, group.step_stop):
            state = self._check(opened, v, basin_chunk, time_chunk)
            start, stop = array.grid.time.bounds(time_chunk)
            if state == "error" or (
                state == "absent" and variable.rule is not None and variable.rule.absent_is_missing
            ):
                lost.append(slice(start - group.step_start, stop - group.step_start))
            broken = broken or state == "error"
        rows = slice(group.basin_start, group.basin_stop)
        if not broken:
            return array.read(rows, slice(group.step_start, group.step_stop)), lost
        values = np.zeros(
            (rows.stop - rows.start, group.step_stop - group.step_start), dtype=array.dtype.newbyteorder("=")
        )
        for time_chunk in array.grid.time.chunks_of(group.step_start, group.step_stop):
            start, stop = array.grid.time.bounds(time_chunk)
            where = slice(start - group.step_start, stop - group.step_start)
            if where not in lost:
                values[:, where] = array.read(rows, slice(start, stop))
        return values, lost

    def _check(self, opened: OpenDataset, v: int, basin_chunk: int, time_chunk: int) -> str:
        """Compare a stored object with what the scan saw and return its state."""
        array, variable = opened.arrays[v], opened.variables[v]
        facts = opened.source.chunks[variable.name].look_up(basin_chunk, time_chunk)
        stat = array.stat(basin_chunk, time_chunk)
        now = "" if stat is None else stat.fingerprint
        if facts is None or facts[1] != now:
            raise StaleIndexError(_changed(opened, array, basin_chunk, time_chunk, facts, now))
        with self._lock:
            self.chunks_read += stat is not None
            self.bytes_read += 0 if stat is None else stat.nbytes
        return facts[0]

    def _place(
        self,
        opened: OpenDataset,
        v: int,
        group: ReadGroup,
        part: slice,
        raw: NDArray[np.generic],
        absent: list[slice],
        basins: NDArray[np.int32],
    ) -> None:
        """Decode and normalise a block of basins and copy it to their rows."""
        variable = opened.variables[v]
        rule = variable.rule
        if rule is None:
            return
        slots = group.slots[part]
        lines = opened.source.store_rows[basins]
        picked = raw if raw.shape[0] == slots.size else raw[lines - lines[0]]
        area = None if rule.area_array is None else opened.source.areas[rule.area_array][basins]
        block = decode(picked, rule, area=area)
        for steps in absent:
            block[:, steps] = np.nan
        if opened.source.time_order is not None:
            block = np.take(block, opened.source.time_order, axis=1)
        is_input = variable.role == "input"
        column = opened.columns[v]
        scaling = self._scaling[variable.role][group.dataset]
        block -= scaling.mean[basins, column][:, None]
        block /= scaling.std[basins, column][:, None]
        gone = np.isnan(block) if is_input else None
        if gone is not None:
            np.copyto(block, np.float32(0), where=gone)
        out = self._rows.x if is_input else self._rows.y
        layout = self._layout
        for line, slot in enumerate(slots):
            first = max(int(layout.first[slot]), group.step_start)
            last = min(int(layout.last[slot]), group.step_stop)
            if first >= last:
                continue
            base = int(layout.base[slot] - layout.first[slot])
            inside = slice(first - group.step_start, last - group.step_start)
            out[base + first : base + last, column] = block[line, inside]
            if gone is not None and self._with_masks:
                out[base + first : base + last, len(opened.source.inputs) + column] = gone[line, inside]


def _failed(read: Future[None]) -> bool:
    return read.done() and not read.cancelled() and read.exception() is not None


def _span(lines: NDArray[np.int64]) -> slice:
    return slice(int(lines[0]), int(lines[-1]) + 1)


def _changed(
    opened: OpenDataset, array: StoredArray, basin_chunk: int, time_chunk: int, facts: tuple[str, str] | None, now: str
) -> str:
    return describe(
        "chunk changed after the index was built",
        where=f"data set {opened.source.dataset_id}, {array.uri}/{array.object_key(basin_chunk, time_chunk)}",
        expected="not scanned" if facts is None else f"size:mtime {facts[1] or 'absent'}",
        got=f"size:mtime {now or 'absent'}",
        fix="run build-index again with the same --out; it rescans only what changed",
    )
