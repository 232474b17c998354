"""``WindowLoader``: the public loader. What it serves is put together in ``assemble``; here are iteration and state."""

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, Literal, NoReturn, Self

import torch

from headrace.loader.arguments import check_process, opened, whole_number
from headrace.loader.assemble import Engine, assemble, replan
from headrace.loader.batch import Batch
from headrace.loader.catalog import Index
from headrace.loader.device import Transfer, choose_transfer
from headrace.loader.epochs import epoch_totals
from headrace.loader.gather import batches_together
from headrace.loader.joint import Joint
from headrace.loader.notebook import loader_html, loader_line
from headrace.loader.partition import BatchCuts, cut_epoch
from headrace.loader.progress import Progress
from headrace.loader.rounds import RoundQueue
from headrace.loader.served import ServedSplit
from headrace.loader.settings import resolve_settings
from headrace.loader.spec import BasinChoice, resolve_spec
from headrace.loader.state import LoaderState
from headrace.loader.stream import AHEAD, EpochStream
from headrace.loader.world import check_same, resolve_world
from headrace.schemas.config import MissingConfig, NormalizationConfig, SamplingConfig, WindowConfig
from headrace.schemas.windows import WindowSpec

_NOT_SENT = (
    "a WindowLoader has threads and memory that cannot be copied or sent to another process: make one there, from the "
    "index and the same arguments. It reads in threads of its own; for torch's DataLoader there is WindowDataset"
)
_OVER = "this iteration is over: the loader was closed or iterated again"

logger = logging.getLogger(__name__)


