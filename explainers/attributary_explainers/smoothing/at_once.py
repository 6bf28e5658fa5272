"""Means that compiled code keeps, which reads and writes their Python objects itself.

It does what `Weights.step` does, and `MarginalPrediction` without a gap, to the last bit. What it does not cover is
theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import array_at, compiled
from ..objects import (
    addresses_of,
    dict_size,
    has_failed,
    is_a,
    is_equal,
    next_entry,
    number,
    number_at,
    set_attribute,
    set_number_at,
    set_whole_at,
    whole_at,
)
from ..typing import Array
from ..validation import LARGEST
from .kernels import MEAN, smooth
from .marginal import MarginalPrediction

_WORDS, _N_NUMBERS, _NUMBERS, _B, _MEMORY, _WEIGHTS, _MARGINAL, _IS_NUMBER = range(8)
"""Places of `known`: how many entries it has, how many `numbers` and their address; the number of classes; after how
many predictions classes may be forgotten; the addresses of the weights and of the mean prediction; whether predictions
are numbers."""

_GOES_ON, _KEY, _VALUE, _HERE = range(8, 12)
"""Numbers for `next_entry`, and the address of the first."""

_NAMES = addresses_of("n", "total", "squares", "_n_seen", "known", None, float, dict)
_N, _TOTAL, _SQUARES, _N_SEEN, _KNOWN, _NONE, _FLOAT, _DICT = range(12, 20)
"""Addresses of names of attributes, and of constants."""

_FIRST = 20
"""Where the columns of the classes begin, and after them the addresses of their names."""

_ALPHA, _SLOWER, _TWO = range(7, 10)
"""Places of `numbers`, after the weights of `kernels`. Two is the exponent of a square: a power that the compiler sees
is a square is made a product, which differs from Python's power in the last bit at times."""
_PREDICTED = 10
"""Where the prediction begins, and after it the moments of the mean."""


@compiled(reads_objects=True)
def can_step(weights: int, of_n: int, memory: int) -> bool:
    """Return whether `stepped` may count the next value: it is not the first one, and no name is forgotten with it.

    Parameters
    ----------
    weights, of_n
        Addresses of the weights and of the name of their number of steps.
    memory
        Steps after which names may be forgotten.
    """
    n = whole_at(weights, of_n)
    return not has_failed() and n >= 1 and (n + 1) % memory != 0


@compiled(reads_objects=True)
def rate_of(total: float, alpha: float) -> float:
    """Return the share that one more value has, of weights that sum to `total` with it."""
    return min(alpha / total, 1.0)


@compiled(reads_objects=True)
def stepped(weights: int, of_n: int, of_total: int, of_squares: int, alpha: float, two: float) -> float:
    """Count one more value of weights, and return its share in the mean, as `Weights.step` does.

    Parameters
    ----------
    weights, of_n, of_total, of_squares
        Addresses of the weights and of the names of what they hold.
    alpha
        Smoothing factor.
    two
        2, which the compiler is not to know.
    """
    total, squares = number_at(weights, of_total), number_at(weights, of_squares)
    total = total + alpha * (1.0 - total)
    rate = rate_of(total, alpha)
    squares = math.pow(1.0 - rate, two) * squares + rate * rate
    set_whole_at(weights, of_n, whole_at(weights, of_n) + 1)
    set_number_at(weights, of_total, total)
    set_number_at(weights, of_squares, squares)
    return rate


@compiled(reads_objects=True)
def mean_beside(address: int, prediction: int, means: Any) -> bool:
    """Write the mean prediction that includes one more, shape (classes,); return whether it was done.

    Parameters
    ----------
    address
        That of the entries of an `IncludingMean`.
    prediction
        The address of the prediction for the observation that is explained.
    """
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    numbers = array_at(known[_NUMBERS], (known[_N_NUMBERS],), np.float64)
    weights, B, alpha = known[_WEIGHTS], known[_B], numbers[_ALPHA]
    if not can_step(weights, known[_N], known[_MEMORY]) or not _is_read(known, numbers, prediction):
        return False
    total = number_at(weights, known[_TOTAL])
    rate = rate_of(total + alpha * (1.0 - total), alpha)
    at = _PREDICTED + B + MEAN * B
    for c in range(B):
        before = numbers[at + known[_FIRST + c]]
        means[c] = before + rate * (numbers[_PREDICTED + c] - before)
    return not has_failed()


