"""From predictions to the dict of importances in one compiled call, for observations of the form of the one before.

It does what `IncrementalPFI._update` or `IncrementalSAGE._update`, `SmoothedImportance.mean`, and the counting of
`SlowFeatures` and of the explainer's `_store` do, to the last bit. What it does not cover is theirs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compiled import array_at, compiled, is_compiling
from ..imputers.requests import Request, SlotsRequest, WalkRequest
from ..imputers.storing import CHOSEN, MOVED, NOT_CHOSEN, STORED, Storing, store
from ..losses.kernels import ABSOLUTE, BRIER, CROSS_ENTROPY, SQUARED, are_finite, loss_of
from ..losses.losses import Loss
from ..objects import (
    addresses_of,
    append,
    attribute,
    dict_size,
    has,
    has_failed,
    is_a,
    list_size,
    next_entry,
    number,
    number_at,
    release,
    set_number_at,
    set_number_of,
    set_whole_at,
    value_of,
    whole,
    whole_at,
)
from ..predictions import Predictions
from ..smoothing.at_once import IncludingMean, can_step, enter, mean_beside, stepped
from ..smoothing.importance import SmoothedImportance
from ..smoothing.kernels import MEAN, smooth
from ..smoothing.marginal import Beside, MarginalPrediction
from ..smoothing.means import SmoothedMean
from ..typing import Array, Features, Importance, Prediction
from ..validation import LARGEST
from .batching import EvaluatedPredictions
from .kernels import DONE, growth_of_known, loss_of_mean, walk_of_known

_OF_LABELS, _OF_NUMBERS = (CROSS_ENTROPY, BRIER), (ABSOLUTE, SQUARED)

_WORDS, _N_NUMBERS, _START, _SIZE, _CODE, _MEMORY, _K, _F, _B, _IN_HALVES = range(10)
"""Places of `known`: how many entries it has, and how many `numbers`; where the rows begin; how many there are, or, of
SAGE, how many draws of a coalition; the loss; after how many observations features may be forgotten; the numbers of
players, of features that there is a mean of, and of classes of the mean prediction, 0 without one; whether its bias is
taken out."""

_NUMBERS, _P, _N_ROWS, _N_COLUMNS, _ORDERS, _N_ORDERS = range(10, 16)
"""Addresses of what arrays hold, with their shapes: `numbers`, the predictions, and the orders of the walks of SAGE."""

_COLUMNS, _BESIDE, _WEIGHTS, _MARGINAL_LOSS, _MODEL_LOSS, _PREDICTIONS = range(16, 22)
"""Addresses: of the dicts of the columns of classes, in predictions and in the mean prediction; of the weights; of the
two means of SAGE; of the predictions."""

_EXPLAINER, _SLOW, _IMPUTER, _RNG, _STORING, _MARGINAL, _STEADY, _MOST_WAITING, _INCLUDING = range(22, 31)
"""Addresses of who takes part after the importance, the explainer's 0 where that is left to Python; what `store` has to
know, 0 where storing is left to Python; the mean prediction in which predictions wait, 0 without one, and from how many
predictions on with how many that wait some enter it; what is to be known of one that includes the prediction itself, 0
without one."""

_GOES_ON, _KEY, _ENTRY, _HERE = range(31, 35)
"""Numbers for `next_entry`, and the address of the first."""

_NAMES = addresses_of(
    "n", "total", "squares", "_value", "_slow", "imputer", "_rng", "until", "own", "_n_seen", "_waiting",
    None, float, dict,
)  # fmt: skip
(
    _N, _TOTAL, _SQUARES, _VALUE, _SLOW_AT, _IMPUTER_AT, _RNG_AT, _UNTIL, _OWN, _N_SEEN, _WAITING,
    _NONE, _FLOAT, _DICT,
) = range(35, 49)  # fmt: skip
"""Addresses of names of attributes, and of constants."""

_FIRST = 49
"""Where the columns of the players begin, and after them the addresses of the names of features."""

_ALPHA, _SLOWER, _EPSILON, _LARGEST, _TWO, _MOST_BIAS, _RATE = range(7, 14)
"""Places of `numbers`, after the weights of `smoothing.kernels`. Two is the exponent of a square: a power that the
compiler sees is a square is made a product, which differs from Python's power in the last bit at times."""
_INCREMENTS = 14
"""Where the increments begin, and after them the moments, and the mean prediction and its standard errors."""

