"""An epoch by quotas and caps: what each data set gives, cut into rounds that hold every data set's share.

A pure function of (tiles, sampling, seed, epoch, round size, length), as :mod:`headrace.loader.schedule` is for epochs
that serve every window once.

Legend: N tiles, D data sets, U uses.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headrace.loader.passes import DatasetWindows, joined, windows_of_epoch
from headrace.loader.sampling import Stretches, chosen_windows, quotas, windows_to_choose_from
from headrace.loader.schedule import EpochPlan, bounded_cuts
from headrace.loader.tiles import FIRST_PASS_ROUNDS, Tiles
from headrace.loader.uses import Uses
from headrace.schemas.config import SamplingConfig

_MOST_ROUNDS = 8
"""Times the fewest rounds at which the even shares of data sets are given up for rounds that fit."""
_SINGLE_STEPS = 64
"""Numbers of rounds tried one after the other before the step is doubled each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Which windows epochs take.

    Parameters
    ----------
    config
        Mode and caps.
    dataset
        int64 [slots], data set of each slot.
    weights
        float64 [D], above 0.
    """

    config: SamplingConfig
    dataset: NDArray[np.int64]
    weights: NDArray[np.float64]

    def available(self, tiles: Tiles) -> NDArray[np.int64]:
        """Return how many windows of each data set an epoch may choose from, int64 [D]."""
        return windows_to_choose_from(tiles, self.dataset, self.weights.size, self.config.max_windows_per_basin)


def plan_sampled(
    tiles: Tiles,
    sampling: Sampling,
    *,
    seed: int,
    epoch: int,
    round_steps: int,
    shuffle: bool,
    resident: bool,
    length: int,
) -> EpochPlan:
    """Plan one epoch.

    Parameters
    ----------
    tiles
        All tiles of the split.
    sampling
        Quotas and caps. Without shuffling there are no quotas: windows come in their natural order, each once, up to
        ``length``, and a basin's cap draws the same windows in every epoch.
    seed, epoch, round_steps, shuffle, resident
        As for :func:`headrace.loader.schedule.plan_epoch`.
    length
        Windows of the epoch, at most those there are to choose from.
    """
    cap = sampling.config.max_windows_per_basin
    chosen = chosen_windows(tiles, cap, seed, epoch if shuffle else 0)
    if shuffle:
        quota = quotas(sampling.config, sampling.weights, sampling.available(tiles), length)
        taken = _by_quota(tiles, chosen, sampling, quota, seed, epoch, round_steps, resident=resident)
    else:
        taken = [_in_order(chosen, length)]
    if resident:
        uses = _even_rounds(taken, FIRST_PASS_ROUNDS if epoch == 0 else 1)
    else:
        uses = _bounded_rounds(tiles, taken, round_steps)
    held, round_cuts = _tiles_of_rounds(uses, tiles)
    done = np.append(0, np.cumsum(uses.stretches.count))
    return EpochPlan(
        seed=seed,
        epoch=epoch,
        round_steps=round_steps,
        shuffle=shuffle,
        tile_order=held % tiles.slot.size,
        round_cuts=round_cuts,
        window_cuts=done[np.searchsorted(uses.round, np.arange(round_cuts.size))],
        uses=uses,
    )


def _by_quota(
    tiles: Tiles,
    chosen: Stretches,
    sampling: Sampling,
    quota: NDArray[np.int64],
    seed: int,
    epoch: int,
    round_steps: int,
    *,
    resident: bool,
) -> list[Uses]:
    """Return what each data set gives, in its order of use."""
    dataset = sampling.dataset[tiles.slot[chosen.tile]]
    total, taken = max(int(quota.sum()), 1), []
    for number, wanted in enumerate(quota.tolist()):
        own = chosen.take(dataset == number)
        rows = tiles.num_rows[own.tile]
        room = 2 * int(rows.sum()) if resident else round_steps * wanted // total
        data = DatasetWindows(number=number, stretches=own, slot=tiles.slot[own.tile], rows=rows, room=room)
        stretches, turn = windows_of_epoch(data, wanted, seed, epoch)
        taken.append(_unplaced(stretches, number, turn))
    return taken


def _in_order(chosen: Stretches, length: int) -> Uses:
    """Return the first windows in the order of tiles and starts."""
    ordered = chosen.take(np.lexsort((chosen.first, chosen.tile)))
    count = np.clip(length - (np.cumsum(ordered.count) - ordered.count), 0, ordered.count)
    ordered = replace(ordered, count=count).take(count > 0)
    return _unplaced(ordered, 0, np.zeros(ordered.tile.size, np.int64))


def _unplaced(stretches: Stretches, dataset: int, turn: NDArray[np.int64]) -> Uses:
    return Uses(
        round=np.zeros(turn.size, np.int64), stretches=stretches, dataset=np.full(turn.size, dataset), turn=turn
    )


def _even_rounds(taken: list[Uses], rounds: int) -> Uses:
    """Cut into rounds that each hold an equal part of what every data set gives; stretches are cut where need be."""
    cut = [_cut(uses, rounds) for uses in taken if uses.turn.size]
    return _gathered(cut, np.concatenate([uses.round for uses in cut]))


def _cut(uses: Uses, rounds: int) -> Uses:
    count = uses.stretches.count
    stop = np.cumsum(count)
    start, edges = stop - count, np.arange(1, rounds) * int(stop[-1]) // rounds
    of_edge = np.searchsorted(stop, edges, side="right")
    between = np.unique(edges[start[of_edge] != edges])
    begin = np.insert(start, np.searchsorted(start, between), between)
    of = np.repeat(
        np.arange(start.size), 1 + np.bincount(np.searchsorted(stop, between, "right"), minlength=start.size)
    )
    part = uses.stretches.take(of)
    skipped = begin - start[of]
    return Uses(
        round=np.searchsorted(edges, begin, side="right"),
        stretches=replace(part, first=part.first + skipped * part.step, count=np.diff(np.append(begin, stop[-1]))),
        dataset=uses.dataset[of],
        turn=uses.turn[of],
    )


def _bounded_rounds(tiles: Tiles, taken: list[Uses], round_steps: int) -> Uses:
    """Cut into rounds within their size: even ones, or where whole tiles of every data set are too much, any."""
    used = np.zeros(tiles.slot.size, dtype=bool)
    for uses in taken:
        used[uses.stretches.tile] = True
    rounds = max(int(-(-tiles.num_rows[used].sum() // round_steps)), 1)
    most_rounds, tries = _MOST_ROUNDS * rounds, 0
    spans = [_Spans.of(uses.stretches, tiles, most_rounds) for uses in taken if uses.turn.size]
    while rounds <= most_rounds:
        most = int(np.sum([own.rows_of_rounds(rounds) for own in spans], axis=0).max())
        if most <= round_steps:
            return _even_rounds(taken, rounds)
        tries += 1
        rounds = max(rounds + (1 << max(tries - _SINGLE_STEPS, 0)), rounds * most // round_steps)
    count = [uses.stretches.count for uses in taken]
    place = np.concatenate([(np.cumsum(c) - c / 2) / max(int(c.sum()), 1) for c in count])
    order = np.argsort(place, kind="stable")
    cuts = bounded_cuts(tiles.num_rows[np.concatenate([uses.stretches.tile for uses in taken])[order]], round_steps)
    number = np.empty(order.size, np.int64)
    number[order] = np.searchsorted(cuts, np.arange(order.size), side="right") - 1
    return _gathered(taken, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spans:
    """Places of stretches among what a data set gives: which rounds hold which tile, for any even number of rounds.

    Parameters
    ----------
    first, last
        int64 [U], places of the first and the last window of each stretch.
    before
        int64 [U], place of the last window of the same tile's stretch before it; -1 where it is the tile's first.
    rows
        int64 [U], rows of the tile.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    before: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, stretches: Stretches, tiles: Tiles, most_rounds: int) -> "_Spans":
        """Look at stretches; where there may be more rounds than windows, at every window alone."""
        tile, count = stretches.tile, stretches.count
        if count.sum() < most_rounds:
            tile, count = np.repeat(tile, count), np.ones(count.sum(), np.int64)
        last = np.cumsum(count) - 1
        order = np.argsort(tile, kind="stable")
        again = np.flatnonzero(tile[order[1:]] == tile[order[:-1]])
        before = np.full(tile.size, -1)
        before[order[again + 1]] = last[order[again]]
        return cls(first=last + 1 - count, last=last, before=before, rows=tiles.num_rows[tile])

    def rows_of_rounds(self, rounds: int) -> NDArray[np.float64]:
        """Return the rows of the tiles that each round of :func:`_even_rounds` holds, float64 [rounds]."""
        total = int(self.last[-1]) + 1
        first, last, before = (((p + 1) * rounds - 1) // total for p in (self.first, self.last, self.before))
        new = np.maximum(first, before + 1)  # of place -1 the round is -1
        held = new <= last
        begun = np.bincount(new[held], weights=self.rows[held], minlength=rounds)
        ended = np.bincount(last[held] + 1, weights=self.rows[held], minlength=rounds)
        return np.cumsum(begun - ended[:rounds])


def _gathered(parts: list[Uses], number: NDArray[np.int64]) -> Uses:
    """Return uses of several data sets in the order of rounds, none of which is empty."""
    dataset = np.concatenate([uses.dataset for uses in parts])
    order = np.lexsort((dataset, number))
    return Uses(
        round=np.cumsum(np.diff(number[order], prepend=number[order[0]]) != 0),
        stretches=joined([uses.stretches for uses in parts]).take(order),
        dataset=dataset[order],
        turn=np.concatenate([uses.turn for uses in parts])[order],
    )


def _tiles_of_rounds(uses: Uses, tiles: Tiles) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ``round · N + tile`` for the tiles of every round, ascending, and where each round begins."""
    held = np.sort(uses.round * tiles.slot.size + uses.stretches.tile)
    held = held[np.append(True, held[1:] != held[:-1])]
    return held, np.searchsorted(held, np.arange(int(uses.round[-1]) + 2) * tiles.slot.size)
