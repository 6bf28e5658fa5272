"""From predictions to the dict of importances in one compiled call, for observations of the form of the one before.

It does what `IncrementalPFI._update` or `IncrementalSAGE._update` and `SmoothedImportance.mean` do, to the last bit.
What it does not cover is theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import compiled, is_compiling
from ..imputers.requests import Request, SlotsRequest, WalkRequest
from ..losses.kernels import ABSOLUTE, BRIER, CROSS_ENTROPY, SQUARED, are_finite, loss_of
from ..losses.losses import Loss
from ..objects import (
    addresses_of,
    has_failed,
    is_a,
    number,
    number_at,
    set_number_at,
    set_number_of,
    set_whole_at,
    value_of,
    whole,
    whole_at,
)
from ..predictions import Predictions
from ..smoothing.importance import SmoothedImportance
from ..smoothing.kernels import MEAN, smooth
from ..smoothing.marginal import Beside, MarginalPrediction
from ..smoothing.means import SmoothedMean
from ..typing import Array, Importance
from ..validation import LARGEST
from .batching import EvaluatedPredictions
from .kernels import DONE, growth_of_known, loss_of_mean, walk_of_known

_OF_LABELS, _OF_NUMBERS = (CROSS_ENTROPY, BRIER), (ABSOLUTE, SQUARED)

_START, _SIZE, _CODE, _MEMORY, _K, _F, _B, _IN_HALVES = range(8)
"""Places of `known`: where the rows begin; how many there are, or, of SAGE, how many draws of a coalition; the loss;
after how many observations features may be forgotten; the numbers of players, of features that there is a mean of, and
of classes of the mean prediction, 0 without one; whether its bias is taken out."""

_COLUMNS, _BESIDE, _WEIGHTS, _MARGINAL_LOSS, _MODEL_LOSS = range(8, 13)
"""Addresses: of the dicts of the columns of classes, in predictions and in the mean prediction; of the weights; of the
two means of SAGE."""

_NAMES = addresses_of("n", "total", "squares", "_value", None, float)
_N, _TOTAL, _SQUARES, _VALUE, _NONE, _FLOAT = range(13, 19)
"""Addresses of names of attributes, and of constants."""

_FIRST = 19
"""Where the columns of the players begin, and after them the addresses of the names of features."""

_ALPHA, _SLOWER, _EPSILON, _LARGEST, _TWO, _MOST_BIAS, _RATE = range(7, 14)
"""Places of `numbers`, after the weights of `smoothing.kernels`. Two is the exponent of a square: a power that the
compiler sees is a square is made a product, which differs from Python's power in the last bit at times."""
_INCREMENTS = 14
"""Where the increments begin, and after them the moments, and the mean prediction and its standard errors."""

_LEFT, _WRITTEN = 0, 1
"""What has become of an observation: it is left to Python; it is taken in."""
_NO_COLUMN = -2


@compiled(reads_objects=True)
def take_growth(P: Any, known: Any, numbers: Any, y: int, found: int) -> int:
    """Take what draws add to the loss of a prediction into the importance; return 0, and nothing is done, or 1.

    Parameters
    ----------
    known, numbers
        See `AtOnce`.
    y, found
        Addresses: of the label or target, and of a dict that has the importance of each feature, written.
    """
    column, target = _column_of(y, known[_COLUMNS], known), _target_of(y, known)
    if column == _NO_COLUMN:
        return _LEFT
    increments = np.empty(known[_K])
    start, size, code = known[_START], known[_SIZE], known[_CODE]
    given = (code, numbers[_EPSILON], column, target, numbers[_LARGEST], increments)
    if growth_of_known(P, start, size, *given)[0] != DONE or not _smooth(increments, known, numbers):
        return _LEFT
    return _write(known, numbers, found)


