"""Numbers that files write where nothing was measured, and that look like data unless somebody says so."""

from typing import Final

import numpy as np

SENTINELS: Final = (
    *(-99.0, -99.9, -999.0, -999.9, -999.99, -9999.0, -9999.9, -99999.0, -32768.0, -32767.0, 9.96921e36, 1e20),
)
"""What older files use; many of them declare it nowhere."""


def looks_like_flag(value: float) -> bool:
    """Return whether a value is one of :data:`SENTINELS`, as closely as float32 tells."""
    return any(bool(np.isclose(value, flag, rtol=1e-6, atol=0)) for flag in SENTINELS)
