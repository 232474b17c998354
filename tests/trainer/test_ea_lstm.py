"""The EA-LSTM equals a slow reading of the paper's equations, and its statics act through the input gate only."""

import numpy as np
import pytest
import torch

from headrace.schemas.errors import ConfigError
from headrace.trainer.model import build_model
from headrace.trainer.model_config import ModelConfig

SHAPE = ModelConfig(kind="ea_lstm", num_inputs=3, num_statics=2, hidden_size=4, num_targets=2, dropout=0.0)


def layer(model):
    """Weights of the gates as the paper has them: W [H, V], U [H, H], b [H], float64."""
    size = model.config.hidden_size
    values = {name: p.detach().double().numpy() for name, p in model.ea_lstm.named_parameters()}
    cut = {gate: slice(k * size, (k + 1) * size) for k, gate in enumerate("fog")}
    found = {
        gate: (values["input_weight"][:, at].T, values["recurrent_weight"][:, at].T, values["bias"][at])
        for gate, at in cut.items()
    }
    return {**found, "i": (values["static_weight"], None, values["static_bias"])}


def sigma(value):
    return 1.0 / (1.0 + np.exp(-value))


def slow_states(model, x, s):
    """h_1 … h_L of one window: equations 1 to 6 of Kratzert et al. (2019), a step and a gate at a time."""
    gates = layer(model)
    h = c = np.zeros(model.config.hidden_size)
    states = []
    for x_t in x:
        i = sigma(gates["i"][0] @ s + gates["i"][2])
        f = sigma(gates["f"][0] @ x_t + gates["f"][1] @ h + gates["f"][2])
        g = np.tanh(gates["g"][0] @ x_t + gates["g"][1] @ h + gates["g"][2])
        o = sigma(gates["o"][0] @ x_t + gates["o"][1] @ h + gates["o"][2])
        c = f * c + i * g
        h = o * np.tanh(c)
        states.append(h)
    return np.array(states)


@pytest.mark.parametrize("steps", [1, 3, 9])
def test_the_layer_equals_the_papers_equations(steps):
    model = build_model(SHAPE, seed=0).eval()
    torch.manual_seed(1)
    x, static = 2 * torch.randn(5, 9, 3), 2 * torch.randn(5, 2)
    hidden = model.hidden(x, static, steps)
    expected = [
        slow_states(model, a.double().numpy(), s.double().numpy())[-steps:] for a, s in zip(x, static, strict=True)
    ]
    np.testing.assert_allclose(hidden.detach().numpy(), expected, rtol=2e-5, atol=2e-6)
    weight, bias = model.head.weight.detach().double().numpy(), model.head.bias.detach().double().numpy()
    predicted = model(x, static, steps).detach().numpy()
    np.testing.assert_allclose(predicted, np.array(expected) @ weight.T + bias, rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_differences():
    model = build_model(SHAPE, seed=0).double()
    torch.manual_seed(2)
    x, static = torch.randn(2, 4, 3, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)
    names = [name for name, _ in model.named_parameters()]
    values = tuple(p.detach().requires_grad_() for p in model.parameters())

    def run(*parameters):
        return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x, static, 2))

    assert torch.autograd.gradcheck(run, values)


def test_statics_reach_the_input_gate_only():
    """With the input gate shut nothing enters the memory, whatever the inputs; and statics alone give 0."""
    model = build_model(SHAPE, seed=0).eval()
    with torch.no_grad():
        model.ea_lstm.static_weight.zero_()
        model.ea_lstm.static_bias.fill_(-1e9)
    x = torch.randn(3, 7, 3)
    assert (model.hidden(x, torch.randn(3, 2), 7) == 0).all()
    opened = build_model(SHAPE, seed=0).eval()
    assert not torch.equal(opened(x, torch.zeros(3, 2)), opened(x, torch.ones(3, 2)))


def test_the_forget_gate_starts_open_and_the_seed_decides_the_rest():
    first, again, other = (build_model(SHAPE, seed=seed).ea_lstm for seed in (1, 1, 2))
    assert torch.equal(first.bias[:4], torch.full((4,), 3.0))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.input_weight, other.input_weight)
    assert all(p.abs().max() <= 0.5 for name, p in first.named_parameters() if name != "bias")


def test_a_batch_without_windows_is_one():
    model = build_model(SHAPE, seed=0)
    predicted = model(torch.zeros(0, 5, 3), torch.zeros(0, 2), 2)
    assert predicted.shape == (0, 2, 2)
    predicted.sum().backward()
    assert all((p.grad == 0).all() for p in model.parameters())


def test_under_bfloat16_the_memory_stays_float32():
    """1,000 additions of 0.001 to a memory of 1: in bfloat16 each would be rounded away."""
    model = build_model(
        ModelConfig(kind="ea_lstm", num_inputs=1, num_statics=1, hidden_size=1, num_targets=1, dropout=0.0), seed=0
    )
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        own = model.ea_lstm
        own.bias.copy_(torch.tensor([20.0, 20.0, 0.0]))  # nothing forgotten, all let out
        own.static_bias.fill_(20.0)
        own.input_weight[0, 2] = 1.0
    x = torch.full((1, 1001, 1), 0.001)
    x[0, 0] = 20.0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.hidden(x, torch.zeros(1, 1), 1)
    assert float(torch.atanh(hidden.double().detach())) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("change", [{"num_statics": 0}, {"num_inputs": 0}])
def test_without_statics_or_inputs_it_is_refused(change):
    with pytest.raises(ConfigError, match=r"(?s)EA-LSTM needs statics.*variables\.constant.*train\.model: lstm"):
        ModelConfig(**{"kind": "ea_lstm", "num_inputs": 3, "num_statics": 2, "hidden_size": 4, "num_targets": 1,
                       "dropout": 0.0, **change})  # fmt: skip
