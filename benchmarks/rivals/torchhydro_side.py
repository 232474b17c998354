"""torchhydro 0.2.0: ``CloudZarrLazyDataset`` with its chunk-aware sampler, in the ``DataLoader`` its trainer makes."""

import tempfile

from rivals.job import Clock, Job, Row, run, serve
from torch.utils.data import DataLoader

from torchhydro_jobs import load, open_lazy


def side(job: Job) -> Row:
    """Serve batches from one chunk after another, as its sampler orders them."""
    clock = Clock()
    settings, names, warmup = job["settings"], job["names"], job["length"] - 1
    source = {
        "dataset_id": "rival",
        "timeseries_uri": job["store"],
        "basins": job["basin_ids"],
        "periods": {"train": job["period"]},
        "relevant_cols": {name: name for name in names[:-1]},
        "target_cols": {"streamflow": names[-1]},
        "constant_cols": [],
    }
    shape = {"hindcast_length": warmup, "forecast_length": 1, "warmup_length": warmup}
    workers = settings["workers"]
    with tempfile.TemporaryDirectory(dir=job["work_dir"]) as case_dir:
        data = open_lazy(
            [source],
            shape,
            case_dir,
            target_nan_policy="keep",
            worker_cache_size_mb=settings["cache_mb"],
        )
        data._batch_level_dataloader_enabled = True
        sampler = load("cloud_zarr_sampler").CloudZarrChunkBatchSampler(
            data, batch_size=job["batch_size"], worker_affinity_count=max(1, workers)
        )
        ahead = {"prefetch_factor": 2} if workers else {}
        loader = DataLoader(data, batch_sampler=sampler, num_workers=workers, collate_fn=_as_it_is, **ahead)
        return serve(loader, lambda batch: len(batch[1]), job["seconds"], clock)


def _as_it_is(batch: object) -> object:
    return batch


if __name__ == "__main__":
    run(side)
