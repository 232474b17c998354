"""What an epoch reads from the stores under memory budgets that do not hold the training split."""

from dataclasses import dataclass

from headrace.loader import Index
from headrace.loader.read_forecast import forecast_reads
from headrace.report.numbers import count, size, value
from headrace.report.plot import DataTable
from headrace.report.questions import rows_of
from headrace.schemas.errors import ConfigError

SHARES = (("half", 1 / 2), ("a quarter", 1 / 4), ("an eighth", 1 / 8))
MOST_WINDOWS = 300_000_000
"""Planning an epoch of more takes longer than a page may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Words on the training split, and a row per budget; None where nothing can be forecast."""

    words: str
    table: DataTable | None


def reading(index: Index) -> Reading:
    """Return what reading the training split costs, by planning epochs as the loader would."""
    rows = rows_of(index, "SELECT coalesce(sum(num_windows), 0)::BIGINT AS n FROM windows WHERE split = 'train'")
    if rows[0]["n"] > MOST_WINDOWS:
        return Reading(words="", table=None)
    pools = 1 + index.config.loader.prefetch_factor
    try:
        forecast = forecast_reads(index, "train", [share for _, share in SHARES], num_pools=pools)
    except ConfigError:  # no window to train on, or data sets that are not served together: said elsewhere
        return Reading(words="", table=None)
    words = f"The training split takes {size(forecast.decoded_nbytes)} of memory decoded."
    if not forecast.budgets:
        return Reading(words=words, table=None)
    body = [
        (name, size(budget.budget_nbytes), count(budget.num_rounds), "1", value(budget.reads_per_chunk, 3))
        for (name, _), budget in zip(SHARES, forecast.budgets, strict=False)
    ]
    header = ("share of that", "loader.memory_budget", "rounds", "reads of a chunk", "with cache_dir: off")
    return Reading(words=words, table=DataTable(caption="An epoch under smaller budgets", header=header, rows=body))
