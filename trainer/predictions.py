"""Observed and simulated values, basin × time, streamed into a Zarr group per data set.

    predictions.zarr/<dataset_id>/<target>_sim, <target>_obs    float32 (basin, time), NaN = none
                                  basin, time                   ids, and CF integers with units and calendar

Zarr format 3, because there an integer axis that holds 0 has no missing value by accident. Rows are buffered a few
basins at a time: windows in the order (data set, basin, start) write every chunk once, any other order gives the same
values with more writing.
"""

import os
import shutil
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.schemas.errors import ConfigError, describe
from headrace.trainer.protocols import TargetUnits
from headrace.trainer.time_axis import TimeAxis

CHUNK_STEPS = 16_384
CHUNK_VALUES = 262_144
BUFFER_NBYTES = 64 * 2**20


class _Block:
    """The rows of some basins of one data set, float32 [Vy, 2, rows, T] (simulated, observed), and what was touched."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        self.values = values
        self.first_step, self.last_step = values.shape[-1], -1


class _Dataset:
    """Arrays of one data set, and how its basins are cut into blocks of whole chunks."""

    def __init__(self, group: zarr.Group, ids: Sequence[str], y_names: Sequence[str], time: TimeAxis) -> None:
        self.num_steps = len(time.values)
        self.chunk_steps = max(1, min(self.num_steps, CHUNK_STEPS))
        self.block_basins = max(1, min(len(ids), CHUNK_VALUES // self.chunk_steps))
        self.num_basins = len(ids)
        self.num_targets = len(y_names)
        self.arrays = [
            group.create_array(
                f"{name}_{kind}",
                shape=(len(ids), self.num_steps),
                chunks=(self.block_basins, self.chunk_steps),
                dtype="float32",
                fill_value=float("nan"),
                dimension_names=["basin", "time"],
            )
            for name in y_names
            for kind in ("sim", "obs")
        ]

    @property
    def block_nbytes(self) -> int:
        """Bytes of a block."""
        return 4 * 2 * self.num_targets * self.block_basins * self.num_steps

    def rows(self, block: int) -> slice:
        """Return the basins of a block."""
        return slice(block * self.block_basins, min((block + 1) * self.block_basins, self.num_basins))

    def read(self, block: int) -> NDArray[np.float32]:
        """Return what is stored of a block."""
        rows = self.rows(block)
        stored = [np.asarray(array[rows]) for array in self.arrays]
        return np.stack(stored).reshape(self.num_targets, 2, -1, self.num_steps)

    def empty(self, block: int) -> NDArray[np.float32]:
        """Return a block without values."""
        rows = self.rows(block)
        return np.full((self.num_targets, 2, rows.stop - rows.start, self.num_steps), np.nan, np.float32)

    def write(self, block: int, content: _Block) -> None:
        """Store the chunks of a block that were touched."""
        start = content.first_step // self.chunk_steps * self.chunk_steps
        stop = min((content.last_step // self.chunk_steps + 1) * self.chunk_steps, self.num_steps)
        flat = content.values.reshape(len(self.arrays), -1, self.num_steps)
        for array, values in zip(self.arrays, flat, strict=True):
            array[self.rows(block), start:stop] = values[:, start:stop]


class PredictionWriter:
    """Writes predictions; use as a context manager: the store appears at its place when the block ends well.

    Parameters
    ----------
    path
        The Zarr store; replaced when it exists.
    dataset_ids, basin_ids, y_names
        As the loader has them.
    times
        Data set → the whole time axis of its store; steps count from its first value.
    units
        (Data set, target) → unit, written as the arrays' attribute.

    Raises
    ------
    ConfigError
        A data set has no time axis.
    """

    def __init__(
        self,
        path: Path,
        dataset_ids: Sequence[str],
        basin_ids: Sequence[Sequence[str]],
        y_names: Sequence[str],
        times: Mapping[str, TimeAxis],
        units: TargetUnits | None = None,
    ) -> None:
        missing = [name for name in dataset_ids if name not in times]
        if missing:
            raise ConfigError(
                describe(
                    "predictions need the time axis of every data set",
                    where=", ".join(missing),
                    expected=f"a time axis for {', '.join(dataset_ids)}",
                    got=f"axes for {', '.join(times) or 'none'}",
                    fix="pass times for these data sets too",
                )
            )
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._partial.parent.mkdir(parents=True, exist_ok=True)
        self._root = zarr.open_group(self._partial, mode="w", zarr_format=3)
        self._dataset_ids = dataset_ids
        self._datasets = []
        for name, ids in zip(dataset_ids, basin_ids, strict=True):
            group = self._root.create_group(name)
            dataset = _Dataset(group, ids, y_names, times[name])
            _write_coordinates(group, ids, times[name])
            for target in y_names:
                for kind, long_name in (("sim", "simulated"), ("obs", "observed")):
                    attributes: dict[str, Any] = {"long_name": f"{long_name} {target}"}
                    if units and (name, target) in units:
                        attributes["units"] = units[name, target]
                    group[f"{target}_{kind}"].update_attributes(attributes)
            self._datasets.append(dataset)
        self._open: OrderedDict[tuple[int, int], _Block] = OrderedDict()
        self._written: set[tuple[int, int]] = set()

    def add(
        self,
        dataset: NDArray[np.integer],
        basin: NDArray[np.integer],
        step: NDArray[np.integer],
        sim: NDArray[np.floating],
        obs: NDArray[np.floating],
    ) -> None:
        """Add one step of B windows.

        Parameters
        ----------
        dataset, basin
            int [B], positions as in the loader.
        step
            int [B], steps of the data set's time axis.
        sim, obs
            float [B, Vy], physical units, NaN in ``obs`` = missing.

        Raises
        ------
        ConfigError
            A step lies outside its data set's time axis.
        """
        per_block = np.array([d.block_basins for d in self._datasets])[dataset]
        block = basin // per_block
        cells = np.stack([sim, obs], axis=1)
        for d, k in np.unique(np.stack([dataset, block], axis=1), axis=0).tolist():
            chosen = (dataset == d) & (block == k)
            steps = step[chosen]
            if steps.min() < 0 or steps.max() >= self._datasets[d].num_steps:
                raise ConfigError(
                    describe(
                        "a window lies outside the time axis given for its data set",
                        where=self._dataset_ids[d],
                        expected=f"steps 0 to {self._datasets[d].num_steps - 1}",
                        got=f"steps {steps.min()} to {steps.max()}",
                        fix="pass the whole time axis of the store, not only the split's",
                    )
                )
            content = self._block(d, k)
            rows = basin[chosen] - k * self._datasets[d].block_basins
            content.values[:, :, rows, steps] = np.moveaxis(cells[chosen], 0, -1).swapaxes(0, 1)
            content.first_step = min(content.first_step, int(steps.min()))
            content.last_step = max(content.last_step, int(steps.max()))

    def __enter__(self) -> "PredictionWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                while self._open:
                    self._write_oldest()
                self._finish()
        finally:
            shutil.rmtree(self._partial, ignore_errors=True)

    def _block(self, dataset: int, block: int) -> _Block:
        key = (dataset, block)
        if key in self._open:
            self._open.move_to_end(key)
            return self._open[key]
        nbytes = self._datasets[dataset].block_nbytes
        while self._open and nbytes + sum(held.values.nbytes for held in self._open.values()) > BUFFER_NBYTES:
            self._write_oldest()
        source = self._datasets[dataset]
        self._open[key] = _Block(source.read(block) if key in self._written else source.empty(block))
        return self._open[key]

    def _write_oldest(self) -> None:
        key, content = self._open.popitem(last=False)
        self._datasets[key[0]].write(key[1], content)
        self._written.add(key)

    def _finish(self) -> None:
        with warnings.catch_warnings():
            # Without consolidated metadata xarray warns at every opening; zarr warns once that it is young in format 3.
            warnings.filterwarnings("ignore", message="Consolidated metadata", category=UserWarning)
            for name in self._dataset_ids:
                zarr.consolidate_metadata(self._root.store, path=name)
            zarr.consolidate_metadata(self._root.store)
        if self._path.exists():
            shutil.rmtree(self._path)
        self._partial.rename(self._path)


def _write_coordinates(group: zarr.Group, ids: Sequence[str], time: TimeAxis) -> None:
    basin = group.create_array("basin", shape=(len(ids),), dtype=str, dimension_names=["basin"])
    basin[:] = np.array(ids, dtype=object)
    group.create_array(
        "time",
        data=time.values.astype(np.int64),
        dimension_names=["time"],
        attributes={"units": time.units, "calendar": time.calendar},
    )
