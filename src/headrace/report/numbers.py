"""Numbers as people read them."""

import math

_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
_MINUS = "−"


def count(number: int) -> str:
    """Return a whole number with separators: 12,784."""
    return f"{number:,}".replace("-", _MINUS)


def short_count(number: int) -> str:
    """Return a whole number of at most some six signs: 12,784, then 1.23 M."""
    for unit, sign in _LARGE:
        if abs(number) >= unit:
            return f"{number / unit:.3g} {sign}".replace("-", _MINUS)
    return count(number)


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a number and its noun: 1 basin, 671 basins."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def size(nbytes: float) -> str:
    """Return bytes in powers of 1000: 1.6 GB."""
    for unit in _SIZES:
        if nbytes < 1000 or unit == _SIZES[-1]:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    raise AssertionError


def share(part: float) -> str:
    """Return a share as per cent; only nothing is 0 % and only all is 100 %."""
    if math.isnan(part):
        return "–"
    if 0 < part < 0.001:
        return "< 0.1 %"
    if 0.999 < part < 1:
        return "> 99.9 %"
    return f"{100 * part:.1f}".removesuffix(".0") + " %"


def value(number: float | None, digits: int = 4) -> str:
    """Return a measured number with so many significant digits; a dash where there is none."""
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else _MINUS + "∞"
    if min(10**digits, 10_000) <= abs(number) < 10_000_000:
        return f"{number:,.0f}".replace("-", _MINUS)
    head, _, power = f"{number:.{digits}g}".partition("e")
    text = f"{head}e{int(power)}" if power else head
    return text.replace("-", _MINUS)


def seconds(duration: float) -> str:
    """Return a duration: 250 ms, 12.3 s, 4 min 5 s."""
    if duration < 1:
        return f"{1000 * duration:.3g} ms"
    if duration < 60:
        return f"{duration:.3g} s"
    minutes, rest = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def step_length(step_seconds: int) -> str:
    """Return the length of a time step: 1 day, 3 hours, 15 minutes."""
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if step_seconds % unit == 0:
            return plural(step_seconds // unit, name)
    return plural(step_seconds, "second")
