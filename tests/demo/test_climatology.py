"""The demo's climatology is that of a slow, obvious reading of the stores."""

import numpy as np
import pytest
import zarr

from build_here import build_here
from headrace.demo.climatology import climatology_scores
from headrace.loader import open_index
from synthetic import write_store


def days(start: str, stop: str) -> np.ndarray:
    return np.arange(np.datetime64(start), np.datetime64(stop))


def test_training_years_alone_predict_the_test_year(tmp_path):
    # Values grow by 1 a day and by 4096 from basin to basin.
    lost = np.zeros((2, 1461), dtype=bool)
    lost[1, 100:200] = True
    store = write_store(
        tmp_path / "s.zarr", basins=2, steps=1461, variables=("rain", "flow"), missing={"flow": lost}, chunks=(1, 400)
    )
    config = {
        "datasets": {
            "one": {
                "timeseries": str(store.path),
                "t_range_train": ["2000-01-01", "2001-12-31"],
                "t_range_test": ["2002-01-01", "2002-12-31"],
                "variables": {"relevant": ["rain"], "target": ["flow"]},
            }
        },
        "window": {"hindcast_length": 30},
        "sampling": {"max_batches_per_epoch": 1},
    }
    truth = store.truth["flow"].astype(np.float64)
    time = days("2000-01-01", "2004-01-01")
    day = (time - time.astype("datetime64[Y]").astype("datetime64[D]")).astype(int) + 1
    test = (time >= np.datetime64("2002-01-01")) & (time < np.datetime64("2003-01-01"))
    # A prediction exists on three days of four: on those the model is scored, and so is the climatology.
    predicted = test & (np.arange(1461) % 4 != 0)
    nse = []
    for flow in truth:
        past = flow.copy()
        past[time >= np.datetime64("2002-01-01")] = np.nan
        expected = []
        for d in day[predicted]:
            distance = np.minimum((day - d) % 366, (d - day) % 366)
            near = past[(distance <= 7) & ~np.isnan(past)]
            expected.append(near.mean() if near.size else np.nanmean(past))
        observed = flow[predicted]
        nse.append(1 - ((expected - observed) ** 2).sum() / ((observed - observed.mean()) ** 2).sum())

    group = zarr.open_group(tmp_path / "predictions.zarr", mode="w", zarr_format=3).create_group("one")
    for kind, values in (("sim", np.where(predicted, 1.0, np.nan)), ("obs", np.where(predicted, truth, np.nan))):
        group.create_array(f"flow_{kind}", data=np.broadcast_to(values, truth.shape).astype(np.float32))
    with open_index(build_here(config, tmp_path / "index")) as index:
        found = climatology_scores(index, tmp_path / "predictions.zarr")
    assert found["one", "flow"] == pytest.approx(np.median(nse), rel=1e-4)
    assert found["", "flow"] == found["one", "flow"]
