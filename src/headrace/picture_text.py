"""Names of basins, data sets and variables in pictures, as they are."""


def literal(text: str) -> str:
    r"""Return a text that matplotlib draws as it is: between two ``$`` it would take it for a formula, or fail on it.

    Examples
    --------
    >>> literal("m$^3$/s")
    'm\\$^3\\$/s'
    """
    return text.replace("$", r"\$")
