"""The learning rate of any batch, from the formulas, and equal to torch's scheduler where both mean the same."""

import math

import pytest
import torch

from headrace.schemas.config_io import parse_config
from headrace.schemas.errors import ConfigError
from headrace.schemas.train_config import TrainConfig
from headrace.trainer.learning_rate import changes_by_batch, learning_rate_at


def test_the_learning_rate_follows_the_schedule():
    config = TrainConfig(learning_rate=0.1, learning_rate_schedule={2: 0.01, 5: 0.001})
    assert [learning_rate_at(config, epoch) for epoch in range(7)] == [0.1, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001]
    assert learning_rate_at(config, 1, 0.9, 1.0) == 0.1
    assert not changes_by_batch(config)


def test_cosine_equals_torchs_annealing():
    config = TrainConfig(train_epochs=8, learning_rate=0.2, learning_rate_decay="cosine", final_learning_rate=0.01)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=32, eta_min=0.01)
    for batch in range(32):
        assert learning_rate_at(config, *divmod(batch / 4, 1)) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert learning_rate_at(config, 7, 1.0) == pytest.approx(0.01)


def test_warm_up_rises_in_proportion_to_the_windows_served():
    config = TrainConfig(train_epochs=4, learning_rate=0.1, warmup_epochs=1.5)
    quarters = [learning_rate_at(config, e, q / 4, (q + 1) / 4) for e in range(3) for q in range(4)]
    assert quarters == pytest.approx([0.1 * min((k + 1) / 6, 1.0) for k in range(12)])
    assert quarters[0] > 0, "no batch is wasted"


def test_cosine_begins_where_the_warm_up_ends():
    config = TrainConfig(train_epochs=5, learning_rate=0.1, learning_rate_decay="cosine", warmup_epochs=1)
    assert learning_rate_at(config, 1) == pytest.approx(0.1)
    assert learning_rate_at(config, 3) == pytest.approx(0.1 * (1 + math.cos(math.pi / 2)) / 2)
    assert learning_rate_at(config, 0, 0.25, 0.5) == pytest.approx(0.05)


def test_warm_up_multiplies_a_schedule():
    config = TrainConfig(train_epochs=5, learning_rate=0.1, learning_rate_schedule={1: 0.04}, warmup_epochs=2)
    assert learning_rate_at(config, 1, 0.25, 0.5) == pytest.approx(0.04 * 0.75)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ({"learning_rate_decay": "cosine", "learning_rate_schedule": {3: 1e-4}}, "both set the learning rate"),
        ({"final_learning_rate": 0.1}, r"final_learning_rate is 0\.1: expected at most 0\.001"),
        ({"final_learning_rate": 0.0001}, "where a decay ends, and there is none: set learning_rate_decay: cosine"),
        ({"warmup_epochs": 30}, "warmup_epochs is 30: expected fewer than train_epochs, 30"),
        ({"learning_rate_decay": "linear"}, "train.learning_rate_decay = 'linear': expected none or cosine"),
        ({"quantiles": [0.1, 0.9]}, "0.5, the median, among them"),
        ({"quantiles": [0.5, 0.1]}, "rising numbers"),
        ({"quantiles": [0.5, 1.0]}, r"train\.quantiles"),
        ({"quantiles": [0.1, 0.5]}, "loss is nse: set loss: quantile too, or leave quantiles out"),
        ({"loss": "mae", "quantiles": [0.5]}, "loss is mae"),
        ({"learning_rate": 0.1, "learning_rate_schedule": {0: 0.2}}, r"learning_rate, 0\.1, is never used"),
        ({"learning_rate_schedule": {-1: 0.2}}, r"learning_rate_schedule\.-1 = -1: expected a number of at least 0"),
        ({"target_weights": {"flwo": 2}}, r"train\.target_weights names flwo: expected some of flow, "),
        ({"target_weights": {"flow": 0}}, r"train\.target_weights\.flow = 0: expected a number above 0"),
        ({"amp": "fp8"}, "train.amp = 'fp8': expected true, false, bf16 or fp16"),
        ({"model": "gru"}, "train.model = 'gru': expected lstm or ea_lstm"),
    ],
)
def test_settings_that_cannot_be_are_refused(train, message):
    data = {"datasets": {"a": {"timeseries": "a.zarr", "variables": {"target": ["flow"]}}}, "train": train}
    with pytest.raises(ConfigError, match=message):
        parse_config(data)


def test_settings_that_a_file_of_all_settings_has_are_no_contradiction():
    data = {"datasets": {"a": {"timeseries": "a.zarr"}}, "train": {"quantiles": None, "learning_rate_schedule": {0: 1}}}
    found = parse_config(data)
    assert found.train.quantiles == TrainConfig().quantiles
    assert parse_config(found.as_dict()) == found
