"""Which rows ``inspect`` is asked for: names checked against the index, a period turned into steps."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.commands.inspect_period import period_steps
from headrace.loader import Index
from headrace.schemas.config import SPLITS
from headrace.schemas.errors import ConfigError, describe

_LISTED = 12
"""Names that a message lists whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the command line asks for; nothing given is everything.

    Parameters
    ----------
    datasets, basins, variables, splits
        Names.
    first, last
        Years, months, dates or date-times, both inclusive.
    """

    datasets: Sequence[str] = ()
    basins: Sequence[str] = ()
    variables: Sequence[str] = ()
    splits: Sequence[str] = ()
    first: str | None = None
    last: str | None = None

    def bind(self, index: Index) -> dict[str, Any]:
        """Return the parameters of the queries of ``inspect``.

        Parameters
        ----------
        index
            Knows the names and the time axes.

        Returns
        -------
        dict
            datasets, starts, stops: the chosen data sets and their steps, lists of equal length. stored_starts,
            stored_stops: the same as steps of the store. all_datasets, variables, splits, basins (none: all), stride.

        Raises
        ------
        ConfigError
            There is no such name, the dates cannot be read, or no data set has a step in the period.
        """
        datasets = _known("data set", "--dataset", self.datasets, index.dataset_ids, index)
        found = index.sql("SELECT DISTINCT variable FROM variables ORDER BY variable")["variable"].to_pylist()
        variables = _known("variable", "--variable", self.variables, found, index)
        splits = _known("split", "--split", self.splits, SPLITS, index)
        _check_basins(self.basins, datasets, index)
        axes = {name: index.time_axis(name) for name in datasets}
        spans = period_steps(axes, self.first, self.last, str(index.path))
        stored = [_stored(index, name, *span) for name, span in zip(datasets, spans, strict=True)]
        return {
            "datasets": datasets,
            "starts": [start for start, _ in spans],
            "stops": [stop for _, stop in spans],
            "stored_starts": [start for start, _ in stored],
            "stored_stops": [stop for _, stop in stored],
            "all_datasets": not self.datasets,
            "variables": variables,
            "splits": splits,
            "basins": list(self.basins),
            "stride": index.config.window.stride,
        }


def _stored(index: Index, dataset_id: str, start: int, stop: int) -> tuple[int, int]:
    """Return the stored steps that hold a range of steps; they differ where ``fix_time`` mended the axis."""
    order = index.fetch("time_order", dataset_id=dataset_id)["store_step"].to_pylist()[start:stop]
    return (min(order), max(order) + 1) if order else (start, stop)


def _known(kind: str, flag: str, names: Sequence[str], known: Sequence[str], index: Index) -> list[str]:
    """Return the names, or all that are known where none is given."""
    for name in names:
        if name not in known:
            raise _unknown(kind, flag, name, known, index)
    return list(dict.fromkeys(names)) or list(known)


def _check_basins(names: Sequence[str], datasets: Sequence[str], index: Index) -> None:
    if not names:
        return
    query = "SELECT DISTINCT basin_id FROM basins WHERE list_contains($datasets, dataset_id)"
    known = set(index.sql(query, datasets=datasets)["basin_id"].to_pylist())
    for name in names:
        if name not in known:
            raise _unknown("basin", "--basin", name, sorted(known), index)


def _unknown(kind: str, flag: str, name: str, known: Sequence[str], index: Index) -> ConfigError:
    same = [other for other in known if other.lstrip("0") == name.lstrip("0")]  # a number where the id is text
    near = same or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    listed = ", ".join(known[:_LISTED])
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return ConfigError(
        describe(
            f"no such {kind}",
            where=f"{index.path} {flag}",
            expected=f"{listed}{more}",
            got=name,
            fix=f"did you mean {near[0]}?" if near else "use one of these names",
        )
    )
