"""The ``train`` section of the configuration: the model and its optimisation."""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from headrace.schemas.section import Section


class TrainConfig(Section):
    """The model and its optimisation."""

    hidden_size: PositiveInt = 256
    train_epochs: PositiveInt = 30
    learning_rate: PositiveFloat = 1.0e-3
    learning_rate_schedule: dict[int, PositiveFloat] = Field(default_factory=dict)
    """Epoch (counted from 0) → learning rate from that epoch on."""
    loss: Literal["nse", "rmse"] = "nse"
    dropout: float = Field(default=0.4, ge=0.0, lt=1.0)
    initial_forget_bias: float = 3.0
    clip_gradient_norm: PositiveFloat | None = 1.0
    early_stopping_epochs: PositiveInt | None = None
    checkpoint_seconds: PositiveFloat = 300.0
    """Longest time between two mid-epoch checkpoints."""
    device: str = "auto"
    amp: bool = False
    """Compute in bfloat16 where torch sees fit; weights and loss stay float32."""