_LEFT, _WRITTEN, _COUNTED, _NOT_CHOSEN, _CHOSEN, _MOVED, _STORED, _DONE = range(8)
"""What has become of an observation: it is left to Python; it is taken into the importance; it is counted by
`SlowFeatures`, too; and by the reservoir, with a draw whether that chooses it; that has taken it in, and stored another
one that has waited; it is stored, if at all; all is done."""
_NO_COLUMN = -2
_UNREAD: Importance = {}


@compiled(reads_objects=True)
def take_growth(address: int, x: int, y: int, found: int) -> int:
    """Take what draws add to the loss of a prediction into the importance; return what has become of the observation.

    Parameters
    ----------
    address
        That of `known`, see `AtOnce`.
    x, y, found
        Addresses: of the observation, its label or target, and a dict that has the importance of each feature, written;
        0 where nobody reads that.
    """
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    numbers = array_at(known[_NUMBERS], (known[_N_NUMBERS],), np.float64)
    P = array_at(known[_P], (known[_N_ROWS], known[_N_COLUMNS]), np.float64)
    column, target = _column_of(y, known[_COLUMNS], known), _target_of(y, known)
    if column == _NO_COLUMN:
        return _LEFT
    increments = np.empty(known[_K])
    start, size, code = known[_START], known[_SIZE], known[_CODE]
    given = (code, numbers[_EPSILON], column, target, numbers[_LARGEST], increments)
    if growth_of_known(P, start, size, *given)[0] != DONE or not _smooth(increments, known, numbers):
        return _LEFT
    _write(known, numbers, found)
    return _follow(known, x)


@compiled(reads_objects=True)
def take_walk(address: int, x: int, y: int, found: int) -> int:
    """Take what players add to the prediction, on their way from the mean prediction, into SAGE values and its losses.

    Parameters
    ----------
    address, x, y, found
        As for `take_growth`, and so is what is returned.
    """
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    numbers = array_at(known[_NUMBERS], (known[_N_NUMBERS],), np.float64)
    P = array_at(known[_P], (known[_N_ROWS], known[_N_COLUMNS]), np.float64)
    orders = array_at(known[_ORDERS], (known[_N_ORDERS], known[_K]), np.int64)
    column, target = _column_of(y, known[_COLUMNS], known), _target_of(y, known)
    of_mean = _column_of(y, known[_BESIDE], known)
    including = known[_INCLUDING]
    if column == _NO_COLUMN or of_mean == _NO_COLUMN or not are_finite(P, 0, 0):
        return _LEFT
    B, at = known[_B], _INCREMENTS + known[_K] + 5 * known[_F]
    code, epsilon, largest, most = known[_CODE], numbers[_EPSILON], numbers[_LARGEST], numbers[_MOST_BIAS]
    means, errors = numbers[at : at + B], numbers[at + B : at + 2 * B]
    if including != 0 and not _is_beside(including, known, means):
        return _LEFT
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
    if including != 0:
        enter(including)
    for i in range(2):
        mean, loss = known[_MARGINAL_LOSS + i], marginal_loss if i == 0 else model_loss
        value = number_at(mean, known[_VALUE])
        set_number_at(mean, known[_VALUE], value + numbers[_RATE] * (loss - value))
    _write(known, numbers, found)
    return _follow(known, x)


