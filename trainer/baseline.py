"""Day-of-year climatology: the forecast that a model must beat to have learnt more than the season."""

import numpy as np
from numpy.typing import NDArray

DAYS = 366


def climatology(
    obs_train: NDArray[np.floating],
    day_of_year_train: NDArray[np.integer],
    day_of_year_test: NDArray[np.integer],
    half_window: int = 7,
) -> NDArray[np.float64]:
    """Predict each day by the mean of the training values around that day of the year.

    Parameters
    ----------
    obs_train
        float [T], training target in its units, NaN = missing.
    day_of_year_train, day_of_year_test
        int [T] and int [N], 1 to 366.
    half_window
        Days taken on either side, around the turn of the year too; at least 0.

    Returns
    -------
    numpy.ndarray
        float64 [N], units of ``obs_train``. A day with no training value in its window gets the mean of all training
        values; NaN when there is none at all.

    Raises
    ------
    ValueError
        ``half_window`` is negative, or a day lies outside 1 to 366.
    """
    if half_window < 0:
        raise ValueError(f"half_window must be at least 0 days, got {half_window}")
    for name, days in (("day_of_year_train", day_of_year_train), ("day_of_year_test", day_of_year_test)):
        if days.size and not 1 <= days.min() <= days.max() <= DAYS:
            raise ValueError(f"{name} must lie in 1 to {DAYS}, got {days.min()} to {days.max()}")
    seen = ~np.isnan(obs_train)
    if not seen.any():
        return np.full(len(day_of_year_test), np.nan)
    day = day_of_year_train[seen] - 1
    values = obs_train[seen].astype(np.float64)
    total = np.bincount(day, weights=values, minlength=DAYS)
    count = np.bincount(day, minlength=DAYS)
    # Beyond half a year on either side a day would count twice.
    reach = np.arange(-min(half_window, (DAYS - 1) // 2), min(half_window, (DAYS - 1) // 2) + 1)
    around = (np.arange(DAYS)[:, None] + reach) % DAYS
    window_count = count[around].sum(axis=1)
    mean = total[around].sum(axis=1) / np.maximum(window_count, 1)
    by_day: NDArray[np.float64] = np.where(window_count > 0, mean, values.mean())
    predicted: NDArray[np.float64] = by_day[day_of_year_test - 1]
    return predicted
