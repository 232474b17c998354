"""In which number format the model computes: float32, or under autocast bfloat16 or float16."""

import logging
from dataclasses import dataclass

import torch

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.train_config import TrainConfig
from headrace.trainer.model_config import ModelConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Precision:
    """Number format of the forward pass. Weights, head, loss and the optimiser are float32 with each.

    Parameters
    ----------
    device_type
        ``cpu`` or ``cuda``.
    dtype
        ``torch.bfloat16``, ``torch.float16``, or None for float32.
    """

    device_type: str
    dtype: torch.dtype | None = None

    def autocast(self) -> torch.autocast:
        """Return the context in which the model is called."""
        on = self.dtype is not None
        return torch.autocast(self.device_type, dtype=self.dtype or torch.bfloat16, enabled=on)

    def scaler(self) -> torch.amp.GradScaler:
        """Return what keeps small float16 gradients from becoming 0; it does nothing for other formats."""
        return torch.amp.GradScaler(self.device_type, enabled=self.dtype is torch.float16)


def choose_precision(settings: TrainConfig, shape: ModelConfig, device: torch.device | str) -> Precision:
    """Return the configured precision.

    Parameters
    ----------
    settings
        ``amp`` decides.
    shape
        The model; torch has not every layer in every format.
    device
        Where it computes.

    Raises
    ------
    ConfigError
        torch cannot compute this model in this format there.
    """
    device = torch.device(device)
    if settings.amp is False:
        return Precision(device.type)
    precision = Precision(device.type, torch.float16 if settings.amp == "fp16" else torch.bfloat16)
    problem = _problem(precision, shape, device)
    if problem is not None:
        raise ConfigError(
            describe(
                f"torch cannot compute this model in {'float16' if settings.amp == 'fp16' else 'bfloat16'} here",
                where=f"train.amp: {settings.amp}, on {device}",
                expected=f"a format that torch {torch.__version__} has for the model {shape.kind} on this device",
                got=problem,
                fix="use --no-amp" if settings.amp != "fp16" else "use --amp (bfloat16), --no-amp, or a GPU",
            )
        )
    return precision


def evaluation_precision(settings: TrainConfig, shape: ModelConfig, device: torch.device | str) -> Precision:
    """Return the precision of the training, or float32 with a warning where this device lacks it."""
    try:
        return choose_precision(settings, shape, device)
    except ConfigError as error:
        logger.warning("computing in float32 instead: %s", str(error).splitlines()[0])
        return Precision(torch.device(device).type)


def _problem(precision: Precision, shape: ModelConfig, device: torch.device) -> str | None:
    """Try one window of two steps; return torch's complaint."""
    if device.type == "cuda" and precision.dtype is torch.bfloat16 and not torch.cuda.is_bf16_supported():
        return f"{torch.cuda.get_device_name(device)} without bfloat16"
    layer = torch.nn.LSTM(2, 2) if shape.kind == "lstm" else torch.nn.Linear(2, 2)
    try:
        with precision.autocast(), torch.random.fork_rng(devices=[]):
            layer.to(device)(torch.zeros(2, 1, 2, device=device))
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None
