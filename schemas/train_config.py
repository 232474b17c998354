"""The ``train`` section of the configuration: the model and its optimisation."""

from typing import Annotated, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from headrace.schemas.section import Section

ModelKind = Literal["lstm", "ea_lstm"]
LossName = Literal["nse", "rmse", "mse", "mae", "quantile"]
MEDIAN = 0.5
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class TrainConfig(Section):
    """The model and its optimisation."""

    model: ModelKind = "lstm"
    hidden_size: PositiveInt = 256
    train_epochs: PositiveInt = 30
    learning_rate: PositiveFloat = 1.0e-3
    learning_rate_schedule: dict[NonNegativeInt, PositiveFloat] = Field(default_factory=dict)
    """Epoch (counted from 0) → learning rate from that epoch on."""
    learning_rate_decay: Literal["none", "cosine"] = "none"
    """``cosine``: along half a cosine, batch by batch, from ``learning_rate`` to ``final_learning_rate``."""
    final_learning_rate: NonNegativeFloat = 0.0
    warmup_epochs: NonNegativeFloat = 0.0
    """Epochs, or part of one, in which the learning rate grows from 0 in proportion to the windows served."""
    loss: LossName = "nse"
    quantiles: tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...] = QUANTILES
    """What ``loss: quantile`` predicts of each target; the median among them is the prediction in evaluation."""
    target_weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Target → its weight in the loss; 1 where not named."""
    dropout: float = Field(default=0.4, ge=0.0, lt=1.0)
    initial_forget_bias: float = 3.0
    clip_gradient_norm: PositiveFloat | None = 1.0
    early_stopping_epochs: PositiveInt | None = None
    checkpoint_seconds: PositiveFloat = 300.0
    """Longest time between two mid-epoch checkpoints."""
    device: str = "auto"
    amp: bool | Literal["bf16", "fp16"] = False
    """Compute in bfloat16 (``true`` or ``bf16``) or float16 where torch sees fit; weights and loss stay float32."""

    tensorboard: bool = False
    """Also write each epoch's numbers for TensorBoard, into the run folder."""

    @field_validator("quantiles", mode="before")
    @classmethod
    def _null_is_default(cls, value: object) -> object:
        return QUANTILES if value is None else value

    @field_validator("quantiles")
    @classmethod
    def _median_is_among_them(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if MEDIAN not in value or list(value) != sorted(set(value)):
            msg = "expected rising numbers between 0 and 1 with 0.5, the median, among them"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _rates_fit_each_other(self) -> "TrainConfig":
        if self.learning_rate_decay != "none" and self.learning_rate_schedule:
            msg = "learning_rate_schedule and learning_rate_decay both set the learning rate: give one"
            raise ValueError(msg)
        if self.final_learning_rate > self.learning_rate:
            msg = f"final_learning_rate is {self.final_learning_rate:g}: expected at most {self.learning_rate:g}"
            raise ValueError(f"{msg}, the learning_rate")
        if self.final_learning_rate and self.learning_rate_decay == "none":
            msg = "final_learning_rate is where a decay ends, and there is none: set learning_rate_decay: cosine too"
            raise ValueError(msg)
        if self.warmup_epochs and self.warmup_epochs >= self.train_epochs:
            msg = f"warmup_epochs is {self.warmup_epochs:g}: expected fewer than train_epochs, {self.train_epochs}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _nothing_is_given_for_nothing(self) -> "TrainConfig":
        """Refuse settings that another one makes meaningless; their defaults, which a run's own file has, are none."""
        if self.quantiles != QUANTILES and self.loss != "quantile":
            msg = f"quantiles is what loss: quantile predicts, and loss is {self.loss}: set loss: quantile too, or "
            raise ValueError(msg + "leave quantiles out (--set train.quantiles=null)")
        first, default = self.learning_rate_schedule.get(0), type(self).model_fields["learning_rate"].default
        if first is not None and self.learning_rate not in (first, default):
            msg = f"learning_rate_schedule begins at epoch 0 with {first:g}, so that learning_rate, "
            raise ValueError(f"{msg}{self.learning_rate:g}, is never used: give one")
        return self

    @property
    def predicted_quantiles(self) -> tuple[float, ...]:
        """Quantiles that the model predicts of each target; none where it predicts one number."""
        return self.quantiles if self.loss == "quantile" else ()
