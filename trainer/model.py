"""The sequence model: one LSTM over all basins, statics joined at the input.

Inputs `[B, L, Vx]` and statics `[B, Vs]` go in, normalised targets `[B, P, Vy]` of the last P steps come out. The shape
of the model is a small record, so that a checkpoint can build it again.

Letters: B batch, L input steps, P target steps, Vx inputs, Vs statics, Vy targets.
"""

from dataclasses import asdict, dataclass

import torch
from torch import nn

from headrace.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Everything needed to build an :class:`LSTMModel`.

    Parameters
    ----------
    num_inputs, num_statics, num_targets
        Vx, Vs (may be 0) and Vy.
    hidden_size
        Width of the LSTM.
    dropout
        Share of the LSTM's outputs set to 0 in training, before the head; in [0, 1).
    initial_forget_bias
        Bias of the forget gate at the start. 3 keeps the memory open, which Kratzert et al. (2018,
        https://doi.org/10.5194/hess-22-6005-2018) and neuralhydrology use for year-long windows.
    """

    num_inputs: int
    num_statics: int
    hidden_size: int
    num_targets: int
    dropout: float
    initial_forget_bias: float = 3.0

    def __post_init__(self) -> None:
        """Refuse a model without inputs, outputs or width."""
        for name, least in (("num_inputs", 0), ("num_statics", 0), ("hidden_size", 1), ("num_targets", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.num_inputs + self.num_statics == 0:
            raise ConfigError("a model needs at least one input or static variable, got none of either")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")


class LSTMModel(nn.Module):
    """LSTM with a linear head on the last steps.

    Parameters
    ----------
    num_inputs, num_statics, hidden_size, num_targets, dropout, initial_forget_bias
        See :class:`ModelConfig`.

    Notes
    -----
    The statics are repeated over time and concatenated with the inputs: `torch.nn.LSTM` takes no other way in, and the
    copy is a thousandth of the LSTM's own time (2 ms against 3 s for 256 × 365 × 35, forward and backward, one core).
    """

    def __init__(
        self,
        num_inputs: int,
        num_statics: int,
        hidden_size: int,
        num_targets: int,
        dropout: float,
        initial_forget_bias: float = 3.0,
    ) -> None:
        super().__init__()
        self.config = ModelConfig(
            num_inputs=num_inputs,
            num_statics=num_statics,
            hidden_size=hidden_size,
            num_targets=num_targets,
            dropout=dropout,
            initial_forget_bias=initial_forget_bias,
        )
        self.lstm = nn.LSTM(num_inputs + num_statics, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(hidden_size, num_targets)
        # PyTorch adds two biases per gate, in the order input, forget, cell, output.
        forget = slice(hidden_size, 2 * hidden_size)
        with torch.no_grad():
            self.lstm.get_parameter("bias_ih_l0")[forget] = 0.0
            self.lstm.get_parameter("bias_hh_l0")[forget] = initial_forget_bias

    def forward(self, x: torch.Tensor, static: torch.Tensor, target_length: int = 1) -> torch.Tensor:
        """Predict the targets of the last steps.

        Parameters
        ----------
        x
            float32 [B, L, Vx], normalised.
        static
            float32 [B, Vs], normalised.
        target_length
            P, how many of the last steps to predict.

        Returns
        -------
        torch.Tensor
            float32 [B, P, Vy], normalised.
        """
        if self.config.num_statics:
            x = torch.cat([x, static[:, None, :].expand(-1, x.shape[1], -1)], dim=2)
        hidden, _ = self.lstm(x)
        predicted: torch.Tensor = self.head(self.dropout(hidden[:, -target_length:]))
        return predicted


def build_model(config: ModelConfig, seed: int | None = None) -> LSTMModel:
    """Build a model; with a seed its first weights depend on nothing else.

    Parameters
    ----------
    config
        Shape of the model.
    seed
        Seeds the first weights and leaves the global generator as it was; None draws from the global generator.
    """
    if seed is None:
        return LSTMModel(**asdict(config))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LSTMModel(**asdict(config))