@compiled(reads_objects=True)
def take_walk(P: Any, known: Any, numbers: Any, orders: Any, y: int, found: int) -> int:
    """Take what players add to the prediction, on their way from the mean prediction, into SAGE values and its losses.

    Parameters
    ----------
    orders
        Shape (orders, players): the players by number, as each order walks them.
    known, numbers, y, found
        As for `take_growth`, and so is what is returned.
    """
    column, target = _column_of(y, known[_COLUMNS], known), _target_of(y, known)
    of_mean = _column_of(y, known[_BESIDE], known)
    if column == _NO_COLUMN or of_mean == _NO_COLUMN or not are_finite(P, 0, 0):
        return _LEFT
    B, at = known[_B], _INCREMENTS + known[_K] + 5 * known[_F]
    code, epsilon, largest, most = known[_CODE], numbers[_EPSILON], numbers[_LARGEST], numbers[_MOST_BIAS]
    means, errors = numbers[at : at + B], numbers[at + B : at + 2 * B]
    marginal_loss = loss_of_mean(means, errors, code, epsilon, of_mean, target, most)
    model_loss = loss_of(P, 0, code, epsilon, column, target)
    if not (abs(model_loss) < largest and abs(marginal_loss) < largest):
        return _LEFT
    increments = np.empty(known[_K])
    way = (orders, marginal_loss, model_loss, largest, increments, np.empty((orders.shape[1], 0)))
    reading = (code, epsilon, column, target, known[_IN_HALVES] != 0, most)
    if walk_of_known(P, known[_START], known[_SIZE], *reading, *way)[0] != DONE:
        return _LEFT
    if not _smooth(increments, known, numbers):
        return _LEFT
    for i in range(2):
        mean, loss = known[_MARGINAL_LOSS + i], marginal_loss if i == 0 else model_loss
        value = number_at(mean, known[_VALUE])
        set_number_at(mean, known[_VALUE], value + numbers[_RATE] * (loss - value))
    return _write(known, numbers, found)


@compiled(reads_objects=True)
def _column_of(y: int, columns: int, known: Any) -> int:
    """Return the column of a class, 0 for a number and -1 where there is none; -2 where Python has to look."""
    if columns == 0:
        return 0
    if y == known[_NONE] or (is_a(y, known[_FLOAT]) and number(y) != number(y)):
        return _NO_COLUMN
    found = value_of(columns, y)
    if found != 0:
        return whole(found)
    return _NO_COLUMN if has_failed() else -1


@compiled(reads_objects=True)
def _target_of(y: int, known: Any) -> float:
    """Return a target as a float; NaN where it is no number, so that no loss is finite, and 0 for a label."""
    if known[_COLUMNS] != 0:
        return 0.0
    target = number(y)
    return math.nan if has_failed() else target


@compiled(reads_objects=True)
def _smooth(increments: Any, known: Any, numbers: Any) -> bool:
    """Smooth increments by the next weights, as `Weights.step` has them; return whether it was done."""
    weights, K, F = known[_WEIGHTS], known[_K], known[_F]
    n, alpha = whole_at(weights, known[_N]), numbers[_ALPHA]
    total, squares = number_at(weights, known[_TOTAL]), number_at(weights, known[_SQUARES])
    # Afterwards features may be forgotten; and the first observation is another one.
    if has_failed() or n < 1 or (n + 1) % known[_MEMORY] == 0:
        return False
    total = total + alpha * (1.0 - total)
    rate = min(alpha / total, 1.0)
    squares = math.pow(1.0 - rate, numbers[_TWO]) * squares + rate * rate
    set_whole_at(weights, known[_N], n + 1)
    set_number_at(weights, known[_TOTAL], total)
    set_number_at(weights, known[_SQUARES], squares)
    numbers[_RATE] = rate
    numbers[_INCREMENTS : _INCREMENTS + K] = increments
    at = _INCREMENTS + K
    moments, columns = numbers[at : at + 5 * F].reshape((5, F)), known[_FIRST : _FIRST + K]
    smooth(alpha, numbers[_SLOWER], rate, 1, columns, increments, n + 1, numbers, moments)
    return True


@compiled(reads_objects=True)
def _write(known: Any, numbers: Any, found: int) -> int:
    """Write the importance of each feature to a dict that has all of them."""
    K, F = known[_K], known[_F]
    for f in range(F):
        set_number_of(found, known[_FIRST + K + f], numbers[_INCREMENTS + K + MEAN * F + f])
    return _WRITTEN