@compiled(reads_objects=True)
def _is_read(known: Any, numbers: Any, prediction: int) -> bool:
    """Read a prediction; return whether it has the classes of the mean, in their order, and may enter it."""
    B = known[_B]
    if known[_IS_NUMBER]:
        numbers[_PREDICTED] = number(prediction) if is_a(prediction, known[_FLOAT]) else math.nan
        return not has_failed() and abs(numbers[_PREDICTED]) < LARGEST
    if not is_a(prediction, known[_DICT]) or dict_size(prediction) != B:
        return False
    known[_GOES_ON] = 0
    for c in range(B):
        if not next_entry(prediction, known[_HERE]):
            return False
        key, value = known[_KEY], known[_VALUE]
        if key != known[_FIRST + B + c] and not is_equal(key, known[_FIRST + B + c]):
            return False
        numbers[_PREDICTED + c] = number(value) if is_a(value, known[_FLOAT]) else math.nan
        if not abs(numbers[_PREDICTED + c]) < LARGEST:
            return False
    return not has_failed()


@compiled(reads_objects=True)
def enter(address: int) -> None:
    """Take the prediction that `mean_beside` has read last into the mean, as `MarginalPrediction.store` does."""
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    numbers = array_at(known[_NUMBERS], (known[_N_NUMBERS],), np.float64)
    weights, marginal, B, alpha = known[_WEIGHTS], known[_MARGINAL], known[_B], numbers[_ALPHA]
    rate = stepped(weights, known[_N], known[_TOTAL], known[_SQUARES], alpha, numbers[_TWO])
    moments = numbers[_PREDICTED + B : _PREDICTED + 6 * B].reshape((5, B))
    predicted, columns = numbers[_PREDICTED : _PREDICTED + B], known[_FIRST : _FIRST + B]
    smooth(alpha, numbers[_SLOWER], rate, 1, columns, predicted, whole_at(weights, known[_N]), numbers, moments)
    set_whole_at(marginal, known[_N_SEEN], whole_at(marginal, known[_N_SEEN]) + 1)
    set_attribute(marginal, known[_KNOWN], known[_NONE])


class IncludingMean:
    """What compiled code has to know of a mean prediction without a gap, which includes the one it is asked beside.

    Parameters
    ----------
    marginal
        The mean prediction; of one prediction at least. Held, and so is all whose address is known.
    """

    def __init__(self, marginal: MarginalPrediction) -> None:
        mean = self._mean = marginal.mean
        self._marginal, self._weights, names = marginal, mean.weights, tuple(mean.names)
        self._classes = names
        B = len(names)
        known = self._known = np.zeros(_FIRST + 2 * B, np.int64)
        known[[_WORDS, _B, _MEMORY, _IS_NUMBER]] = len(known), B, mean.memory, names == (None,)
        known[[_WEIGHTS, _MARGINAL]] = id(mean.weights), id(marginal)
        known[_N:_FIRST] = _NAMES
        known[_FIRST : _FIRST + B] = mean.columns_of(names)
        known[_FIRST + B :] = [*map(id, names)]
        numbers = mean.in_one_array(_PREDICTED + B, 0)
        numbers[[_ALPHA, _SLOWER, _TWO]] = mean.weights.alpha, mean.slower, 2.0
        known[[_N_NUMBERS, _NUMBERS]] = len(numbers), numbers.ctypes.data
        self.address: int = known.ctypes.data
        known[_HERE] = self.address + 8 * _GOES_ON
        self._moments: Array = mean.moments

    @property
    def classes(self) -> tuple[object, ...]:
        """The classes of the mean prediction; None alone where it is a number."""
        return self._classes

    @property
    def is_current(self) -> bool:
        """Whether the mean is where it was, with the classes that it had."""
        return self._marginal.mean is self._mean and self._mean.moments is self._moments
