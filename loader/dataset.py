"""``WindowDataset``: windows by number, for those who keep PyTorch's own ``DataLoader`` and its worker processes.

Tables are read in the process that makes it. What goes to a worker is arrays and locators; every process opens the
stores itself and keeps the chunks it used last.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import zarr
from numpy.typing import NDArray
from torch.utils.data import Dataset, default_collate, get_worker_info

from headrace.loader.batch import Batch
from headrace.loader.blocks import BlockCache, block_grids
from headrace.loader.budget import memory_budget_nbytes
from headrace.loader.catalog import Index
from headrace.loader.content import load_content
from headrace.loader.gather_windows import Template, WindowGather, WindowTable
from headrace.loader.normalize import scales_of
from headrace.loader.read_plan import open_dataset, slot_columns
from headrace.loader.sources import DatasetSource
from headrace.loader.spec import BasinChoice, resolve_spec
from headrace.open_store import opening_once
from headrace.schemas.config import MissingConfig, NormalizationConfig, WindowConfig
from headrace.schemas.windows import WindowSpec

Item = dict[str, torch.Tensor]
"""One window: x [L, Vx], static [Vs], y [P, Vy], and dataset, basin and start as int32 scalars."""


class WindowItems(Sequence[Item]):
    """The windows of a batch, gathered together: ``batch`` is all of them, an item one of them (views)."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.batch)

    def __getitem__(self, place: int) -> Item:  # type: ignore[override]  # no slices: the batch serves whoever wants many
        """Return one window."""
        return {name: getattr(self.batch, name)[place] for name in Batch.__slots__}


