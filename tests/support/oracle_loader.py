"""What a ``WindowLoader`` must serve, worked out by :mod:`oracle` and NumPy alone, and the comparison of the two."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loader import Batch, WindowDataset, WindowLoader
from headrace.schemas.config import Config, MissingConfig, NormalizationConfig
from headrace.schemas.windows import WindowSpec
from oracle import Values, Window, column, list_windows, read_dataset

Scale = tuple[Values, Values]
"""Mean and std, each float64 [basin]."""
Both = tuple[Values, Values]
"""Values and how far off they may be, each float64 [basin, step, column]."""


class OracleLoader:
    """All windows of a split with their normalised values, float64."""

    def __init__(
        self,
        config: Config,
        split: str,
        *,
        window: WindowSpec | None = None,
        missing: Mapping[str, Any] | None = None,
        normalization: Mapping[str, Any] | None = None,
        datasets: Sequence[str] | None = None,
        basins: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.spec = window or config.window.spec()
        self.missing = MissingConfig.model_validate({**config.missing.model_dump(), **(missing or {})})
        self.normalization = NormalizationConfig.model_validate(
            {**config.normalization.model_dump(), **(normalization or {})}
        )
        self.dataset_ids = [d for d in config.datasets if datasets is None or d in datasets]
        self.datasets = [read_dataset(config, d) for d in self.dataset_ids]
        chosen = [(basins or {}).get(d) for d in self.dataset_ids]
        self._served = [
            [b for b in data.basins["train"] if names is None or data.ids[b] in names]
            for data, names in zip(self.datasets, chosen, strict=True)
        ]
        self.windows: list[Window] = [
            (d, b, s)
            for d, (data, names) in enumerate(zip(self.datasets, chosen, strict=True))
            for b, s in list_windows(data, split, self.spec, self.missing, names)
        ]
        inputs, targets, statics = (list(config.names(r)) for r in ("input", "target", "static"))
        policies = {self.missing.missing_policy} | {
            v.missing_policy for data in self.datasets for v in data.config.variables.relevant.values()
        }
        masks = "fill_and_mask" in policies
        self.x_names = inputs + [f"{n}_missing" for n in inputs if masks]
        self.static_names = statics + [f"{n}_missing" for n in statics if masks]
        self.y_names = targets
        x_scales = {n: self._scales(n, "inputs") for n in inputs}
        self.y_scales = {n: self._scales(n, "targets") for n in targets}
        numbers = range(len(self.datasets))
        self._x: list[Both] = [self._inputs(d, inputs, x_scales, masks) for d in numbers]
        self._y: list[Both] = [self._targets(d) for d in numbers]
        self._static = self._statics(statics, masks)

    def x(self, window: Window) -> Values:
        """Return [L, Vx]."""
        return self._cut(self._x[window[0]][0], window, 0)

    def y(self, window: Window) -> Values:
        """Return [P, Vy]."""
        return self._cut(self._y[window[0]][0], window, self.spec.warmup_length)

    def x_error(self, window: Window) -> Values:
        """Return [L, Vx], how far float32 arithmetic may be off."""
        return self._cut(self._x[window[0]][1], window, 0)

    def y_error(self, window: Window) -> Values:
        """Return [P, Vy], as :meth:`x_error`."""
        return self._cut(self._y[window[0]][1], window, self.spec.warmup_length)

    def raw_y(self, window: Window) -> Values:
        """Return [P, Vy] in canonical units."""
        d, b, s = window
        data = self.datasets[d]
        steps = slice(s + self.spec.warmup_length, s + self.spec.length)
        shape = (len(data.ids), data.steps)
        return _stacked([column(data.targets, n, shape)[b, steps] for n in self.y_names], (self.spec.target_length,))

    def static(self, window: Window) -> Values:
        """Return [Vs]."""
        row: Values = self._static[window[0]][window[1]]
        return row

    def _cut(self, values: Values, window: Window, skip: int) -> Values:
        _, basin, start = window
        part: Values = values[basin, start + skip : start + self.spec.length]
        return part

    def _scales(self, name: str, role: str) -> list[Scale]:
        """Return mean and std of a variable per data set and basin, by the scope in force."""
        seen = [self._training_values(d, name, role) for d in range(len(self.datasets))]
        joined = [np.concatenate([v[b] for b in served]) if served else np.zeros(0) for v, served in self._pairs(seen)]
        overall = np.concatenate(joined)
        scales = []
        for d, data in enumerate(self.datasets):
            whole = overall if self.normalization.scope == "global" or joined[d].size == 0 else joined[d]
            mean, std = np.zeros(len(data.ids)), np.ones(len(data.ids))
            for b in range(len(data.ids)):
                alone = self.normalization.scope == "per_basin" and b in self._served[d] and seen[d][b].size
                own = seen[d][b] if alone else whole
                if self.normalization.method == "standard" and own.size:
                    mean[b], std[b] = own.mean(), own.std() if own.std() > 0 else 1.0
            scales.append((mean, std))
        return scales

    def _pairs(self, seen: list[list[Values]]) -> Iterable[tuple[list[Values], list[int]]]:
        return zip(seen, self._served, strict=True)

    def _training_values(self, d: int, name: str, role: str) -> list[Values]:
        """Return the observed values of each basin in the training period."""
        data = self.datasets[d]
        values = getattr(data, role).get(name)
        if values is None or "train" not in data.periods:
            return [np.zeros(0)] * len(data.ids)
        inside = values[:, slice(*data.periods["train"])]
        return [row[~np.isnan(row)] for row in inside]

    def _inputs(self, d: int, names: list[str], scales: dict[str, list[Scale]], masks: bool) -> Both:
        data = self.datasets[d]
        shape = (len(data.ids), data.steps)
        columns, gone, errors = [], [], []
        for name in names:
            values = column(data.inputs, name, shape)
            normal, error = _normal(values, scales[name][d])
            errors.append(error)
            lacking = data.inputs.get(name) is None
            fill = data.config.variables.relevant[name].fill_value if lacking else 0.0
            columns.append(np.where(np.isnan(values), fill, normal))
            gone.append(np.isnan(values).astype(np.float64))
        both = [*columns, *(gone if masks else [])], [*errors, *(np.zeros(shape) for _ in gone if masks)]
        return _stacked(both[0], shape), _stacked(both[1], shape)

    def _targets(self, d: int) -> Both:
        data = self.datasets[d]
        shape = (len(data.ids), data.steps)
        both = [_normal(column(data.targets, n, shape), self.y_scales[n][d]) for n in self.y_names]
        return _stacked([normal for normal, _ in both], shape), _stacked([error for _, error in both], shape)

    def _statics(self, names: list[str], masks: bool) -> list[Values]:
        out: list[list[Values]] = [[] for _ in self.datasets]
        flags: list[list[Values]] = [[] for _ in self.datasets]
        for name in names:
            every = [column(data.statics, name, (len(data.ids),)) for data in self.datasets]
            seen = np.concatenate([v[served] for v, served in zip(every, self._served, strict=True)])
            seen = seen[~np.isnan(seen)]
            standard = self.normalization.method == "standard" and seen.size
            mean, std = (seen.mean(), seen.std() if seen.std() > 0 else 1.0) if standard else (0.0, 1.0)
            for d, (data, values) in enumerate(zip(self.datasets, every, strict=True)):
                lacking = data.statics.get(name) is None
                fill = data.config.variables.constant[name].fill_value if lacking else 0.0
                out[d].append(np.where(np.isnan(values), fill, (values - mean) / std))
                flags[d].append(np.isnan(values).astype(np.float64))
        return [
            np.stack([*own, *(gone if masks else [])], axis=-1) if names else np.zeros((len(data.ids), 0))
            for own, gone, data in zip(out, flags, self.datasets, strict=True)
        ]


def _normal(values: Values, scale: Scale) -> Both:
    """Return normalised values, and how far off they may be: value, mean and std are float32 in the loader."""
    mean, std = scale[0][:, None], scale[1][:, None]
    normal = (values - mean) / std
    return normal, 2e-7 * (np.abs(values) + np.abs(mean)) / std + 5e-7 * np.abs(normal)


def _stacked(columns: Sequence[Values], shape: tuple[int, ...]) -> Values:
    return np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))


def windows_of(batch: Batch) -> list[Window]:
    """Return the windows of a batch in their order."""
    columns = (batch.dataset.tolist(), batch.basin.tolist(), batch.start.tolist())
    return list(zip(*columns, strict=True))


def check_batch(batch: Batch, oracle: OracleLoader, loader: WindowLoader | WindowDataset) -> None:
    """Compare every value of a batch; only the rounding of float32 is allowed for."""
    windows = windows_of(batch)
    wanted = {n: np.stack([getattr(oracle, n)(w) for w in windows]) for n in ("x", "y", "static", "x_error", "y_error")}
    _close("x", batch.x.numpy(), wanted["x"], np.nan_to_num(wanted["x_error"]))
    _close("y", batch.y.numpy(), wanted["y"], np.nan_to_num(wanted["y_error"]))
    _close("static", batch.static.numpy(), wanted["static"], 1e-6 + 1e-6 * np.abs(wanted["static"]))
    raw = np.stack([oracle.raw_y(w) for w in windows])
    # y * std + mean rounds to the precision of the mean
    means = [np.abs(scale[0]).max() for scales in oracle.y_scales.values() for scale in scales]
    error = 1e-6 + 5e-7 * np.abs(np.nan_to_num(raw)) + 2e-7 * max(means, default=0.0)
    _close("denormalised y", loader.denormalize(batch.y, batch).numpy(), raw, error)


def _close(name: str, got: NDArray[np.float32], wanted: Values, error: Values) -> None:
    assert got.dtype == np.float32
    assert got.shape == wanted.shape, f"{name}: {got.shape} is not {wanted.shape}"
    right = (np.abs(got - wanted) <= error) | (np.isnan(got) & np.isnan(wanted))
    if not right.all():
        place = tuple(int(i) for i in np.argwhere(~right)[0])
        raise AssertionError(f"{name}{list(place)}: got {got[place]}, wanted {wanted[place]} ± {error[place]}")


def check_epoch(batches: Sequence[Batch], oracle: OracleLoader, loader: WindowLoader | WindowDataset) -> None:
    """Every window exactly once, every value right."""
    served = [w for batch in batches for w in windows_of(batch)]
    assert sorted(served) == sorted(oracle.windows)
    for batch in batches:
        check_batch(batch, oracle, loader)
