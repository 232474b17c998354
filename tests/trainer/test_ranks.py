"""What ranks add up to is what one process would have: losses, gradients, rows; alone a rank talks to nobody."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_loader import FakeBatch, FakeLoader, synthetic_datasets
from headrace.schemas.train_config import TrainConfig
from headrace.schemas.windows import WindowSpec
from headrace.trainer.loss import make_loss
from headrace.trainer.loss_meter import totals_of
from headrace.trainer.model import build_model
from headrace.trainer.model_config import model_config_for
from headrace.trainer.precision import Precision
from headrace.trainer.ranks import Ranks
from headrace.trainer.training_step import TrainingStep

WINDOW = WindowSpec(hindcast_length=4, forecast_length=1, warmup_length=3)
DATASETS = synthetic_datasets(targets=2, missing=0.4)


class Listening(Ranks):
    """One of several ranks, told beforehand what all of them add up to."""

    def __init__(self, size, total):
        super().__init__(0, size)
        object.__setattr__(self, "total", total)

    def add_up(self, values):
        return self.total


class OwnStep(TrainingStep):
    """A step whose model averages no gradients with other ranks: the test does."""

    def __init__(self, model, loss, ranks):
        super().__init__(
            model, torch.optim.SGD(model.parameters(), lr=0.0), loss, target_length=WINDOW.target_length, clip=None,
            precision=Precision("cpu"),
        )  # fmt: skip
        self._ranks = ranks


def gradients(model, loss, batch, ranks):
    OwnStep(model, loss, ranks)(batch)
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(["nse", "rmse", "mse", "mae", "quantile"]),
    cuts=st.lists(st.integers(0, 13), min_size=1, max_size=3).map(sorted),
    weights=st.sampled_from([{}, {"stage": 5.0}]),
)
def test_the_mean_of_the_ranks_gradients_is_that_of_the_whole_batch(name, cuts, weights):
    """However the batch is cut, empty parts and parts without any observed target included."""
    loader = FakeLoader(DATASETS, WINDOW, batch_size=13)
    config = TrainConfig(loss=name, hidden_size=3, dropout=0.0, target_weights=weights)
    loss = make_loss(config, loader)
    model = build_model(model_config_for(loader, config), seed=1)
    batch = next(iter(loader))
    edges = [0, *cuts, 13]
    parts = [FakeBatch(**{n: v[a:b] for n, v in vars(batch).items()}) for a, b in pairwise(edges)]
    with torch.no_grad():
        sums = [totals_of(*loss.add_up(model(p.x, p.static, 2), p), p, Ranks()) for p in parts]
    ranks = Listening(len(parts), torch.stack(sums).sum(0))
    each = [gradients(model, loss, part, ranks) for part in parts]
    torch.testing.assert_close(torch.stack(each).mean(0), gradients(model, loss, batch, Ranks()), rtol=1e-4, atol=1e-6)


def test_a_single_process_asks_nobody():
    alone = Ranks.current()
    assert (alone.rank, alone.size, alone.first) == (0, 1, True)
    values = torch.arange(6.0).reshape(3, 2)
    assert alone.add_up(values) is values
    assert torch.equal(alone.rows(values), values.double())
    assert alone.gather("x") == ["x"]
    assert alone.from_first(lambda: 5) == 5
    assert alone.any(value=True)
    with pytest.raises(ZeroDivisionError):
        alone.from_first(lambda: 1 // 0)