class WindowDataset(Dataset[Item]):
    """Serve windows of a split by number, in the order data set, basin, start.

    Windows hold exactly what :class:`headrace.WindowLoader` serves. Give it to ``torch.utils.data.DataLoader`` with a
    :class:`headrace.ChunkBatchSampler`, ``collate_fn=dataset.collate`` and, with workers,
    ``multiprocessing_context="forkserver"`` or ``"spawn"``.

    Parameters
    ----------
    index
        From :func:`headrace.open_index`; it may be closed afterwards.
    split
        train, valid or test.
    window, missing, normalization
        Sections of the configuration, or mappings of the keys that differ; None takes the index's.
    datasets, basins
        Subsets; basins as a list of ids or a mapping data set → ids.
    memory_budget
        Bytes of decoded chunks that all worker processes keep together, such as ``2GiB``; ``auto`` is a quarter of the
        free memory. Each worker takes an equal share.

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
        window: WindowConfig | WindowSpec | Mapping[str, Any] | None = None,
        missing: MissingConfig | Mapping[str, Any] | None = None,
        normalization: NormalizationConfig | Mapping[str, Any] | None = None,
        datasets: Sequence[str] | None = None,
        basins: BasinChoice = None,
        memory_budget: str | int | None = None,
    ) -> None:
        spec = resolve_spec(
            index, split=split, window=window, missing=missing, normalization=normalization, datasets=datasets,
            basins=basins,
        )  # fmt: skip
        with opening_once(index.stores):
            content = load_content(index, spec)
            opened = [open_dataset(source) for source in content.sources]
        self.split, self.window, self.dataset_ids = split, spec.window, list(spec.dataset_ids)
        self.x_names, self.static_names, self.y_names = content.x_names, content.static_names, content.y_names
        self.basin_ids = [np.array(source.basin_ids, dtype=np.str_) for source in content.sources]
        self.index_digest, self.spec_digest = index.manifest.index_digest, spec.digest()
        budget = index.config.loader.memory_budget if memory_budget is None else memory_budget
        self.memory_budget_nbytes = memory_budget_nbytes(budget)
        self.layout, self.table = content.layout, WindowTable.of(content.windows, content.layout)
        self._masks, self._x_scaling, self._y_scaling = content.masks, content.x_scaling, content.y_scaling
        x_rows, y_rows = (np.zeros((len(content.sources), len(n)), np.float32) for n in (self.x_names, self.y_names))
        for number, source in enumerate(content.sources):
            x_rows[number], y_rows[number] = _lacking_inputs(source, masks=content.masks), np.nan
        self._template = Template(window=spec.window, x_rows=x_rows, y_rows=y_rows, statics=content.statics)
        # Names of basins are not needed to read, and lists of them are what makes worker processes large.
        self._sources = [replace(source, basin_ids=[], splits={}) for source in content.sources]
        self.grids, self.column = block_grids(opened, self.layout, masks=self._masks), slot_columns(opened, self.layout)
        self._pid = os.getpid()
        self._cache: BlockCache | None = None
        self._gather: WindowGather | None = None

    @property
    def row_nbytes(self) -> int:
        """Bytes of one decoded step."""
        return 4 * (len(self.x_names) + len(self.y_names))

    @property
    def chunks_read(self) -> int:
        """Store chunks that this process has read."""
        return 0 if self._cache is None else self._cache.raw.chunks_read

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.table)

    def __getitem__(self, number: int) -> Item:
        """Return one window.

        Raises
        ------
        IndexError
            There is no such window.
        """
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int] | NDArray[np.int64]) -> WindowItems:
        """Return several windows, gathered together; negative numbers count from the end."""
        wanted, total = np.asarray(numbers, dtype=np.int64), len(self)
        if wanted.size and not -total <= int(wanted.min()) <= int(wanted.max()) < total:
            msg = f"window {int(wanted.min())} … {int(wanted.max())} is outside [0, {total})"
            raise IndexError(msg)
        slot, start = self.table.locate(np.where(wanted < 0, wanted + total, wanted))
        return WindowItems(self._opened()(slot, start))

    def __iter__(self) -> Iterator[Item]:
        """Serve all windows one by one; for a look, not for training."""
        return (self[number] for number in range(len(self)))

    @staticmethod
    def collate(items: Sequence[Item]) -> Batch:
        """Return the batch that :meth:`__getitems__` gathered, without another copy; stack items of any other kind."""
        return items.batch if isinstance(items, WindowItems) else Batch(**default_collate(list(items)))

    def denormalize(self, y: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Return targets [B, P, Vy], normalised targets or predictions of a batch, in canonical units."""
        dataset, basin = batch.dataset.cpu().numpy(), batch.basin.cpu().numpy()
        mean, std = (torch.from_numpy(a).to(y.device) for a in scales_of(self._y_scaling, dataset, basin))
        return y * std[:, None] + mean[:, None]

    def __getstate__(self) -> dict[str, Any]:
        """Return what goes to another process: no handle, no decoded chunk."""
        return {**self.__dict__, "_pid": None, "_cache": None, "_gather": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Belong to the process that unpickled it."""
        self.__dict__.update(state, _pid=os.getpid())

    def _opened(self) -> WindowGather:
        if self._pid != os.getpid():
            msg = (
                "this WindowDataset was made in another process that has read files in threads, and a fork copies the "
                'locks but not the threads: give the DataLoader multiprocessing_context="forkserver" (or "spawn"), and '
                'keep the script\'s own work under if __name__ == "__main__":'
            )
            raise RuntimeError(msg)
        if self._gather is None:
            worker = get_worker_info()
            if worker is not None:  # the processes are the parallelism: threads of each would fight over the processors
                zarr.config.set({"threading.max_workers": 1})
            self._cache = BlockCache(
                datasets=[open_dataset(source) for source in self._sources],
                layout=self.layout,
                grids=self.grids,
                x_scaling=self._x_scaling,
                y_scaling=self._y_scaling,
                masks=self._masks,
                most_nbytes=self.memory_budget_nbytes // (1 if worker is None else worker.num_workers),
            )
            self._gather = WindowGather(self.layout, self.grids, self._cache, self._template)
        return self._gather


def _lacking_inputs(source: DatasetSource, *, masks: bool) -> NDArray[np.float32]:
    """Return what x holds where a data set lacks inputs, float32 [Vx]; the others are overwritten."""
    values = [v.fill_value if v.rule is None else 0.0 for v in source.inputs]
    gone = [float(v.rule is None) for v in source.inputs] if masks else []
    return np.array([*values, *gone], dtype=np.float32)
