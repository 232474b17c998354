"""What a rank takes part with where its batch does not come: a batch without windows, as at the end of small epochs."""

from dataclasses import dataclass

import torch

from headrace.trainer.protocols import Loader


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentBatch:
    """A batch of no window; see :class:`headrace.trainer.protocols.Batch`."""

    x: torch.Tensor
    static: torch.Tensor
    y: torch.Tensor
    dataset: torch.Tensor
    basin: torch.Tensor
    start: torch.Tensor

    def to(self, device: torch.device) -> "AbsentBatch":
        """Return it on ``device``."""
        return AbsentBatch(**{name: getattr(self, name).to(device) for name in self.__slots__})


def absent_batch(loader: Loader) -> AbsentBatch:
    """Return a batch without windows, of the shape that a loader's have."""
    number = torch.zeros(0, dtype=torch.int32)
    return AbsentBatch(
        x=torch.zeros(0, loader.window.length, len(loader.x_names)),
        static=torch.zeros(0, len(loader.static_names)),
        y=torch.zeros(0, loader.window.target_length, len(loader.y_names)),
        dataset=number,
        basin=number,
        start=number,
    )
