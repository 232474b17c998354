"""neuralhydrology's ``BaseDataset``, everything in memory, with the ``DataLoader`` that its trainer makes.

Basins come from the store as data frames instead of from NetCDF files, which is the one method that a data set of one's
own has to give.
"""

import tempfile
from pathlib import Path

import pandas as pd
import xarray as xr
from neuralhydrology.datasetzoo.basedataset import BaseDataset
from neuralhydrology.utils.config import Config
from rivals.job import Clock, Job, Row, run, serve
from torch.utils.data import DataLoader


class StoreDataset(BaseDataset):
    """Basins of a store that was read whole."""

    def __init__(self, data: xr.Dataset, config: Config) -> None:
        self._data = data
        super().__init__(config, is_train=True, period="train")

    def _load_basin_data(self, basin: str) -> pd.DataFrame:
        frame = self._data.sel(basin=basin).to_dataframe().drop(columns="basin")
        frame.index.name = "date"
        return frame


def side(job: Job) -> Row:
    """Serve batches in random order."""
    clock = Clock()
    names, settings = job["names"], job["settings"]
    data = xr.open_zarr(job["store"], consolidated=False, chunks=None)[names].load()
    ids = job["basin_ids"][: settings["basins"]]
    data = data.isel(basin=slice(len(ids))).assign_coords(basin=ids)
    with tempfile.TemporaryDirectory(dir=job["work_dir"]) as folder:
        basins = Path(folder) / "basins.txt"
        basins.write_text("\n".join(ids), encoding="utf-8")
        first, last = (pd.Timestamp(day).strftime("%d/%m/%Y") for day in job["period"])
        config = {
            "train_basin_file": str(basins),
            "train_start_date": first,
            "train_end_date": last,
            "train_dir": folder,
            "dynamic_inputs": names[:-1],
            "target_variables": names[-1:],
            "seq_length": job["length"],
            "predict_last_n": 1,
            "loss": "MSE",
            "model": "cudalstm",
            "head": "regression",
            "verbose": 0,
        }
        dataset = StoreDataset(data, Config(config))
        loader = DataLoader(
            dataset,
            batch_size=job["batch_size"],
            shuffle=True,
            num_workers=settings["workers"],
            collate_fn=dataset.collate_fn,
        )
        return serve(loader, lambda batch: len(batch["y"]), job["seconds"], clock)


if __name__ == "__main__":
    run(side)
