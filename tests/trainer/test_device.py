"""A device is what its name says, or an error that says what there is."""

import pytest

from headrace.schemas.errors import ConfigError
from headrace.trainer.device import choose_device


@pytest.mark.parametrize(("available", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_a_gpu_where_there_is_one(monkeypatch, available, expected):
    monkeypatch.setattr("torch.cuda.is_available", lambda: available)
    assert choose_device("auto").type == expected


def test_a_named_gpu_is_never_replaced_by_the_cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="no GPU"):
        choose_device("cuda:0")


def test_an_unknown_name_is_refused():
    with pytest.raises(ConfigError, match="abacus"):
        choose_device("abacus")
