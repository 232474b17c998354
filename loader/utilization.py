"""How busy a GPU is while a block runs, where there is one and its driver says so."""

import threading
from collections.abc import Callable

import torch

_INTERVAL_SECONDS = 0.1


class UtilizationSampler:
    """Ask for the utilisation of a GPU several times a second while a block runs.

    Parameters
    ----------
    probe
        Returns percent; None, or a probe that fails, gives no mean.
    interval
        Seconds between two questions.
    """

    def __init__(self, probe: Callable[[], float] | None, interval: float = _INTERVAL_SECONDS) -> None:
        self._probe, self._interval = probe, interval
        self._sum = 0.0
        self._count = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="headrace-gpu-sampler", daemon=True)

    @classmethod
    def of(cls, device: torch.device) -> "UtilizationSampler":
        """Return a sampler of a device; one that says nothing for the CPU."""
        return cls((lambda: float(torch.cuda.utilization(device))) if device.type == "cuda" else None)

    @property
    def mean(self) -> float | None:
        """Mean percent, or None where nothing was to be had."""
        return self._sum / self._count if self._count else None

    def _sample(self) -> None:
        assert self._probe is not None
        while True:
            try:
                self._sum += float(self._probe())
                self._count += 1
            except (ModuleNotFoundError, RuntimeError):  # the driver's library is not installed, or does not say
                return
            if self._end.wait(self._interval):
                return

    def __enter__(self) -> "UtilizationSampler":
        """Begin."""
        if self._probe is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End and join the thread."""
        self._end.set()
        if self._probe is not None:
            self._thread.join()
