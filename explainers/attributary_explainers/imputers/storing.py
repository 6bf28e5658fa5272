"""An observation that is given to a reservoir by compiled code: most are counted, drawn for and not chosen.

It does what `LaggedReservoir.update` does, to the last bit. What it does not cover is left to that.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..compiled import array_at, call_for_double, compiled
from ..objects import addresses_of, has, has_failed, number_at, set_whole_at, whole_at
from .marginal import MarginalImputer
from .reservoirs import LaggedReservoir

_WORDS, _IMPUTER, _RESERVOIR, _NEXT_DOUBLE, _STATE = range(5)
"""How many entries `known` has; addresses of objects, of a C function and of its state."""

_NAMES = addresses_of("reservoir", "n_seen", "_due", "size", "_within")
_RESERVOIR_AT, _N_SEEN, _DUE, _SIZE, _WITHIN, _END = range(5, 11)
"""Addresses of names of attributes."""

LEFT, STORED, NOT_CHOSEN, CHOSEN = range(4)
"""What has become of an observation: nothing; all is done; it is counted and drawn for, and the rest is left to
`update_counted`."""

_SURE = 2**40
"""Integers below it, and what is made of them here, are exact floats."""


class Storing:
    """What compiled code has to know to give observations to a reservoir; it holds the objects whose addresses it has.

    Parameters
    ----------
    imputer, reservoir
        For which `can_be` is True.
    generator
        The explainer's.
    """

    def __init__(self, imputer: MarginalImputer, reservoir: LaggedReservoir, generator: np.random.Generator) -> None:
        functions = CFunctions(generator)
        self._held = imputer, reservoir, functions
        known = self._known = np.zeros(_END, np.int64)
        known[:_RESERVOIR_AT] = _END, id(imputer), id(reservoir), functions.next_double, functions.state
        known[_RESERVOIR_AT:] = _NAMES
        self.address = int(known.ctypes.data)

    @staticmethod
    def can_be(imputer: Any) -> bool:
        """Return whether compiled code may give observations to the reservoir of an imputer."""
        if type(imputer) is not MarginalImputer or type(imputer.reservoir) is not LaggedReservoir:
            return False
        return imputer.reservoir.gap > 1  # one that is stored at once may be at hand as an array


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


@compiled(reads_objects=True)
def store(address: int) -> int:
    """Count an observation, and draw whether a reservoir chooses it; return what has become of it.

    Parameters
    ----------
    address
        That of the entries of a `Storing`.
    """
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    reservoir = known[_RESERVOIR]
    if not has(known[_IMPUTER], known[_RESERVOIR_AT], reservoir):
        return LEFT
    n_seen, size = whole_at(reservoir, known[_N_SEEN]) + 1, whole_at(reservoir, known[_SIZE])
    within, due = whole_at(reservoir, known[_WITHIN]), number_at(reservoir, known[_DUE])
    if has_failed() or n_seen > _SURE or size > _SURE or within > _SURE:
        return LEFT
    set_whole_at(reservoir, known[_N_SEEN], n_seen)
    of_size, chosen_of = 3 * size, max(min(2 * within, 3 * n_seen), 3 * size)
    if call_for_double(known[_NEXT_DOUBLE], known[_STATE]) * float(chosen_of) < float(of_size):
        return CHOSEN
    return STORED if n_seen < due else NOT_CHOSEN
