"""Keyed, seekable permutations that are the same on every machine and in every library version.

A permutation of [0, n) is a Feistel network over pairs (left, right) of [0, a) × [0, b) with a·b ≥ n, whose rounds add
a hash of one half to the other modulo its size (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"), and
cycle walking over the few pairs beyond n. It costs no memory and any element can be computed alone.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.compiled import compiled

Order = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""Turns positions into what comes there."""

_ROUNDS = 4
_MASK = (1 << 64) - 1


def mix64(value: int) -> int:
    """Scramble a 64-bit integer (the finaliser of SplitMix64, Steele et al. 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def derive_key(*parts: int) -> int:
    """Fold integers (seed, epoch, purpose, …) into one 64-bit key; the order matters."""
    key = 0
    for part in parts:
        key = mix64(key ^ mix64(part & _MASK))
    return key


def hash_floats(key: int, size: int) -> NDArray[np.float64]:
    """Return ``size`` numbers spread evenly over [0, 1), float64, as a pure function of the key."""
    value = np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (value ^ (value >> np.uint64(31))).astype(np.float64) * 2.0**-64 % 1.0


class Permutation:
    """A permutation of [0, size) without storage.

    Parameters
    ----------
    key
        64-bit integer.
    size
        Length of the domain, at most 2⁶⁰.
    """

    def __init__(self, key: int, size: int) -> None:
        self.size = size
        self._left = max(math.isqrt(max(size - 1, 0)) + 1, 1)
        self._right = max(-(-size // self._left), 1)
        self._keys = np.array([mix64(key ^ mix64(r)) & 0xFFFFFFFF for r in range(_ROUNDS)], dtype=np.uint64)

    def __call__(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the images of positions in [0, size), int64, same shape."""
        image = np.array(positions, dtype=np.int64, order="C")
        _permute(image.reshape(-1), self._keys, self._left, self._right, self.size)
        return image


@compiled
def _permute(image: Any, keys: Any, left: Any, right: Any, size: Any) -> None:
    """Replace positions by their images."""
    for i in range(image.size):
        place = image[i]
        while True:
            quotient = place // right
            high, low = np.uint64(quotient), np.uint64(place - quotient * right)
            for number in range(0, keys.size, 2):
                high = _moved(high, low, keys[number], np.uint64(left))
                low = _moved(low, high, keys[number + 1], np.uint64(right))
            place = np.int64(high) * right + np.int64(low)
            if place < size:
                break
        image[i] = place


@compiled
def _moved(half: Any, other: Any, key: Any, size: Any) -> Any:
    """Add a hash of the other half (Murmur3's 32-bit finaliser), scaled to [0, size) without division, modulo size."""
    low32 = np.uint64(0xFFFFFFFF)
    h = other ^ key
    h ^= h >> np.uint64(16)
    h = (h * np.uint64(0x85EBCA6B)) & low32
    h ^= h >> np.uint64(13)
    h = (h * np.uint64(0xC2B2AE35)) & low32
    h ^= h >> np.uint64(16)
    moved = half + ((h * size) >> np.uint64(32))
    return moved - size if moved >= size else moved