@compiled(reads_objects=True)
def _is_beside(including: int, known: Any, means: Any) -> bool:
    """Write the mean prediction that includes that for the observation; return whether it was done."""
    own = attribute(known[_PREDICTIONS], known[_OWN])
    is_written = mean_beside(including, own, means)
    release(own)
    return is_written


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
    weights, K, F, alpha = known[_WEIGHTS], known[_K], known[_F], numbers[_ALPHA]
    if not can_step(weights, known[_N], known[_MEMORY]):
        return False
    rate = stepped(weights, known[_N], known[_TOTAL], known[_SQUARES], alpha, numbers[_TWO])
    numbers[_RATE] = rate
    numbers[_INCREMENTS : _INCREMENTS + K] = increments
    at = _INCREMENTS + K
    moments, columns = numbers[at : at + 5 * F].reshape((5, F)), known[_FIRST : _FIRST + K]
    smooth(alpha, numbers[_SLOWER], rate, 1, columns, increments, whole_at(weights, known[_N]), numbers, moments)
    return True


@compiled(reads_objects=True)
def _write(known: Any, numbers: Any, found: int) -> None:
    """Write the importance of each feature to a dict that has all of them, if there is one."""
    K, F = known[_K], known[_F]
    for f in range(F if found != 0 else 0):
        set_number_of(found, known[_FIRST + K + f], numbers[_INCREMENTS + K + MEAN * F + f])


@compiled(reads_objects=True)
def _follow(known: Any, x: int) -> int:
    """Do what follows the importance, one after the other until something is left; return what is done."""
    explainer, slow = known[_EXPLAINER], known[_SLOW]
    if explainer == 0 or not (has(explainer, known[_SLOW_AT], slow) and has(explainer, known[_RNG_AT], known[_RNG])):
        return _WRITTEN
    if not has(explainer, known[_IMPUTER_AT], known[_IMPUTER]):
        return _WRITTEN
    until = whole_at(slow, known[_UNTIL])
    if has_failed() or until <= 1:
        return _WRITTEN
    set_whole_at(slow, known[_UNTIL], until - 1)
    if known[_STORING] == 0:
        return _COUNTED
    own = attribute(known[_PREDICTIONS], known[_OWN])
    stored = store(known[_STORING], x, own)
    done = _COUNTED
    if stored == CHOSEN:
        done = _CHOSEN
    elif stored == NOT_CHOSEN:
        done = _NOT_CHOSEN
    elif stored == MOVED:
        done = _MOVED
    elif stored == STORED:
        done = _DONE if known[_MARGINAL] == 0 or _waits(known, own) else _STORED
    release(own)
    return done


@compiled(reads_objects=True)
def _waits(known: Any, own: int) -> bool:
    """Let the prediction wait until it enters the mean prediction; return whether that is all."""
    marginal = known[_MARGINAL]
    n_seen, waiting = whole_at(marginal, known[_N_SEEN]) + 1, attribute(marginal, known[_WAITING])
    is_fit = not has_failed() and n_seen >= known[_STEADY] and 0 <= list_size(waiting) < known[_MOST_WAITING] - 1
    if is_fit and is_a(own, known[_DICT]):
        here = known[_HERE]
        known[_GOES_ON] = 0
        for _ in range(dict_size(own)):
            is_fit = is_fit and next_entry(own, here) and _is_fit(known[_ENTRY], known)
    else:
        is_fit = is_fit and _is_fit(own, known)
    if is_fit:
        append(waiting, own)
        set_whole_at(marginal, known[_N_SEEN], n_seen)
    release(waiting)
    return not has_failed() and is_fit


