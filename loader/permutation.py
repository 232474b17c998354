"""Keyed, seekable permutations that are the same on every machine and in every library version.

A permutation of [0, n) is a Feistel network over pairs (left, right) of [0, a) × [0, b) with a·b ≥ n, whose rounds add
a hash of one half to the other modulo its size (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"), and
cycle walking over the few pairs beyond n. It costs no memory and any element can be computed alone.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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
        self._keys = [np.uint32(mix64(key ^ mix64(r)) & 0xFFFFFFFF) for r in range(_ROUNDS)]

    def __call__(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the images of positions in [0, size), int64, same shape."""
        image = self._once(positions)
        outside = np.flatnonzero(image >= self.size)
        while outside.size:
            image[outside] = self._once(image[outside])
            outside = outside[image[outside] >= self.size]
        return image

    def _once(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        quotient = positions // self._right
        halves = [quotient.astype(np.uint32), (positions - quotient * self._right).astype(np.uint32)]
        sizes = (self._left, self._right)
        for number, key in enumerate(self._keys):
            target = number % 2
            moved = _scaled_hash(halves[1 - target], key, sizes[target])
            moved += halves[target]
            # Unsigned wrap-around makes the difference huge where the sum is still below the size.
            halves[target] = np.minimum(moved, moved - np.uint32(sizes[target]))
        image = halves[0].astype(np.int64)
        image *= self._right
        image += halves[1]
        return image


def _scaled_hash(value: NDArray[np.uint32], key: np.uint32, size: int) -> NDArray[np.uint32]:
    """Hash 32-bit values (Murmur3's 32-bit finaliser) and scale them to [0, size) without division."""
    h = value ^ key
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    wide = h.astype(np.uint64)
    wide *= np.uint64(size)
    wide >>= np.uint64(32)
    return wide.astype(np.uint32)
