"""How much of each basin and year is observed, as a matrix that stays small: many basins share a row."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.loader.sql import query
from headrace.schemas.errors import ConfigError, describe

if TYPE_CHECKING:
    from headrace.loader.catalog import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageGrid:
    """Observed shares of one data set.

    Parameters
    ----------
    dataset_id
        Its id.
    basin_ids
        Its basins, in the order of the index.
    first_basin
        int64 [R + 1], positions in ``basin_ids`` at which each row begins, and their number.
    years
        int64 [Y], calendar years with steps, in order.
    share
        float64 [R, Y], observed share of the row's basins, the year's steps and the chosen variables.
    """

    dataset_id: str
    basin_ids: list[str]
    first_basin: NDArray[np.int64]
    years: NDArray[np.int64]
    share: NDArray[np.float64]


def coverage_grid(index: "Index", dataset_id: str, variable: str | None = None, most_rows: int = 400) -> CoverageGrid:
    """Count what is observed; only the table of runs is read.

    Parameters
    ----------
    index
        An open index.
    dataset_id
        One of its data sets.
    variable
        An input or target; None takes all of the data set together.
    most_rows
        Rows of the matrix; where there are more basins a row is the mean of neighbours.

    Raises
    ------
    ConfigError
        There is no such data set, or it has no such variable.
    """
    axis = index.time_axis(dataset_id)  # refuses what is no data set
    basin_ids = index.fetch("basins", dataset_id=dataset_id)["basin_id"].to_pylist()
    variables = _chosen(index, dataset_id, variable)
    num_basins, num_rows = len(basin_ids), min(len(basin_ids), most_rows)
    row_of = np.arange(num_basins) * num_rows // num_basins
    lengths = index.sql(
        "SELECT year, sum(stop - start)::BIGINT AS steps FROM years WHERE dataset_id = $dataset_id GROUP BY year "
        "ORDER BY year",
        dataset_id=dataset_id,
    )
    years, steps = (lengths[name].to_numpy().astype(np.int64) for name in ("year", "steps"))
    assert steps.sum() == axis.num_steps, "every step lies in a year"
    seen = index.sql(
        query("coverage_grid"),
        dataset_id=dataset_id, variables=variables, num_rows=num_rows, num_basins=num_basins,
    )  # fmt: skip
    observed = np.zeros((num_rows, len(years)))
    observed[seen["row"].to_numpy(), np.searchsorted(years, seen["year"].to_numpy())] = seen["observed"].to_numpy()
    whole = np.bincount(row_of, minlength=num_rows)[:, None] * steps * len(variables)
    first = np.searchsorted(row_of, np.arange(num_rows + 1))
    return CoverageGrid(
        dataset_id=dataset_id, basin_ids=basin_ids, first_basin=first, years=years, share=observed / whole
    )


def _chosen(index: "Index", dataset_id: str, variable: str | None) -> list[str]:
    """Return the variables to count: one, or every input and target that the data set has."""
    found = index.sql(
        "SELECT variable FROM variables WHERE dataset_id = $dataset_id AND present AND role <> 'static' "
        "ORDER BY variable",
        dataset_id=dataset_id,
    )["variable"].to_pylist()
    if variable is None:
        return list(found)
    if variable not in found:
        raise ConfigError(
            describe(
                "no such variable",
                where=f"{index.path}, data set {dataset_id}",
                expected=", ".join(found),
                got=repr(variable),
                fix="name one of these, or none for all together",
            )
        )
    return [variable]
