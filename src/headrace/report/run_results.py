"""What a run's folder says: epochs, settings, scores of the splits that were evaluated."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from headrace.schemas.config import SPLITS, Config
from headrace.schemas.config_io import load_config
from headrace.schemas.errors import ConfigError
from headrace.trainer.run_folder import RunFolder, read_csv

CsvRow = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """Rows of the run's ``metrics.csv`` as columns.

    Parameters
    ----------
    columns
        Name → float64 [epochs], NaN where a cell is empty.
    """

    columns: Mapping[str, NDArray[np.float64]]

    @property
    def number(self) -> int:
        """Finished epochs."""
        return len(self.columns.get("epoch", ()))

    def get(self, name: str) -> NDArray[np.float64] | None:
        """Return a column; None where it is not there or all empty."""
        found = self.columns.get(name)
        return None if found is None or np.isnan(found).all() else found

    def last(self, name: str) -> float:
        """Return the last value of a column, NaN where there is none."""
        found = self.get(name)
        return math.nan if found is None else float(found[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Scores of one split.

    Parameters
    ----------
    split
        Its name.
    folder
        Where metrics and predictions lie.
    basins
        Rows of single basins.
    medians
        Rows of data sets, then of all.
    units
        (Data set, target) → unit of RMSE and bias, where it is known.
    """

    split: str
    folder: Path
    basins: Sequence[CsvRow]
    medians: Sequence[CsvRow]
    units: Mapping[tuple[str, str], str]

    @property
    def targets(self) -> list[str]:
        """Targets, in their order."""
        return list(dict.fromkeys(row["target"] for row in self.basins))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Data sets and targets that have a score in some unit: an observed step. In their order."""
        scored = (row for row in self.basins if number(row.get("count")))
        return list(dict.fromkeys((row["dataset_id"], row["target"]) for row in scored))

    def of(self, target: str) -> dict[str, list[CsvRow]]:
        """Return data set → rows of its basins with a defined NSE, for one target."""
        found: dict[str, list[CsvRow]] = {}
        for row in self.basins:
            if row["target"] == target and row["nse"]:
                found.setdefault(row["dataset_id"], []).append(row)
        return found


def read_epochs(run: RunFolder) -> Epochs:
    """Return the epochs of a run, none where it has not finished one."""
    rows = read_csv(run.metrics)
    names = list(rows[0]) if rows else []
    return Epochs(columns={name: np.array([number(row.get(name)) for row in rows]) for name in names})


def read_evaluations(run: RunFolder) -> Iterator[Evaluated]:
    """Yield the splits that were evaluated, test first."""
    for split in reversed(SPLITS):
        folder = run.evaluation(split)
        rows = read_csv(folder / "metrics.csv")
        if rows:
            yield Evaluated(
                split=split,
                folder=folder,
                basins=[row for row in rows if row["scope"] == "basin"],
                medians=[row for row in rows if row["scope"] != "basin"],
                units=_units(folder / "predictions.zarr", {(row["dataset_id"], row["target"]) for row in rows}),
            )


def _units(predictions: Path, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the units that the predictions have, none where they are gone."""
    if not predictions.is_dir():
        return {}
    store = zarr.open_group(predictions, mode="r")
    arrays = {pair: store.get(f"{pair[0]}/{pair[1]}_obs") for pair in pairs if pair[0]}
    return {pair: str(a.attrs["units"]) for pair, a in arrays.items() if a is not None and "units" in a.attrs}


def read_settings(run: RunFolder) -> Config | None:
    """Return the configuration of a run; None where there is none, or it cannot be read."""
    try:
        return load_config(run.config)
    except (ConfigError, OSError):
        return None


def settings_by_section(config: Config) -> dict[str, list[tuple[str, str]]]:
    """Return section → (key, value) of every setting that is not about a data set, in the order of the file."""
    found = {name: list(_flat("", content)) for name, content in config.as_dict().items() if name != "datasets"}
    return dict(sorted(found.items(), key=lambda item: item[0] != "train"))


def _flat(key: str, content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, dict) and content:
        for name, value in content.items():
            yield from _flat(f"{key}.{name}" if key else str(name), value)
    else:
        yield key, "–" if content is None or content == {} else str(content)


def number(cell: str | None) -> float:
    """Return the number in a cell of a CSV file; NaN where it is empty or no number."""
    try:
        return float(cell) if cell else math.nan
    except ValueError:
        return math.nan
