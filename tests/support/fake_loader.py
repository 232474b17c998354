"""An in-memory loader with the interface the trainer asks for, over a few small arrays.

Plain and slow on purpose: windows are a list, the order of an epoch is one permutation of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.schemas.windows import WindowSpec


@dataclass(frozen=True)
class FakeBatch:
    """x [B, L, Vx], static [B, Vs], y [B, P, Vy], dataset, basin, start int32 [B]."""

    x: torch.Tensor
    static: torch.Tensor
    y: torch.Tensor
    dataset: torch.Tensor
    basin: torch.Tensor
    start: torch.Tensor

    def to(self, device: torch.device | str) -> "FakeBatch":
        return FakeBatch(**{name: value.to(device) for name, value in vars(self).items()})


@dataclass(frozen=True)
class FakeDataset:
    """x float32 [S, T, Vx] normalised, static float32 [S, Vs], y float [S, T, Vy] in physical units, NaN = missing."""

    x: NDArray[np.float32]
    static: NDArray[np.float32]
    y: NDArray[np.float64]


class FakeLoader:
    """Every window of every basin, targets normalised by the mean and std of the whole data set."""

    def __init__(
        self,
        datasets: dict[str, FakeDataset],
        window: WindowSpec,
        *,
        batch_size: int = 4,
        seed: int = 0,
        shuffle: bool = True,
        index_digest: str = "index-a",
        scale: bool = True,
    ) -> None:
        first = next(iter(datasets.values()))
        self.window = window
        self.dataset_ids = list(datasets)
        self.basin_ids = [[f"{name}_{b:02d}" for b in range(len(d.x))] for name, d in datasets.items()]
        self.x_names = [f"input_{v}" for v in range(first.x.shape[2])]
        self.static_names = [f"static_{v}" for v in range(first.static.shape[1])]
        self.y_names = ["streamflow", "stage"][: first.y.shape[2]]
        self.index_digest = index_digest
        self.spec_digest = "spec"
        self.y_mean, self.y_std, self.y_train_std = [], [], []
        for d in datasets.values():
            mean, std = np.nanmean(d.y, axis=(0, 1)), np.nanstd(d.y, axis=(0, 1))
            std = np.where(std > 0, std, 1.0)
            if not scale:
                mean, std = np.zeros_like(mean), np.ones_like(std)
            self.y_mean.append(np.broadcast_to(mean, (len(d.y), len(mean))).astype(np.float32))
            self.y_std.append(np.broadcast_to(std, (len(d.y), len(std))).astype(np.float32))
            self.y_train_std.append(np.array([[_std(v) for v in basin.T] for basin in d.y]))
        self._datasets = list(datasets.values())
        self._windows = [
            (d, b, start)
            for d, data in enumerate(self._datasets)
            for b in range(len(data.x))
            for start in range(0, data.x.shape[1] - window.length + 1, window.stride)
        ]
        self._batch_size = batch_size
        self._seed = seed
        self._shuffle = shuffle
        self._epoch = 0
        self._consumed = 0
        self.closed = False

    def __len__(self) -> int:
        return -(-len(self._windows) // self._batch_size)

    def __iter__(self) -> Iterator[FakeBatch]:
        order = np.arange(len(self._windows))
        if self._shuffle:
            order = np.random.default_rng((self._seed, self._epoch)).permutation(order)
        while self._consumed < len(order):
            chosen = order[self._consumed : self._consumed + self._batch_size]
            # Counted before it is handed out, as in the real loader.
            self._consumed += len(chosen)
            yield self._batch([self._windows[i] for i in chosen])
        self.set_epoch(self._epoch + 1)

    def _batch(self, windows: list[tuple[int, int, int]]) -> FakeBatch:
        length, targets = self.window.length, self.window.target_length
        x = np.stack([self._datasets[d].x[b, s : s + length] for d, b, s in windows])
        static = np.stack([self._datasets[d].static[b] for d, b, _ in windows])
        y = np.stack(
            [
                (self._datasets[d].y[b, s + length - targets : s + length] - self.y_mean[d][b]) / self.y_std[d][b]
                for d, b, s in windows
            ]
        )
        dataset, basin, start = torch.tensor(windows, dtype=torch.int32).T
        return FakeBatch(
            torch.from_numpy(x).float(), torch.from_numpy(static).float(), torch.from_numpy(y).float(),
            dataset, basin, start,
        )  # fmt: skip

    def set_epoch(self, epoch: int) -> None:
        self._epoch, self._consumed = epoch, 0

    def end_iteration(self) -> None:
        """Do nothing: nobody waits for a batch."""

    def state_dict(self) -> dict[str, Any]:
        return {
            "format": 1, "index_digest": self.index_digest, "spec_digest": self.spec_digest, "seed": self._seed,
            "epoch": self._epoch, "round_steps": 0, "windows_consumed": self._consumed,
            "epoch_windows": len(self._windows),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["index_digest"] != self.index_digest:
            raise ValueError("state of another index")
        self._epoch, self._consumed = state["epoch"], state["windows_consumed"]

    def denormalize(self, y: torch.Tensor, batch: FakeBatch) -> torch.Tensor:
        where = list(zip(batch.dataset.tolist(), batch.basin.tolist(), strict=True))
        std = torch.from_numpy(np.stack([self.y_std[d][b] for d, b in where]))[:, None]
        mean = torch.from_numpy(np.stack([self.y_mean[d][b] for d, b in where]))[:, None]
        return y * std + mean

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> "FakeLoader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _std(values: NDArray[np.float64]) -> float:
    seen = values[~np.isnan(values)]
    return float(np.std(seen)) if len(seen) else float("nan")


def synthetic_datasets(
    *, basins: tuple[int, ...] = (3, 2), steps: int = 40, inputs: int = 2, statics: int = 1, targets: int = 1,
    missing: float = 0.1, seed: int = 0,
) -> dict[str, FakeDataset]:  # fmt: skip
    """Data sets whose target is a simple function of the step's inputs and the statics, some of it missing."""
    generator = np.random.default_rng(seed)
    datasets = {}
    for k, num_basins in enumerate(basins):
        x = generator.standard_normal((num_basins, steps, inputs)).astype(np.float32)
        static = generator.standard_normal((num_basins, statics)).astype(np.float32)
        y = 3.0 + 2.0 * np.tanh(x.sum(axis=2, keepdims=True)) + static.sum(axis=1)[:, None, None]
        y = np.repeat(y, targets, axis=2) * np.arange(1, targets + 1)
        y[generator.random(y.shape) < missing] = np.nan
        datasets[f"set_{'abcdef'[k]}"] = FakeDataset(x=x, static=static, y=y)
    return datasets


def with_value(datasets: dict[str, FakeDataset], name: str, **arrays: Any) -> dict[str, FakeDataset]:
    """The same data sets with arrays of one of them replaced."""
    return {**datasets, name: replace(datasets[name], **arrays)}
