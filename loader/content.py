"""From an index and a request to everything that decides what a window holds: all tables are read here, once.

What comes out is arrays and locators. Nothing is open, so it may go to other processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.loader.catalog import Index
from headrace.loader.freshness import refuse_stale
from headrace.loader.layout import Layout, lay_out
from headrace.loader.normalize import Scaling, basin_moments, resolve_scaling
from headrace.loader.sources import DatasetSource, load_sources
from headrace.loader.spec import ServeSpec
from headrace.loader.statics import load_statics
from headrace.loader.windows import Windows, load_windows
from headrace.schemas.errors import ConfigError, describe
from headrace.schemas.moments import Moments


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is served.

    Parameters
    ----------
    spec
        The request.
    sources
        Data sets, in the request's order.
    windows, layout
        Runs of starts, and which rows their basins need.
    x_names, static_names, y_names
        Columns of x and of the statics (masks included), and of y.
    masks
        Whether a mask column follows for every input.
    x_scaling, y_scaling
        Per data set, over inputs and over targets.
    y_moments
        Training-period moments of the targets: per data set, per target, [num_basins].
    statics
        float32 [slots, Vs], normalised.
    """

    spec: ServeSpec
    sources: list[DatasetSource]
    windows: Windows
    layout: Layout
    x_names: list[str]
    static_names: list[str]
    y_names: list[str]
    masks: bool
    x_scaling: list[Scaling]
    y_scaling: list[Scaling]
    y_moments: list[list[Moments]]
    statics: NDArray[np.float32]

    @property
    def row_nbytes(self) -> int:
        """Bytes of one decoded step."""
        return 4 * (len(self.x_names) + len(self.y_names))


def load_content(index: Index, spec: ServeSpec) -> Content:
    """Read what a request needs from the tables.

    Raises
    ------
    ConfigError
        The split has no window.
    SourceError
        A store is gone.
    StaleIndexError
        Metadata, coordinates or attributes of a store are not as they were indexed.
    """
    config = index.config
    inputs, targets, constants = (list(config.names(role)) for role in ("input", "target", "static"))
    masks = has_masks(index, spec)
    refuse_stale(index, spec.dataset_ids)
    sources = load_sources(index, spec.dataset_ids)
    windows = some_windows(index, spec)
    layout = lay_out(windows, spec.window.length)
    ids = list(spec.dataset_ids)
    served = _statistics_basins(sources, spec)
    y_moments = basin_moments(index, sources, targets)
    statics = load_statics(index, sources, served, constants, spec.normalization, with_masks=masks)
    static_names = _named(constants, masks=masks)

    def scaled(moments: list[list[Moments]], names: list[str]) -> list[Scaling]:
        return resolve_scaling(moments, served, names, spec.normalization, ids, index.warned)

    return Content(
        spec=spec,
        sources=sources,
        windows=windows,
        layout=layout,
        x_names=_named(inputs, masks=masks),
        static_names=static_names,
        y_names=targets,
        masks=masks,
        x_scaling=scaled(basin_moments(index, sources, inputs), inputs),
        y_scaling=scaled(y_moments, targets),
        y_moments=y_moments,
        statics=_static_of_slots(statics, layout, len(static_names)),
    )


def some_windows(index: Index, spec: ServeSpec) -> Windows:
    """Return the windows of a request; raise :class:`ConfigError` where there is none."""
    windows = load_windows(index, spec)
    if windows.total == 0:
        raise ConfigError(_no_window(spec, index))
    return windows


def _statistics_basins(sources: Sequence[DatasetSource], spec: ServeSpec) -> list[NDArray[np.bool_]]:
    """Return whose training period the statistics cover: the chosen training basins, or all where none is chosen.

    A loader for basins that were never trained on then scales them as the training did.
    """
    training = [s.splits["train"] for s in sources]
    chosen = [np.isin(np.arange(s.num_basins), b) & t for s, b, t in zip(sources, spec.basins, training, strict=True)]
    return chosen if any(c.any() for c in chosen) else training


def has_masks(index: Index, spec: ServeSpec) -> bool:
    """Return whether a mask follows for every input, as it does once one input of one data set asks for it."""
    variables = [v for d in spec.dataset_ids for v in index.config.variables_of(d, "input").values()]
    policies = {v.missing_policy or spec.missing.missing_policy for v in variables} | {spec.missing.missing_policy}
    return "fill_and_mask" in policies


def _named(names: Sequence[str], *, masks: bool) -> list[str]:
    return [*names, *(f"{name}_missing" for name in names)] if masks else list(names)


def _static_of_slots(rows: Sequence[NDArray[np.float32]], layout: Layout, width: int) -> NDArray[np.float32]:
    out = np.empty((layout.num_slots, width), dtype=np.float32)
    for number, values in enumerate(rows):
        mine = layout.dataset == number
        out[mine] = values[layout.basin[mine]]
    return out


def _no_window(spec: ServeSpec, index: Index) -> str:
    split = spec.split
    return describe(
        f"split {split} has no window",
        where=str(index.path),
        expected="at least one window of the given data sets and basins",
        got="none",
        fix=f"see why with: headrace inspect {index.path} dropped; then widen the period or shorten the window"
        if any(index.config.datasets[name].period(split) for name in spec.dataset_ids)
        else f"no data set has a period for it: set t_range_{split} and build the index again",
    )
