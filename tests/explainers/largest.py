"""A generator whose uniform numbers are the largest there are below 1."""

from __future__ import annotations

import numpy as np


def largest_numbers() -> np.random.Generator:
    """The first 312 numbers are 1 - 2**-53: words of the Mersenne twister that its tempering makes all ones."""
    bits = np.random.MT19937()
    word = _untempered(0xFFFFFFFF)
    bits.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.full(624, word, dtype=np.uint32), "pos": 0},
    }
    return np.random.Generator(bits)


def _untempered(y: int) -> int:
    y ^= y >> 18
    y ^= (y << 15) & 0xEFC60000
    found = y
    for _ in range(5):
        found = y ^ ((found << 7) & 0x9D2C5680)
    y, found = found & 0xFFFFFFFF, found & 0xFFFFFFFF
    for _ in range(3):
        found = y ^ (found >> 11)
    return found
