"""Sequence models over all basins: a recurrent layer, dropout and a linear head on the last steps.

Inputs `[B, L, Vx]` and statics `[B, Vs]` go in, normalised targets of the last P steps come out: `[B, P, Vy]`, or
`[B, P, Vy × Q]` where Q quantiles of each target are predicted, those of the first target first.

Letters: B batch, L input steps, P target steps, Vx inputs, Vs statics, Vy targets, Q quantiles, H hidden size.
"""

import torch
from torch import nn

from headrace.schemas.train_config import MEDIAN
from headrace.trainer.ea_lstm import EALSTM
from headrace.trainer.model_config import ModelConfig


class SequenceModel(nn.Module):
    """What both models have in common.

    Parameters
    ----------
    config
        Shape of the model.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.make_layer()
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.hidden_size, config.num_outputs)

    def make_layer(self) -> None:
        """Make the recurrent layer; its first weights are drawn before the head's."""
        raise NotImplementedError

    def hidden(self, x: torch.Tensor, static: torch.Tensor, steps: int) -> torch.Tensor:
        """Return the recurrent layer's last ``steps`` outputs, float [B, steps, H]."""
        raise NotImplementedError

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
            float32 [B, P, Vy] or [B, P, Vy × Q], normalised. Under autocast too: the 8 bits of a bfloat16 would round a
            flood of 10 standard deviations to the next sixteenth of one.
        """
        hidden = self.dropout(self.hidden(x, static, target_length))
        with torch.autocast(x.device.type, enabled=False):
            predicted: torch.Tensor = self.head(hidden.to(self.head.weight.dtype))
        return predicted

    def central(self, predicted: torch.Tensor) -> torch.Tensor:
        """Return one number for each target: what was predicted, or of quantiles the median; [B, P, Vy]."""
        quantiles = self.config.quantiles
        return predicted[..., quantiles.index(MEDIAN) :: len(quantiles)] if quantiles else predicted


class LSTMModel(SequenceModel):
    """`torch.nn.LSTM`, statics joined to the inputs of every step.

    Notes
    -----
    The statics are repeated over time and concatenated with the inputs: `torch.nn.LSTM` takes no other way in, and the
    copy is a thousandth of the LSTM's own time (2 ms against 3 s for 256 × 365 × 35, forward and backward, one core).
    """

    def make_layer(self) -> None:
        """Make the LSTM, its forget gate open."""
        config, size = self.config, self.config.hidden_size
        self.lstm = nn.LSTM(config.num_inputs + config.num_statics, size, batch_first=True)
        # PyTorch adds two biases per gate, in the order input, forget, cell, output.
        forget = slice(size, 2 * size)
        with torch.no_grad():
            self.lstm.get_parameter("bias_ih_l0")[forget] = 0.0
            self.lstm.get_parameter("bias_hh_l0")[forget] = config.initial_forget_bias

    def hidden(self, x: torch.Tensor, static: torch.Tensor, steps: int) -> torch.Tensor:
        """Return the LSTM's last outputs."""
        if self.config.num_statics:
            x = torch.cat([x, static[:, None, :].expand(-1, x.shape[1], -1)], dim=2)
        hidden: torch.Tensor = self.lstm(x)[0]
        return hidden[:, -steps:]


class EALSTMModel(SequenceModel):
    """Entity-aware LSTM: the statics open its input gate, and do nothing else."""

    def make_layer(self) -> None:
        """Make the entity-aware layer, its forget gate open."""
        config = self.config
        self.ea_lstm = EALSTM(config.num_inputs, config.num_statics, config.hidden_size, config.initial_forget_bias)

    def hidden(self, x: torch.Tensor, static: torch.Tensor, steps: int) -> torch.Tensor:
        """Return the layer's last outputs."""
        hidden: torch.Tensor = self.ea_lstm(x, static, steps)
        return hidden


def build_model(config: ModelConfig, seed: int | None = None) -> SequenceModel:
    """Build a model; with a seed its first weights depend on nothing else.

    Parameters
    ----------
    config
        Shape of the model.
    seed
        Seeds the first weights and leaves the global generator as it was; None draws from the global generator.
    """
    make = EALSTMModel if config.kind == "ea_lstm" else LSTMModel
    if seed is None:
        return make(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(config)
