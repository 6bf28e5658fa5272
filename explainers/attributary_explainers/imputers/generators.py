"""Generators of numpy as compiled code draws from them: by their own C functions, so that all draws are theirs."""

from __future__ import annotations

import ctypes

import numpy as np


class CFunctions:
    """Gives the addresses of the functions by which the generators of numpy draw, and of what these draw from.

    Parameters
    ----------
    generator
        Held, as its state is.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        given = self._held = generator.bit_generator.ctypes
        self.state: int = given.state_address
        self.next_double = ctypes.cast(given.next_double, ctypes.c_void_p).value or 0
        self.next_uint32 = ctypes.cast(given.next_uint32, ctypes.c_void_p).value or 0
