"""An epoch as a pure function of (tiles, seed, epoch, round size): tile order, rounds, and a key per round.

No clock, thread count, device or file enters here; two processes with equal arguments make equal plans, and their
digests prove it. Order inside a round is a keyed permutation that is never stored.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.permutation import Order, Permutation, derive_key, hash_floats
from headrace.loader.tiles import FIRST_PASS_ROUNDS, Tiles
from headrace.loader.uses import Uses

_PARTS, _OFFSETS, _COLUMNS, _WINDOWS, _TURNS = range(5)
"""What a key is for; keeps the streams of one epoch apart."""
_SORTED_TOGETHER = 1 << 18
"""Numbers sorted in one call; bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """The order in which one epoch serves its windows.

    Parameters
    ----------
    seed, epoch, round_steps, shuffle
        What the plan was made from.
    tile_order
        int64 [N], tiles as they are used.
    round_cuts
        int64 [rounds + 1]: round r uses ``tile_order[round_cuts[r]:round_cuts[r + 1]]``.
    window_cuts
        int64 [rounds + 1]: round r serves positions [window_cuts[r], window_cuts[r + 1]) of the epoch.
    uses
        Which windows of its tiles a round serves; None: each once.
    """

    seed: int
    epoch: int
    round_steps: int
    shuffle: bool
    tile_order: NDArray[np.int64]
    round_cuts: NDArray[np.int64]
    window_cuts: NDArray[np.int64]
    uses: Uses | None = None

    @property
    def num_rounds(self) -> int:
        """Number of rounds."""
        return int(self.round_cuts.size) - 1

    @property
    def num_windows(self) -> int:
        """Windows of the epoch."""
        return int(self.window_cuts[-1])

    def tiles_of(self, number: int) -> NDArray[np.int64]:
        """Return the tiles of a round, in the order of their pool rows."""
        return self.tile_order[self.round_cuts[number] : self.round_cuts[number + 1]]

    def rounds_of(self, start: int, stop: int) -> range:
        """Return the rounds that serve positions [start, stop) of the epoch; stop is above start."""
        first = int(np.searchsorted(self.window_cuts, start, side="right")) - 1
        return range(first, int(np.searchsorted(self.window_cuts, stop, side="left")))

    def key_of(self, number: int) -> int:
        """Return the key of a round's window permutation."""
        return derive_key(self.seed, self.epoch, _WINDOWS, number)

    def order_of(self, number: int) -> Order | None:
        """Return the order of a round's windows; None is their natural order."""
        if not self.shuffle:
            return None
        if self.uses is not None:
            return self.uses.order_of(number, self.key_of(number))
        return Permutation(self.key_of(number), int(self.window_cuts[number + 1] - self.window_cuts[number]))

    def digest(self) -> str:
        """Return 16 hex digits over everything that decides the order."""
        facts = np.array([self.seed, self.epoch, self.round_steps, self.shuffle], dtype=np.int64)
        arrays: tuple[NDArray[np.int64], ...] = (facts, self.tile_order, self.round_cuts, self.window_cuts)
        if self.uses is not None:
            arrays += self.uses.content()
        content = hashlib.sha256()
        for array in arrays:
            content.update(np.ascontiguousarray(array, dtype="<i8").data)
        return content.hexdigest()[:16]


def plan_epoch(
    tiles: Tiles,
    column: NDArray[np.int64],
    *,
    seed: int,
    epoch: int,
    round_steps: int,
    shuffle: bool,
    resident: bool,
) -> EpochPlan:
    """Plan one epoch.

    Parameters
    ----------
    tiles
        All tiles of the split.
    column
        int64 [slots]: which basin chunk of which data set a slot is read from, numbered by
        ``data set number << 32 | basin chunk``.
    seed, epoch
        Keys of the shuffle.
    round_steps
        Pool rows that a round may hold.
    shuffle
        Whether to permute; otherwise windows come in the order (data set, basin, start).
    resident
        Whether the whole split stays in memory. Its first epoch then uses tiles as they arrive, in several rounds;
        later epochs are one round.
    """
    first_pass = resident and epoch == 0
    if shuffle:
        order = _shuffled_order(tiles, column, seed, epoch, by_column=first_pass)
    else:
        order = np.arange(tiles.slot.size)
    if resident:
        rounds = FIRST_PASS_ROUNDS if first_pass else 1
        cuts = _even_cuts(tiles.num_windows[order], rounds)
    else:
        cuts = bounded_cuts(tiles.num_rows[order], round_steps)
    total = _sums_before(tiles.num_windows[order])
    return EpochPlan(
        seed=seed,
        epoch=epoch,
        round_steps=round_steps,
        shuffle=shuffle,
        tile_order=order,
        round_cuts=cuts,
        window_cuts=total[cuts],
    )


