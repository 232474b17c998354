"""xbatcher's ``MapDataset``, one window per item, over a few basins: it lists every window before it serves one."""

import xarray as xr
from rivals.job import Clock, Job, Row, by_batch, by_sample, run, serve
from rivals.xarray_side import open_store, stacked
from xbatcher import BatchGenerator
from xbatcher.loaders.torch import MapDataset


def side(job: Job) -> Row:
    """Serve windows in random order."""
    clock = Clock()
    settings, names, length = job["settings"], job["names"], job["length"]
    data = open_store(job).isel(basin=slice(settings["basins"]))

    def tensor(window: xr.Dataset) -> object:
        return stacked(window.isel(basin=0), names)

    windows = BatchGenerator(data, input_dims={"basin": 1, "time": length}, input_overlap={"time": length - 1})
    # One generator for inputs and target: with two, every window would be cut out twice.
    dataset = MapPairs(windows, transform=tensor)
    if settings["in_memory"]:
        loader = by_batch(dataset, job["batch_size"], settings["workers"])
        return serve(loader, lambda batch: len(batch[0]), job["seconds"], clock)
    return serve(by_sample(dataset, len(dataset), job["batch_size"]), int, job["seconds"], clock)


class MapPairs(MapDataset):
    """``MapDataset`` whose transform gives x and y of a window at once, which the class itself only takes apart."""

    def __getitem__(self, item: int) -> object:
        """Return x and y."""
        return self.transform(self.X_generator[item])


if __name__ == "__main__":
    run(side)
