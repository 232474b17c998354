"""A data set that slices an ``xarray.Dataset`` per window, as many write it: from the store, or loaded before."""

from typing import Any

import numpy as np
import torch
import xarray as xr
from rivals.job import Clock, Job, Row, Windows, by_batch, by_sample, run, serve


class SlicedDataset(Windows):
    """One ``isel`` per window.

    Parameters
    ----------
    data
        From :func:`open_store`.
    names
        Inputs, then the target.
    length
        Input steps of a window.
    """

    def __init__(self, data: xr.Dataset, names: list[str], length: int) -> None:
        super().__init__(data.sizes["basin"], data.sizes["time"], length)
        self._data, self._names = data, names

    def __getitem__(self, item: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return x float32 [L, V] and y float32 [1]."""
        basin, steps = self.place(item)
        return stacked(self._data.isel(basin=basin, time=steps), self._names)


def stacked(window: Any, names: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a window's inputs side by side, and the last step of its target."""
    if "x" in window:
        return torch.from_numpy(window["x"].values), torch.from_numpy(window["y"].values[-1:])
    x = np.stack([window[name].values for name in names[:-1]], axis=-1)
    y = window[names[-1]].values[-1:]
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.float32))


def open_store(job: Job) -> xr.Dataset:
    """Open the store without Dask.

    With ``in_memory`` all of it is read and laid out as a careful user would: float32, the inputs ``x`` side by side
    [basin, time, input], so that a window is one slice of it and one of the target ``y``.
    """
    names = job["names"]
    data = xr.open_zarr(job["store"], consolidated=False, chunks=None)[names]
    if not job["settings"]["in_memory"]:
        return data
    loaded = data.astype(np.float32).load()
    x = np.stack([loaded[name].values for name in names[:-1]], axis=-1)
    return xr.Dataset({"x": (("basin", "time", "input"), x), "y": loaded[names[-1]].variable})


def side(job: Job) -> Row:
    """Serve windows in random order."""
    clock = Clock()
    dataset = SlicedDataset(open_store(job), job["names"], job["length"])
    if job["settings"]["in_memory"]:
        loader = by_batch(dataset, job["batch_size"], job["settings"]["workers"])
        return serve(loader, lambda batch: len(batch[0]), job["seconds"], clock)
    return serve(by_sample(dataset, len(dataset), job["batch_size"]), int, job["seconds"], clock)


if __name__ == "__main__":
    run(side)
