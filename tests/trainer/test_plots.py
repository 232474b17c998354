"""Pictures are drawn for full runs, and for runs with little to show."""

import warnings

import numpy as np
import pytest

from fake_loader import FakeLoader, synthetic_datasets, with_value
from headrace.schemas.windows import WindowSpec
from headrace.trainer.evaluate import evaluate
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig
from headrace.trainer.plots import plot_hydrographs, plot_loss, plot_nse_cdf
from headrace.trainer.run_folder import EpochRow, RunFolder
from headrace.trainer.time_axis import TimeAxis

PNG = b"\x89PNG"


def is_picture(path):
    content = path.read_bytes()
    return content.startswith(PNG) and len(content) > 5_000


@pytest.mark.parametrize("valid", [None, 0.5])
def test_loss_curve(tmp_path, valid):
    folder = RunFolder.create(tmp_path / "run")
    for epoch in range(3):
        folder.record_epoch(
            EpochRow(
                epoch=epoch,
                train_loss=1 / (epoch + 1),
                valid_loss=valid,
                valid_nse_median=valid,
                learning_rate=1e-3,
                samples_per_second=1.0,
                data_wait_seconds=0.0,
                compute_seconds=1.0,
                gpu_util_percent=None,
                seconds=1.0,
            )
        )
    assert is_picture(plot_loss(folder.metrics, folder.plots / "loss.png", "NSE*"))


def evaluated(tmp_path, datasets, unit="mm/day"):
    loader = FakeLoader(datasets, WindowSpec(hindcast_length=5, warmup_length=5), batch_size=32, shuffle=False)
    config = ModelConfig(num_inputs=2, num_statics=1, hidden_size=4, num_targets=1, dropout=0.0)
    times = {
        "set_a": TimeAxis(values=np.arange(40), units="days since 2000-01-01"),
        "set_b": TimeAxis(values=np.arange(40), units="days since 2000-02-01", calendar="360_day"),
    }
    evaluate(build_model(config, seed=0), loader, tmp_path, times=times, units={("set_a", "streamflow"): unit})
    return tmp_path


def test_hydrographs_and_distribution(tmp_path):
    folder = evaluated(tmp_path / "test", synthetic_datasets())
    pictures = plot_hydrographs(folder, tmp_path / "plots")
    assert [path.name for path in pictures] == ["hydrographs_set_a_streamflow.png", "hydrographs_set_b_streamflow.png"]
    assert all(is_picture(path) for path in pictures)
    assert is_picture(plot_nse_cdf(folder / "metrics.csv", tmp_path / "plots" / "nse.png"))


def test_nothing_observed_is_still_a_picture(tmp_path):
    datasets = synthetic_datasets()
    for name in datasets:
        datasets = with_value(datasets, name, y=np.full_like(datasets[name].y, 1.0))
    folder = evaluated(tmp_path / "test", datasets)
    assert plot_hydrographs(folder, tmp_path / "plots") == []
    assert is_picture(plot_nse_cdf(folder / "metrics.csv", tmp_path / "plots" / "nse.png"))


def test_dollar_signs_are_no_formula(tmp_path):
    broken = "$\\frac{$"
    folder = evaluated(tmp_path / "test", synthetic_datasets(), unit=broken)
    assert all(is_picture(path) for path in plot_hydrographs(folder, tmp_path / "plots"))
    metrics = tmp_path / "metrics.csv"
    metrics.write_text((folder / "metrics.csv").read_text().replace("set_a", broken))
    assert is_picture(plot_nse_cdf(metrics, tmp_path / "plots" / "nse.png"))


def test_names_in_a_script_that_the_font_lacks_are_no_warning(tmp_path):
    folder = evaluated(tmp_path / "test", synthetic_datasets())
    metrics = tmp_path / "metrics.csv"
    metrics.write_text((folder / "metrics.csv").read_text().replace("set_a", "天龙川"), encoding="utf-8")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert is_picture(plot_nse_cdf(metrics, tmp_path / "nse.png"))
    assert not seen
