"""The shape of a model as a small record, so that a checkpoint can build it again."""

from dataclasses import dataclass

from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.train_config import MEDIAN, ModelKind, TrainConfig
from headrace.trainer.protocols import Loader


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Everything needed to build a model.

    Parameters
    ----------
    kind
        ``lstm`` or ``ea_lstm``.
    num_inputs, num_statics, num_targets
        Vx, Vs (may be 0 for an LSTM) and Vy.
    hidden_size
        Width of the LSTM.
    dropout
        Share of the LSTM's outputs set to 0 in training, before the head; in [0, 1).
    initial_forget_bias
        Bias of the forget gate at the start. 3 keeps the memory open, which Kratzert et al. (2018,
        https://doi.org/10.5194/hess-22-6005-2018) and neuralhydrology use for year-long windows.
    quantiles
        Quantiles predicted of each target, the median among them; none where the model predicts one number.
    """

    kind: ModelKind = "lstm"
    num_inputs: int
    num_statics: int
    hidden_size: int
    num_targets: int
    dropout: float
    initial_forget_bias: float = 3.0
    quantiles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a model without inputs, outputs or width, and an EA-LSTM without statics."""
        for name, least in (("num_inputs", 0), ("num_statics", 0), ("hidden_size", 1), ("num_targets", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.num_inputs + self.num_statics == 0:
            raise ConfigError("a model needs at least one input or static variable, got none of either")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")
        if self.quantiles and MEDIAN not in self.quantiles:
            raise ConfigError(f"quantiles must hold 0.5, the median, got {self.quantiles}")
        if self.kind == "ea_lstm" and not (self.num_statics and self.num_inputs):
            raise ConfigError(
                describe(
                    "an EA-LSTM needs statics, which open its input gate, and inputs",
                    where="train.model: ea_lstm",
                    expected="at least one variable under variables.constant, and one under variables.relevant",
                    got=f"{self.num_statics} statics and {self.num_inputs} inputs",
                    fix="name them and the data sets' attributes stores, or use train.model: lstm",
                )
            )

    @property
    def num_outputs(self) -> int:
        """Numbers that the head predicts for a step: Vy, or Vy × Q with quantiles."""
        return self.num_targets * max(len(self.quantiles), 1)


def model_config_for(loader: Loader, settings: TrainConfig) -> ModelConfig:
    """Return the shape of the model that a configuration trains on what a loader serves."""
    return ModelConfig(
        kind=settings.model,
        num_inputs=len(loader.x_names),
        num_statics=len(loader.static_names),
        num_targets=len(loader.y_names),
        hidden_size=settings.hidden_size,
        dropout=settings.dropout,
        initial_forget_bias=settings.initial_forget_bias,
        quantiles=settings.predicted_quantiles,
    )