@compiled(reads_objects=True)
def _is_fit(one: int, known: Any) -> bool:
    """Return whether a number is a float that may enter a mean."""
    return is_a(one, known[_FLOAT]) and abs(number(one)) < LARGEST


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
        self.request, self.predictions = request, predictions
        self._smoothed, self._function, self._is_of_labels = smoothed, predictions.function, loss.code in _OF_LABELS
        self._weights = smoothed.weights  # held, as their address is known
        self._found = dict.fromkeys(smoothed.names, 0.0)
        self._columns: dict[Any, int] | None = None
        K, F = len(names), len(self._found)
        known = self._known = np.zeros(_FIRST + K + F, np.int64)
        known[[_START, _SIZE, _CODE, _MEMORY]] = predictions.start, request.n_rows, loss.code, smoothed.memory
        known[[_WORDS, _K, _F, _WEIGHTS, _PREDICTIONS]] = len(known), K, F, id(smoothed.weights), id(predictions)
        known[_N:_FIRST] = _NAMES
        known[_FIRST : _FIRST + K] = smoothed.columns_of(names)
        known[_FIRST + K :] = [*map(id, self._found)]
        numbers = self._numbers = smoothed.in_one_array(_INCREMENTS + K, room)
        numbers[[_ALPHA, _SLOWER, _EPSILON, _LARGEST]] = smoothed.weights.alpha, smoothed.slower, loss.epsilon, LARGEST
        numbers[[_TWO, _MOST_BIAS]] = 2.0, loss.most_bias
        known[[_N_NUMBERS, _NUMBERS]] = len(numbers), numbers.ctypes.data
        self._address = known.ctypes.data
        known[_HERE] = self._address + 8 * _GOES_ON
        self._P: Array | None = None
        self._slow: Any = None
        self._storing: Storing | None = None
        self._marginal: MarginalPrediction | None = None
        self._moments: Array | None = smoothed.moments
        self._latest = names, numbers[_INCREMENTS : _INCREMENTS + K]

    def is_of(self, request: Request | str, predictions: Predictions) -> bool:
        """Return whether it takes in observations with these."""
        return self.request is request and self.predictions is predictions and self._moments is self._smoothed.moments

    def follow(self, explainer: Any) -> None:
        """Have the kernel do what follows the importance, too, where `explainer` does it as this package does."""
        imputer, slow, generator = explainer.imputer, explainer._slow, explainer._rng
        if not stores_as_here(explainer):
            return
        self._slow = slow  # held; the explainer holds this one
        self._known[[_EXPLAINER, _SLOW, _IMPUTER, _RNG]] = [*map(id, (explainer, slow, imputer, generator))]
        if Storing.can_be(imputer):
            self._storing = Storing(imputer, imputer.reservoir, generator)
            self._known[_STORING] = self._storing.address

    def update(
        self, explainer: Any, x: Features, y: Any, request: Request | str, predictions: Predictions, wanted: bool
    ) -> Importance | None:
        """Take an observation in as `RemovalExplainer.update` does; None, and nothing is done, where that has to do it.

        Parameters
        ----------
        explainer
            Whose importance it is. The others are as for `RemovalExplainer.update`.
        """
        if not (request is self.request and predictions is self.predictions):
            return None
        smoothed, P = self._smoothed, predictions.array
        if smoothed.moments is not self._moments or (P is not self._P and not self._find(P)):
            return None
        if self._is_of_labels:
            columns = self._function.columns
            if columns is not self._columns:
                self._columns, self._known[_COLUMNS] = columns, id(columns)
        found = self._found.copy() if wanted else _UNREAD
        done = self._take(x, y, id(found) if wanted else 0)
        if done == _LEFT:
            return None
        smoothed.latest = self._latest
        if done != _DONE:
            self._finish(done, explainer, x, predictions.own)
        return found

    def _find(self, P: Array) -> bool:
        """Find where predictions are in memory; return whether the kernel reads them."""
        if not (P.ndim == 2 and P.dtype == np.float64 and P.flags.c_contiguous):
            return False
        self._P = P  # held, as its address is known
        self._known[[_P, _N_ROWS, _N_COLUMNS]] = P.ctypes.data, *P.shape
        return True

    def _take(self, x: Features, y: Any, found: int) -> int:
        return take_growth(self._address, id(x), id(y), found)

    def _finish(self, done: int, explainer: Any, x: Features, y_pred: Prediction) -> None:
        """Do what the kernel has left to Python of an observation that it has taken in."""
        imputer = explainer.imputer
        if done == _WRITTEN:
            explainer._slow.update(x, imputer.reservoir.rows)
        if done <= _COUNTED:
            self._store(explainer, x, y_pred)
            return
        if done != _STORED and self._storing is not None:
            if done == _MOVED:
                imputer.follow(self._storing.slot, x)
            else:
                imputer.update_counted(x, y_pred, explainer._rng, done == _CHOSEN)
            self._storing.look_again()
        if self._marginal is not None:
            self._marginal.store(y_pred)

    def _store(self, explainer: Any, x: Features, y_pred: Prediction) -> None:
        """Do what `explainer` does to store an observation, but for what the kernel has done of it."""
        explainer._store(x, y_pred)

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
        self._losses, self._orders, self._in_halves = losses, request.orders, in_halves
        self._including = None if marginal.gap else IncludingMean(marginal)
        self._mean = marginal
        self._beside: Beside | None = None
        self._columns_beside: dict[Any, int] = {}
        self._n_classes = B = len(marginal.mean.names)
        super().__init__(smoothed, names, loss, request, predictions, 2 * B)
        self._at = len(self._numbers) - 2 * B
        known = self._known
        known[[_SIZE, _B, _IN_HALVES]] = n, B, in_halves
        known[[_MARGINAL_LOSS, _MODEL_LOSS]] = [*map(id, losses)]
        known[[_ORDERS, _N_ORDERS]] = self._orders.ctypes.data, len(self._orders)
        if self._including is not None:
            known[_INCLUDING] = self._including.address
            self._know_columns(self._including.classes)
        else:
            self._marginal = marginal
            known[[_MARGINAL, _STEADY, _MOST_WAITING]] = id(marginal), marginal.steady, marginal.most_waiting

    def _take(self, x: Features, y: Any, found: int) -> int:
        if not (self._is_read() if self._including is None else self._including.is_current):
            self._moments = None  # there is no room: another one is to be made
            return _LEFT
        return take_walk(self._address, id(x), id(y), found)

    def _is_read(self) -> bool:
        """Read the mean prediction that predictions wait for, where it is another one; return whether there is room."""
        beside = self._mean.known
        if beside is not None and beside is self._beside:
            return True
        if beside is None:
            beside = self._mean.beside(None)
        names, means, errors = beside
        B, at = self._n_classes, self._at
        if len(names) != B:
            return False
        self._numbers[at : at + B] = means
        self._numbers[at + B :] = errors if self._in_halves else 0.0
        self._know_columns(names)
        self._beside = beside
        return True

    def _know_columns(self, classes: tuple[Any, ...]) -> None:
        if self._is_of_labels:
            self._columns_beside = {name: i for i, name in enumerate(classes)}
            self._known[_BESIDE] = id(self._columns_beside)

    def _store(self, explainer: Any, x: Features, y_pred: Prediction) -> None:
        if self._including is None:
            explainer._store(x, y_pred)
        else:  # the mean prediction has it
            explainer.imputer.update(x, y_pred, explainer._rng)


def stores_as_here(explainer: Any) -> bool:
    """Return whether an explainer stores observations as this package does."""
    return bool(type(explainer)._store.__module__.startswith(f"{__package__}."))


def can_be_at_once(loss: Loss, request: Request | str, predictions: Predictions) -> bool:
    """Return whether observations like this may be taken in by a kernel: `AtOnce` has their form."""
    is_known = loss.code in _OF_LABELS or loss.code in _OF_NUMBERS
    return (
        is_known and is_compiling() and isinstance(request, SlotsRequest) and type(predictions) is EvaluatedPredictions
    )
