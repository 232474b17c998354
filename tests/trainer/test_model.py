"""The model's shapes, its forget gate, its seed."""

import pytest
import torch

from headrace.schemas.errors import ConfigError
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig

CONFIG = ModelConfig(num_inputs=3, num_statics=2, hidden_size=4, num_targets=2, dropout=0.0)


def test_the_last_target_steps_are_predicted():
    model = build_model(CONFIG, seed=0).eval()
    x, static = torch.randn(5, 7, 3), torch.randn(5, 2)
    assert model(x, static, 3).shape == (5, 3, 2)
    assert torch.equal(model(x, static, 3)[:, -1:], model(x, static, 1))


def test_statics_matter_and_may_be_absent():
    model = build_model(CONFIG, seed=0).eval()
    x = torch.randn(2, 7, 3)
    assert not torch.equal(model(x, torch.zeros(2, 2)), model(x, torch.ones(2, 2)))
    bare = build_model(ModelConfig(num_inputs=3, num_statics=0, hidden_size=4, num_targets=1, dropout=0.0))
    assert bare(x, torch.empty(2, 0)).shape == (2, 1, 1)


def test_the_forget_gate_starts_open():
    lstm = build_model(CONFIG, seed=0).lstm
    assert torch.equal((lstm.bias_ih_l0 + lstm.bias_hh_l0)[4:8], torch.full((4,), 3.0))


def test_a_seed_fixes_the_weights_and_leaves_the_global_generator_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, second = build_model(CONFIG, seed=1), build_model(CONFIG, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.head.weight, build_model(CONFIG, seed=2).head.weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must lie in"),
        ({"num_inputs": 0, "num_statics": 0}, "at least one input or static"),
    ],
)
def test_an_impossible_shape_is_refused(change, message):
    shape = {"num_inputs": 3, "num_statics": 2, "hidden_size": 4, "num_targets": 2, "dropout": 0.0}
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**{**shape, **change})
