"""A linear model, alone or behind a standard scaler, read and evaluated by one call of compiled code.

It does what `LinearEvaluator` does, to the last bit, where all that the two have learnt are floats and each feature has
its weight. All else is left to Python.

Every kernel here reads `known`, whose entries are named below: numbers, and addresses.
"""

from __future__ import annotations

from collections import defaultdict
from operator import is_
from typing import Any

import numpy as np

from ...compiled import array_at, compiled, is_compiling
from ...objects import addresses_of, attribute, entry_of, has, has_failed, is_a, number, release, value_of
from ...typing import Array
from .linear_kernels import predict_rows
from .linear_models import KINDS, glm_weights
from .transforms import Plan

_N, _F, _R, _N_OUTPUTS, _DEPTH, _LINK = range(6)
"""How many columns the model gets; how many features, rows and columns of predictions; whether there is a scaler; the
link."""

_X, _P, _SOURCE, _VALUES, _MODEL, _SCALER, _WEIGHTS, _LOSS, _MEANS, _VARIANCES = range(6, 16)
"""Addresses of what arrays hold, and of objects."""

_NAMES = addresses_of("_weights", "loss", "intercept", "means", "vars", float)
_WEIGHTS_AT, _LOSS_AT, _INTERCEPT, _MEANS_AT, _VARIANCES_AT, _FLOAT = range(16, 22)
"""Addresses of names of attributes, and of a type."""

_COLUMNS = 22
"""Where the names of the columns begin."""


class AtOnce:
    """Lets compiled code know a model, a scaler and rows; it holds the objects whose addresses it gives.

    Parameters
    ----------
    model
        A generalised linear model.
    scaler
        A standard scaler of all its features, without a window; None where there is no scaler.
    plan
        The columns that the model gets.
    """

    def __init__(self, model: Any, scaler: Any, plan: Plan) -> None:
        self._model, self._scaler, self._source = model, scaler, plan.source
        self._names = [column.name for column in plan.numbers]
        self._depth, self._link = int(scaler is not None), KINDS[type(model)].link
        self._values = np.empty((2 * self._depth + 1) * len(self._names) + 1)
        self._seen: Array | None = None
        self._held: tuple[Any, ...] = ()
        self._known = np.empty(0, np.int64)
        self._address = 0

    @classmethod
    def of(cls, model: Any, plan: Plan) -> AtOnce | None:
        """Return what lets compiled code know a model; None where it cannot read it, or what is before it."""
        scaler = plan.only_standard_scaler
        if KINDS[type(model)].weights is not glm_weights or (scaler is None and not plan.has_numbers_alone):
            return None
        # Others than texts may run code of their own where they are looked up.
        if not is_compiling() or any(type(column.name) is not str for column in plan.numbers):
            return None
        return cls(model, scaler, plan)

    def address(self, X: Array, P: Array) -> int:
        """Return the address of what `predict_at_once` has to know; 0 where rows are not known to come again.

        Parameters
        ----------
        X
            The rows that were just evaluated, in whose memory the next ones may be.
        P
            Room for the predictions.
        """
        if X is not self._seen:
            self._seen = X
            return 0
        model, scaler = self._model, self._scaler
        held = X, P, model._weights, model.loss, *((scaler.means, scaler.vars) if self._depth else (None, None))
        if len(held) == len(self._held) and all(map(is_, held, self._held)):
            return self._address
        self._held, self._address = held, 0
        is_plain = all(type(one) in (dict, defaultdict) for one in held[4:] if self._depth)
        if is_plain and X.flags.c_contiguous and X.dtype == np.float64:
            numbers = [len(self._names), X.shape[1], *P.shape, self._depth, self._link]
            data = [one.ctypes.data for one in (X, P, self._source, self._values)]
            objects = map(id, (model, scaler, *held[2:]))
            known = [*numbers, *data, *objects, *_NAMES.tolist(), *map(id, self._names)]
            self._known = np.array(known, np.int64)
            self._address = self._known.ctypes.data
        return self._address


@compiled(reads_objects=True)
def predict_at_once(address: int) -> int:
    """Write the predictions for rows; return 0 where Python is to do it.

    Parameters
    ----------
    address
        Of what is known.
    """
    known = array_at(address, (_COLUMNS,), np.int64)
    n, depth, link = known[_N], known[_DEPTH], known[_LINK]
    values = array_at(known[_VALUES], ((2 * depth + 1) * n + 1,), np.float64)
    is_fine = _is_as_before(known) and _are_read(known, array_at(address + 8 * _COLUMNS, (n,), np.int64), values)
    if has_failed() or not is_fine:
        return 0
    X = array_at(known[_X], (known[_R], known[_F]), np.float64)
    P = array_at(known[_P], (known[_R], known[_N_OUTPUTS]), np.float64)
    source, none = array_at(known[_SOURCE], (n,), np.int64), array_at(address, (0,), np.int64)
    return int(predict_rows(X, source, none, none, depth, 0.5, values, link, P))


@compiled(reads_objects=True)
def _is_as_before(known: Any) -> bool:
    """Return whether a model and its scaler keep what they learn where they did."""
    model, scaler = known[_MODEL], known[_SCALER]
    if not (has(model, known[_WEIGHTS_AT], known[_WEIGHTS]) and has(model, known[_LOSS_AT], known[_LOSS])):
        return False
    if known[_DEPTH] == 0:
        return True
    return has(scaler, known[_MEANS_AT], known[_MEANS]) and has(scaler, known[_VARIANCES_AT], known[_VARIANCES])


@compiled(reads_objects=True)
def _are_read(known: Any, names: Any, values: Any) -> bool:
    """Read what the two have learnt; return whether all of it is there, as floats."""
    n, kind = known[_N], known[_FLOAT]
    w = 2 * known[_DEPTH] * n
    for i in range(n):
        if w != 0:
            mean, variance = value_of(known[_MEANS], names[i]), value_of(known[_VARIANCES], names[i])
            if not (is_a(mean, kind) and is_a(variance, kind)):
                return False
            values[i], values[n + i] = number(mean), number(variance)
        weight = entry_of(known[_WEIGHTS], names[i])
        is_float = is_a(weight, kind)
        if is_float:
            values[w + i] = number(weight)
        release(weight)
        if not is_float:
            return False
    intercept = attribute(known[_MODEL], known[_INTERCEPT])
    is_float = is_a(intercept, kind)
    if is_float:
        values[w + n] = number(intercept)
    release(intercept)
    return is_float