def _shuffled_order(
    tiles: Tiles, column: NDArray[np.int64], seed: int, epoch: int, *, by_column: bool
) -> NDArray[np.int64]:
    """Order tiles so that every stretch of the order holds an even share of every basin and data set.

    The tiles of a basin, in random order, are spread evenly over [0, 1) from an offset on. The basins of a data set, in
    random order, have their offsets spread evenly too, so that the data set itself is even to about one tile. With
    ``by_column`` the basin chunks of a data set follow each other in random order instead, each taking an equal share
    of [0, 1).
    """
    rank = random_ranks(tiles.slot, derive_key(seed, epoch, _PARTS))
    names, of_slot = np.unique(column, return_inverse=True)
    group = of_slot if by_column else np.unique(column >> 32, return_inverse=True)[1]
    turn = hash_floats(derive_key(seed, epoch, _TURNS), int(group.max(initial=0)) + 1)
    offset = (random_ranks(group, derive_key(seed, epoch, _OFFSETS)) + turn[group]) / np.bincount(group)[group]
    place = offset[tiles.slot]
    place += rank
    del rank  # at 10⁷ tiles every array counts
    place /= tiles.num_parts
    if by_column:
        dataset = names >> 32
        position = random_ranks(dataset, derive_key(seed, epoch, _COLUMNS))
        chunks = np.unique(dataset, return_inverse=True, return_counts=True)
        place = (position[of_slot][tiles.slot] + place) / chunks[2][chunks[1]][of_slot][tiles.slot]
    return _stable_order(place)


def _stable_order(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the stable argsort; where no value occurs twice any sort is stable, and the unstable one is faster."""
    order = np.argsort(values)
    ordered = values[order]
    return np.argsort(values, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def random_ranks(group: NDArray[np.int64], key: int) -> NDArray[np.int64]:
    """Return a random order 0, 1, … of the members of each group, int64 like ``group``."""
    number = hash_floats(key, group.size)
    # Most callers give groups in order.
    by_group = np.argsort(group, kind="stable") if (group[1:] < group[:-1]).any() else None
    ordered = group if by_group is None else group[by_group]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if group.size else np.zeros(0, np.int64)
    size = np.diff(np.append(first, group.size))
    rank = np.empty(group.size, dtype=np.int64)
    for members in np.unique(size):  # groups of equal size are the lines of a table; short lines are sorted fast
        lines = first[size == members]
        for some in np.array_split(lines, -(-lines.size * int(members) // _SORTED_TOGETHER)):
            place = some[:, None] + np.arange(members)
            place = place if by_group is None else by_group[place]
            order = np.argsort(number[place], axis=1, kind="stable")
            rank[np.take_along_axis(place, order, axis=1)] = np.arange(members)
    return rank


def _sums_before(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the sum of the values before each place, and of all: int64 [N + 1]."""
    sums = np.zeros(values.size + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


def _even_cuts(windows: NDArray[np.int64], rounds: int) -> NDArray[np.int64]:
    """Cut into at most ``rounds`` stretches of about equal numbers of windows, none empty."""
    if windows.size == 0:
        return np.zeros(1, dtype=np.int64)
    done = np.cumsum(windows)
    wanted = done[-1] * np.arange(1, rounds) / rounds
    inner = np.searchsorted(done, wanted, side="left") + 1
    return np.unique(np.concatenate([[0], inner, [windows.size]])).astype(np.int64)


def bounded_cuts(rows: NDArray[np.integer], round_steps: int) -> NDArray[np.int64]:
    """Cut into the fewest rounds of about equal rows, none above ``round_steps``."""
    if rows.size == 0:
        return np.zeros(1, dtype=np.int64)
    done = _sums_before(rows)
    for rounds in range(max(int(-(-done[-1] // round_steps)), 1), rows.size + 1):
        wanted = done[-1] * np.arange(1, rounds) / rounds
        cuts = np.unique(np.concatenate([[0], np.searchsorted(done, wanted, side="left"), [rows.size]]))
        if np.diff(done[cuts]).max() <= round_steps:
            return cuts.astype(np.int64)
    return np.arange(rows.size + 1)