class AtOnce:
    """Takes observations of one form into an importance by a kernel that reads and writes Python objects itself.

    The moments and the other numbers of the importance are parts of one array then. A copy is None: it holds addresses.

    Parameters
    ----------
    smoothed, names
        The importance, and the names of the players; it has had observations of them.
    loss
        One that the kernels know, other than the score.
    request, predictions
        Of an observation of the form. `update` is for these very objects: the next observations of the form have them.
    room
        For how many more numbers the array has room.
    """

    def __init__(
        self,
        smoothed: SmoothedImportance,
        names: tuple[Any, ...],
        loss: Loss,
        request: SlotsRequest,
        predictions: EvaluatedPredictions,
        room: int = 0,
    ) -> None:
        self.request, self.predictions, self.names = request, predictions, names
        self._smoothed, self._function, self._is_of_labels = smoothed, predictions.function, loss.code in _OF_LABELS
        self._weights = smoothed.weights  # held, as their address is known
        self._found = dict.fromkeys(smoothed.names, 0.0)
        self._columns: dict[Any, int] | None = None
        K, F = len(names), len(self._found)
        known = self._known = np.zeros(_FIRST + K + F, np.int64)
        known[[_START, _SIZE, _CODE, _MEMORY]] = predictions.start, request.n_rows, loss.code, smoothed.memory
        known[[_K, _F, _WEIGHTS]] = K, F, id(smoothed.weights)
        known[_N:_FIRST] = _NAMES
        known[_FIRST : _FIRST + K] = smoothed.columns_of(names)
        known[_FIRST + K :] = [*map(id, self._found)]
        numbers = self._numbers = smoothed.in_one_array(_INCREMENTS + K, room)
        numbers[[_ALPHA, _SLOWER, _EPSILON, _LARGEST]] = smoothed.weights.alpha, smoothed.slower, loss.epsilon, LARGEST
        numbers[[_TWO, _MOST_BIAS]] = 2.0, loss.most_bias
        self._moments: Array | None = smoothed.moments
        self._latest = names, numbers[_INCREMENTS : _INCREMENTS + K]

    def is_of(self, names: tuple[Any, ...], request: Request | str, predictions: Predictions) -> bool:
        """Return whether it takes in observations with these."""
        return (
            self.request is request
            and self.predictions is predictions
            and self.names is names
            and self._moments is self._smoothed.moments
        )

    def update(self, y: Any) -> Importance | None:
        """Take in an observation with this label or target, and return the importance; None, and nothing is done."""
        if self._is_of_labels:
            columns = self._function.columns
            if columns is not self._columns:
                self._columns, self._known[_COLUMNS] = columns, id(columns)
        found = self._found.copy()
        if not self._take(self.predictions.array, y, found):
            return None
        self._smoothed.latest = self._latest
        return found

    def _take(self, P: Array, y: Any, found: Importance) -> int:
        return take_growth(P, self._known, self._numbers, id(y), id(found))

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


class WalkAtOnce(AtOnce):
    """Takes observations of one form into SAGE values, and into the losses of the mean prediction and of the model.

    Parameters
    ----------
    marginal, losses
        The mean prediction and the two losses, whose weights are those of the values.
    in_halves, n
        Whether the bias of few draws is taken out; draws of a coalition.
    smoothed, names, loss, request, predictions
        As for `AtOnce`.
    """

    def __init__(
        self,
        smoothed: SmoothedImportance,
        names: tuple[Any, ...],
        loss: Loss,
        request: WalkRequest,
        predictions: EvaluatedPredictions,
        marginal: MarginalPrediction,
        losses: tuple[SmoothedMean, SmoothedMean],
        n: int,
        in_halves: bool,
    ) -> None:
        self._marginal, self._losses, self._orders, self._in_halves = marginal, losses, request.orders, in_halves
        self._beside: Beside | None = None
        self._columns_beside: dict[Any, int] = {}
        assert marginal.known is not None
        self._n_classes = len(marginal.known[0])
        super().__init__(smoothed, names, loss, request, predictions, 2 * self._n_classes)
        self._at = len(self._numbers) - 2 * self._n_classes
        known = self._known
        known[[_SIZE, _B, _IN_HALVES]] = n, self._n_classes, in_halves
        known[[_MARGINAL_LOSS, _MODEL_LOSS]] = [*map(id, losses)]

    def _take(self, P: Array, y: Any, found: Importance) -> int:
        beside = self._marginal.known
        if (beside is None or beside is not self._beside) and not self._read(beside):
            return _LEFT
        return take_walk(P, self._known, self._numbers, self._orders, id(y), id(found))

    def _read(self, beside: Beside | None) -> bool:
        """Read the mean prediction; return whether there is one of as many classes."""
        if beside is None:
            beside = self._marginal.beside(None)
        names, means, errors = beside
        B, at = self._n_classes, self._at
        if len(names) != B:
            self._moments = None  # there is no room: another one is to be made
            return False
        self._numbers[at : at + B] = means
        self._numbers[at + B :] = errors if self._in_halves else 0.0
        if self._is_of_labels:
            self._columns_beside = {name: i for i, name in enumerate(names)}
            self._known[_BESIDE] = id(self._columns_beside)
        self._beside = beside
        return True


def can_be_at_once(loss: Loss, request: Request | str, predictions: Predictions) -> bool:
    """Return whether observations like this may be taken in by a kernel: `AtOnce` has their form."""
    is_known = loss.code in _OF_LABELS or loss.code in _OF_NUMBERS
    return (
        is_known and is_compiling() and isinstance(request, SlotsRequest) and type(predictions) is EvaluatedPredictions
    )