class WindowLoader(ServedSplit):
    """Serve shuffled, normalised windows of a split, batch by batch.

    Parameters
    ----------
    index, split
        From :func:`headrace.open_index`; train, valid or test.
    batch_size
        Windows per rank and batch; None takes the index's configuration, as for every argument below that may be None.
    seed, device
        Key of the shuffle, with the epoch; where batches are put.
    memory_budget
        Bytes of decoded rows to hold, such as ``2GiB``; ``auto`` is a quarter of the free memory.
    rank, world_size
        This process's share; None takes torch.distributed's when it is initialised, else 0 and 1.
    window, missing, normalization, sampling
        Sections of the configuration, or mappings of the keys that differ. None of them needs a new index.
    datasets, basins
        Subsets; basins as a list of ids or a mapping data set → ids.
    shuffle
        None shuffles the train split only. Without shuffling windows come in the order (data set, basin, start).
    drop_last
        Leave out a last batch that is not full.
    num_workers
        Reader threads, and as many gather threads; ``auto`` is one per processor, and 0 is 1.
    cache_dir
        Folder in which decoded rows are kept and shared by all processes of this host. Without it rows that do not fit
        the memory budget go to a private file until the loader is closed; with ``off`` their chunks are read again.
    cache_limit
        Bytes that decoded rows may take on disk, such as ``100GiB``; unused ones make room.
    device_memory_budget
        Bytes of a GPU's memory for decoded rows, such as ``8GiB``; None is a quarter of what is free. Windows are
        gathered on the GPU if the split, or the rounds in memory, fit; otherwise batches are copied there ahead of use.
    prefetch_factor
        Rounds read ahead of the one being served. They share the memory budget: more of them are smaller, and mix less.
    cuda_prefetch, cuda_prefetch_batches
        Whether rows or batches come to the GPU ahead of use; batches on their way there where rows do not fit.
    timeout
        Seconds to wait for a batch before an error; None waits for ever unless the configuration says otherwise.
    rank_local
        Every rank serves windows of its own, and reads and holds only those; else each batch is shared out, and every
        rank reads and holds the whole split. The middle of such an epoch continues with the same number of ranks only.
    weights
        Data set → weight for the sampling mode ``weighted_by_dataset``, where they differ from the configuration's.

    Raises
    ------
    ConfigError
        An argument does not exist or fit, or the split has no window.
    SourceError
        A store is gone.
    """

    def __init__(
        self,
        index: Index,
        split: str,
        *,
        batch_size: int | None = None,
        seed: int | None = None,
        device: str | torch.device = "cpu",
        memory_budget: str | int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        window: WindowConfig | WindowSpec | Mapping[str, Any] | None = None,
        missing: MissingConfig | Mapping[str, Any] | None = None,
        normalization: NormalizationConfig | Mapping[str, Any] | None = None,
        sampling: SamplingConfig | Mapping[str, Any] | None = None,
        datasets: Sequence[str] | None = None,
        basins: BasinChoice = None,
        shuffle: bool | None = None,
        drop_last: bool | None = None,
        num_workers: int | Literal["auto"] | None = None,
        cache_dir: str | None = None,
        cache_limit: str | int | None = None,
        device_memory_budget: str | int | None = None,
        prefetch_factor: int | None = None,
        cuda_prefetch: bool | None = None,
        cuda_prefetch_batches: int | None = None,
        timeout: float | None = None,
        rank_local: bool = False,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        world = resolve_world(rank, world_size)
        self.rank, self.world_size = world.rank, world.size
        self._pid = os.getpid()
        self._engine: Engine | None = None
        self._stream: EpochStream | None = None
        self._starting = threading.RLock()
        with Joint(world) as joint:
            settings = self._settings = resolve_settings(
                opened(index).config.loader, batch_size=batch_size, seed=seed, device=device, drop_last=drop_last,
                memory_budget=memory_budget, num_workers=num_workers, cache_dir=cache_dir, cache_limit=cache_limit,
                device_memory_budget=device_memory_budget, prefetch_factor=prefetch_factor, cuda_prefetch=cuda_prefetch,
                cuda_prefetch_batches=cuda_prefetch_batches, timeout=timeout, rank_local=rank_local,
            )  # fmt: skip
            self.split, self.device, self.timeout = split, settings.device, settings.timeout
            self.batch_size, self.drop_last = settings.batch_size, settings.drop_last
            self.num_workers, self._seed = settings.num_workers, settings.seed
            self._spec = resolve_spec(
                index, split=split, window=window, missing=missing, normalization=normalization, sampling=sampling,
                datasets=datasets, basins=basins, shuffle=shuffle, weights=weights,
            )  # fmt: skip
            self.index_digest, self.spec_digest = index.manifest.index_digest, self._spec.digest()
            self.window, self.dataset_ids = self._spec.window, list(self._spec.dataset_ids)
            local = settings.rank_local and world.size > 1
            serving, self._engine = assemble(
                index, self._spec, budget_nbytes=settings.budget_nbytes, num_pools=1 + settings.prefetch_factor,
                agree=joint.of_first, num_workers=settings.num_workers, cache_dir=settings.cache_dir,
                cache_limit_nbytes=settings.cache_limit_nbytes, local=(world.rank, world.size) if local else None,
            )  # fmt: skip
            self._describe(serving)
            world.check_budget(settings.memory_budget, resident=serving.resident)
            world.check_windows(self.num_windows, drop_last=self.drop_last)
            self._transfer = self._choose_transfer()
            each = self.batch_size * (1 if local else world.size)
            self._progress = Progress(epoch_totals(serving, self._spec, each))
            if world.connected:
                facts = {
                    "index": self.index_digest, "settings": self.spec_digest, "seed": self._seed,
                    "batch_size": self.batch_size, "drop_last": self.drop_last, "rank_local": local,
                    "plan": serving.loads if local else self.plan().digest(),
                }  # fmt: skip
                check_same(joint, facts)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch for this rank; exact, and the same for every rank."""
        return len(self._cuts())

    def __iter__(self) -> Iterator[Batch]:
        """Serve the present epoch; when it ends the next one is due.

        After :meth:`load_state_dict` the first iteration serves what remained. After a ``break`` before the last batch
        the next iteration starts the same epoch again. A new iteration ends one that is under way.
        """
        engine, progress = self._checked_engine(), self._progress
        with self._starting:  # threads that begin at once would share buffers
            self.end_iteration()
            cuts, plan = self._cuts(progress.begin()), self.plan()
            if len(cuts) == 0:
                progress.start(progress.epoch + 1)
                return
            self._warn_of(plan, self.batch_size)
            begin, end = cuts.bounds(0)[0], cuts.bounds(len(cuts) - 1)[1]
            rounds = RoundQueue(self._transfer.rounds(engine.rounds), plan, plan.rounds_of(begin, end))
            gatherer = self._transfer.gatherer(
                plan=plan, cuts=cuts, rank=self.rank, rounds=rounds, shape=self._serving.shape,
                together=batches_together(self._serving.shape, self.batch_size, 1 + AHEAD * self.num_workers),
            )  # fmt: skip
            stream = EpochStream(gatherer, rounds, num_threads=self.num_workers, timeout=self.timeout)
            self._stream = stream
        try:
            self._checked_engine()  # another thread may have closed the loader before it knew of this stream
            for number, batch in enumerate(self._transfer.batches(stream)):
                progress.consumed, progress.all_served = cuts.consumed_after(number), number + 1 == len(cuts)
                yield batch
                if self._stream is not stream:
                    raise RuntimeError(_OVER)
            progress.start(progress.epoch + 1)
        except (RuntimeError, CancelledError):
            if self._stream is stream and self._engine is not None:
                raise
            raise RuntimeError(_OVER) from None  # another thread closed it under this one
        finally:
            stream.close()
            if self._stream is stream:
                self._stream = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration serves, from its start; an iteration under way is over."""
        self.end_iteration()
        self._progress.start(whole_number("epoch", epoch, least=0))

    def end_iteration(self) -> None:
        """End an iteration under way: whoever waits for its next batch gets RuntimeError. Any thread may call it."""
        with self._starting:
            stream, self._stream = self._stream, None
            if stream is not None:
                stream.close()

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader stands: batches handed out so far are done, those in flight are not."""
        return LoaderState(
            index_digest=self.index_digest, spec_digest=self.spec_digest, seed=self._seed, epoch=self.epoch,
            round_steps=self._serving.round_steps, **self._progress.windows(),
        ).as_dict()  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state: the next iteration serves exactly the windows that remained.

        Raises
        ------
        ConfigError
            The state belongs to other settings, or to rounds that this loader's memory budget cannot hold.
        StaleIndexError
            The state belongs to another index.
        """
        found = LoaderState.from_dict(state, index_digest=self.index_digest, spec_digest=self.spec_digest)
        engine = self._checked_engine()
        go_on = found.goes_on(self._serving.loads)
        self.end_iteration()
        if go_on and found.round_steps != self._serving.round_steps:
            budget = self._settings.budget_nbytes
            self._serving, self._engine = replan(self._serving, engine, found.round_steps, budget)
            self._transfer.close()
            self._transfer = self._choose_transfer()
        self._seed = found.seed
        self._progress.take(found, go_on=go_on)

    def close(self) -> None:
        """Stop all threads and free the rows; the loader cannot be iterated afterwards."""
        self.end_iteration()
        engine, self._engine = self._engine, None
        if engine is None:
            return
        self._transfer.close()
        engine.readers.shutdown(wait=False, cancel_futures=True)
        engine.reader.give_up()
        if engine.reader.idle(self.timeout):
            engine.readers.shutdown(wait=True)
        else:
            logger.warning("a read is still under way after %s s; its thread is left to itself", self.timeout)

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or sent to another process."""
        raise TypeError(_NOT_SENT)

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the loader."""
        self.close()

    __repr__, _repr_html_ = loader_line, loader_html

    def _cuts(self, first: tuple[int, ...] | None = None) -> BatchCuts:
        return cut_epoch(
            first, self._progress.totals, rank=self.rank, world_size=self.world_size, batch_size=self.batch_size,
            drop_last=self.drop_last,
        )  # fmt: skip

    def _choose_transfer(self) -> Transfer:
        settings, serving = self._settings, self._serving
        return choose_transfer(
            settings.device, budget_nbytes=settings.device_budget_nbytes, prefetch=settings.cuda_prefetch,
            ahead=settings.cuda_prefetch_batches, shape=serving.shape, tiles=serving.tiles,
            round_steps=serving.round_steps, num_pools=serving.num_pools, resident=serving.resident,
        )  # fmt: skip

    def _checked_engine(self) -> Engine:
        if self._engine is None:
            msg = "this WindowLoader is closed"
            raise RuntimeError(msg)
        check_process(self._pid)
        return self._engine
