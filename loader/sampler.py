"""``ChunkBatchSampler``: which windows a stock ``DataLoader`` asks for together, so that its workers read chunks once.

It lives in the training process, so an epoch's order never depends on workers, and neither persistent workers nor
their number can freeze or change it.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import Sampler

from headrace.loader.arguments import whole_number, yes_or_no
from headrace.loader.budget import human_nbytes
from headrace.loader.cells import CellOrder, cut_cells
from headrace.loader.dataset import WindowDataset
from headrace.loader.joint import Joint
from headrace.loader.partition import SharedCuts
from headrace.loader.schedule import EpochPlan, plan_epoch
from headrace.loader.world import check_same, resolve_world
from headrace.schemas.errors import ConfigError, StaleIndexError, describe

logger = logging.getLogger(__name__)

STATE_FORMAT = 1


class ChunkBatchSampler(Sampler[list[int]]):
    """Yield lists of window numbers, shuffled among as many chunks as a worker can keep.

    An epoch is a pure function of (index, windows, seed, epoch, memory budget, ``most_workers``). Each worker decodes
    every chunk of an epoch about once; a :class:`headrace.WindowLoader` decodes it once for all threads, and mixes the
    whole split.

    Parameters
    ----------
    dataset
        What is served.
    batch_size
        Windows per rank and batch.
    seed
        Key of the shuffle, with the epoch.
    rank, world_size
        This process's share; None takes torch.distributed's when it is initialised, else 0 and 1. Ranks take slices of
        the same global batches, so all have the same number of batches.
    shuffle
        None shuffles the train split only. Without shuffling windows come chunk by chunk, by start within a basin.
    drop_last
        Leave out a last batch that is not full.
    most_workers
        Worker processes that the order is made for: the chunks of a round fit the share of each. Fewer do no harm, and
        the order is the same.

    Raises
    ------
    ConfigError
        An argument does not fit, there are fewer windows than ranks, or ranks differ.
    """

    def __init__(
        self,
        dataset: WindowDataset,
        *,
        batch_size: int,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        shuffle: bool | None = None,
        drop_last: bool = False,
        most_workers: int = 4,
    ) -> None:
        world = resolve_world(rank, world_size)
        self.rank, self.world_size = world.rank, world.size
        self._dataset, self._total = dataset, len(dataset)
        self._epoch = self._first = self._asked = 0
        with Joint(world) as joint:
            self.batch_size, self.seed = whole_number("batch_size", batch_size), whole_number("seed", seed, least=0)
            self.shuffle = dataset.split == "train" if shuffle is None else yes_or_no("shuffle", shuffle)
            self.drop_last = yes_or_no("drop_last", drop_last)
            share = dataset.memory_budget_nbytes // whole_number("most_workers", most_workers)
            world.check_windows(self._total, drop_last=self.drop_last)
            self._cut(joint.of_first(max(share // dataset.row_nbytes, 1)))
            self._started: tuple[int, SharedCuts] = 0, self._cuts(0)
            check_same(
                joint,
                {
                    "index": dataset.index_digest, "settings": self._order_digest(), "seed": self.seed,
                    "batch_size": self.batch_size, "drop_last": self.drop_last, "plan": self.plan().digest(),
                },
            )  # fmt: skip
        self._warn_of_small_share(share)

    @property
    def epoch(self) -> int:
        """Number of the epoch that the next iteration serves."""
        return self._epoch

    def plan(self, epoch: int | None = None) -> EpochPlan:
        """Return the order of an epoch, by default the one that is next."""
        cells, fits = self._cells, self._cells.num_rows <= self._round_steps
        return plan_epoch(
            cells.tiles, cells.column, seed=self.seed, epoch=self._epoch if epoch is None else epoch,
            round_steps=self._round_steps, shuffle=self.shuffle, resident=fits,
        )  # fmt: skip

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch; exact, and the same for every rank."""
        return len(self._cuts(0))

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the next epoch, or what remains of it after :meth:`load_state_dict`.

        When the last one is asked for, the following epoch is due. A DataLoader with workers asks ahead: after leaving
        an epoch early, call :meth:`set_epoch` to say which one is next.
        """
        plan, cuts = self.plan(), self._cuts(self._first)
        self._started, self._first, self._asked = (plan.epoch, cuts), 0, 0
        if len(cuts) == 0:  # what remained is less than a batch, and left out
            self._epoch = plan.epoch + 1
        order = CellOrder(self._cells, plan)
        for number in range(len(cuts)):
            numbers = order.numbers(*cuts.slice_of(number, self.rank))
            if self._started[1] is cuts:
                self._asked = number + 1
                if self._asked == len(cuts):
                    self._epoch = plan.epoch + 1
            yield numbers.tolist()

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration serves, from its start."""
        self._epoch, self._first = whole_number("epoch", epoch, least=0), 0
        self._started, self._asked = (self._epoch, self._cuts(0)), 0

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return where training stands.

        Parameters
        ----------
        batches
            Batches that training has taken since the iteration began. None takes those that the DataLoader has asked
            for, which is the same with ``num_workers=0`` and more with workers, because they read ahead.
        """
        epoch, cuts = self._started
        taken = self._asked if batches is None else whole_number("batches", batches, least=0)
        done = cuts.bounds(min(taken, len(cuts)) - 1)[1] if taken else cuts.first
        if taken and taken >= len(cuts):
            epoch, done = epoch + 1, 0
        return {
            "format": STATE_FORMAT, "index_digest": self._dataset.index_digest, "order_digest": self._order_digest(),
            "round_steps": self._round_steps, "seed": self.seed, "epoch": epoch, "windows_consumed": done,
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, with any number of ranks and workers: the next iteration yields what remained.

        Raises
        ------
        ConfigError
            The state cannot be read, belongs to other settings, or needs more memory than this budget.
        StaleIndexError
            The state belongs to another index.
        """
        if not _is_readable(state, self._total):
            _refuse(
                "sampler state cannot be read", f"format {STATE_FORMAT} with whole numbers", repr(state),
                "use a state as state_dict returned it",
            )  # fmt: skip
        if state.get("index_digest") != self._dataset.index_digest:
            raise StaleIndexError(
                describe(
                    "sampler state belongs to another index",
                    where="load_state_dict",
                    expected=self._dataset.index_digest,
                    got=str(state.get("index_digest")),
                    fix="open the index that the checkpoint was made with, or start afresh",
                )
            )
        if state.get("order_digest") != self._order_digest():
            _refuse(
                "sampler state belongs to other settings", self._order_digest(), str(state.get("order_digest")),
                "use the same split, window, missing, normalization, data sets, basins and shuffle",
            )  # fmt: skip
        row_nbytes, budget = self._dataset.row_nbytes, self._dataset.memory_budget_nbytes
        if min(state["round_steps"], self._cells.num_rows) * row_nbytes > budget:
            _refuse(
                "memory_budget is too small for the rounds of this state",
                f"at least {human_nbytes(state['round_steps'] * row_nbytes)}",
                human_nbytes(budget), "raise memory_budget",
            )  # fmt: skip
        self._cut(max(state["round_steps"], 1))
        self.seed, self._epoch, self._first = state["seed"], state["epoch"], state["windows_consumed"]
        self._started, self._asked = (self._epoch, self._cuts(self._first)), 0

    def _cut(self, round_steps: int) -> None:
        data = self._dataset
        self._round_steps = round_steps
        self._cells = cut_cells(data.table, data.layout, data.grids, data.column, data.window.length, round_steps)

    def _cuts(self, first: int) -> SharedCuts:
        return SharedCuts(
            first=first, total=self._total, batch_size=self.batch_size, world_size=self.world_size,
            drop_last=self.drop_last,
        )  # fmt: skip

    def _order_digest(self) -> str:
        """Return 16 hex digits that change when the numbers of windows, what they hold or their order could."""
        facts = f"{self._dataset.spec_digest} {self._total} {self.shuffle} chunk batches"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def _warn_of_small_share(self, share: int) -> None:
        needed = int(self._cells.tiles.num_rows.max()) * self._dataset.row_nbytes
        if needed > share:
            logger.warning(
                "a worker may keep %s of decoded chunks, and windows that start in one of them need up to %s: chunks "
                "will be decoded again and again; raise memory_budget, lower most_workers, or use WindowLoader",
                human_nbytes(share),
                human_nbytes(needed),
            )


def _is_readable(state: object, total: int) -> bool:
    if not isinstance(state, Mapping) or state.get("format") != STATE_FORMAT:
        return False
    counts = [state.get(name, -1) for name in ("round_steps", "seed", "epoch", "windows_consumed")]
    return all(type(count) is int and count >= 0 for count in counts) and counts[-1] <= total


def _refuse(what: str, expected: str, got: str, fix: str) -> None:
    raise ConfigError(describe(what, where="load_state_dict", expected=expected, got=got, fix=fix))
