"""What the loader hands to the model.

Legend: B windows, L input steps, P target steps, Vx inputs, Vs statics, Vy targets.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Shuffled windows, gathered and normalised.

    Parameters
    ----------
    x
        float32 [B, L, Vx], normalised inputs (masks after them under ``fill_and_mask``); never NaN.
    static
        float32 [B, Vs], normalised statics.
    y
        float32 [B, P, Vy], normalised targets; NaN is missing.
    dataset
        int32 [B], position in ``loader.dataset_ids``.
    basin
        int32 [B], basin number within the data set (row of ``loader.basin_ids[dataset]``).
    start
        int32 [B], the store's time step of the first input.
    """

    x: torch.Tensor
    static: torch.Tensor
    y: torch.Tensor
    dataset: torch.Tensor
    basin: torch.Tensor
    start: torch.Tensor

    def __len__(self) -> int:
        """Return B."""
        return int(self.start.shape[0])

    def to(self, device: str | torch.device, *, non_blocking: bool = False) -> "Batch":
        """Return the batch on a device; itself when it is there already."""
        moved = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in self.__slots__}
        return Batch(**moved)
