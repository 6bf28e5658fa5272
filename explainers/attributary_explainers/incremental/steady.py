"""Observations of one form, evaluated one after another in the memory that the first of them has made."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..evaluation.evaluator import NotCoveredError
from ..evaluation.function import FastFunction
from ..evaluation.schema import LARGEST_EXACT, Encoded, NotEncodableError, Schema
from ..imputers.marginal import MarginalImputer
from ..imputers.requests import Request, SlotsRequest
from ..predictions import Predictions
from ..typing import Array, Features, ModelFunction, Prediction
from .batching import EvaluatedPredictions, Requesting, ask_the_model, is_large, order_of
from .redrawing import Known, take


class Redrawing(Requesting, Protocol):
    """An explainer by removal, as it is asked to draw for another observation of the same form."""

    imputer: MarginalImputer
    redraws: bool

    def redraw(self, request: SlotsRequest, x: Features) -> None:
        """Draw for an observation what `request` would, and let the request be that of this observation."""


class Steady:
    """Evaluates observations that have the features of the one before, with the rows that explainers request.

    It gives what `batching.predict` gives, draws included, to the last bit. No object is made for it: the requests
    draw anew, and rows and predictions are those of the observation before, written over. A copy of it is None: the
    next observation makes another one.
    """

    def __init__(
        self,
        function: FastFunction,
        schema: Schema,
        x: Features,
        explainers: Sequence[Redrawing],
        requests: Sequence[SlotsRequest],
    ) -> None:
        self._function, self._schema, self._names = function, schema, tuple(x)
        self._get, self._is_coded = schema.get, bool(schema.codes)
        self._plain = schema.plain | (schema.numbers & {np.float64})
        self._asked = list(zip(explainers, requests, strict=True))
        self._stored = [(e.imputer, e.imputer.stored) for e in explainers if e.imputer.stored is not None]
        self.n_rows = 1 + sum(request.n_rows for request in requests)
        self._X: Array = np.empty((self.n_rows, len(schema)))
        # Where an observation can be stored at once, it need not be encoded for that.
        self._storing = [imputer for imputer, _ in self._stored if imputer.reservoir.gap <= 1]
        self._encoded = Encoded(schema, self._X[0])
        self._row = self._X.data.cast("B")
        self._pack = struct.Struct(f"{len(schema)}d").pack_into
        self.requests: list[Request | str] = list(requests)
        nothing = np.empty((0, 0))
        self._evaluated = [EvaluatedPredictions(None, nothing, start, function) for start in self._starts()]
        self._found: list[Predictions] = list(self._evaluated)
        self._order = order_of(requests)
        self._known: Known | None = None
        self._at = 0
        """The address of what compiled code has to know; 0 where it cannot take observations, and at first."""
        self._is_new = True

    def _let_know(self) -> None:
        """Let compiled code take the observations to come, where it can."""
        self._is_new = False
        self._known = Known.of(self._function, self._schema, self._names, self._plain, self._asked, self._X)
        self._at = 0 if self._known is None else self._known.address

    def _starts(self) -> list[int]:
        starts = [1]
        for _, request in self._asked:
            starts.append(starts[-1] + request.n_rows)
        return starts[:-1]

    @classmethod
    def after(
        cls,
        function: ModelFunction,
        x: Features,
        explainers: Sequence[Requesting],
        requests: Sequence[Request | str],
        predictions: Sequence[Predictions],
    ) -> Steady | None:
        """Return what evaluates observations like `x`, which has just been evaluated; None where they have to be new.

        Parameters
        ----------
        requests, predictions
            What `batching.predict` has given for `x`.
        """
        if not requests or not isinstance(requests[0], SlotsRequest):  # as of other removals, at each observation
            return None
        schema = function.schema_at_hand if isinstance(function, FastFunction) else None
        if schema is None or schema.keys != x.keys() or not all(type(p) is EvaluatedPredictions for p in predictions):
            return None
        size = 1
        for explainer, request in zip(explainers, requests, strict=False):
            if not (isinstance(request, SlotsRequest) and request.is_of_all(schema) and explainer.redraws):  # type: ignore[attr-defined]
                return None
            size += request.n_rows
        if is_large(size, len(schema)):
            return None
        return cls(function, schema, x, explainers, requests)  # type: ignore[arg-type]  # checked one by one

    def predict(self, x: Features, y_pred: Prediction = None) -> tuple[list[Request | str], list[Predictions]] | None:
        """Evaluate an observation as `batching.predict` does; None, and nothing is done, where it has another form.

        What is returned holds until the next call.

        Raises
        ------
        ModelRaisedError
            The fast path has refused, and the model raised on `x` itself.
        """
        if self._at and take(id(x), self._at):
            for imputer in self._storing:
                imputer.take_encoded(x, self._encoded)
        elif not self._take(x):
            return None
        function, X = self._function, self._X
        try:
            P = function.predict(X, self._order)
        except NotCoveredError as reason:
            return self.requests, ask_the_model(function, x, self.requests, y_pred, reason)
        own = function.first(P, x)
        for predictions in self._evaluated:
            predictions.own, predictions.array = own, P
        return self.requests, self._found

    def _take(self, x: Features) -> bool:
        """Read an observation, draw for it and fill the rows; return whether it has the form of the one before."""
        if not self.read(x):
            return False
        start = 1
        for explainer, request in self._asked:
            explainer.redraw(request, x)
            request.fill(self._X, start, self._schema)
            start += request.n_rows
        if self._is_new or (self._known is not None and self._known.is_outdated):
            self._let_know()
        return True

    def read(self, x: Features) -> bool:
        """Write an observation to the first row; return whether it has the form of the one before."""
        function = self._function
        if tuple(x) != self._names or function.schema_at_hand is not self._schema:
            return False
        for imputer, stored in self._stored:
            if imputer.stored is not stored or not stored.is_complete:
                return False
        if self._is_coded:
            try:
                if not function.fits(x):
                    return False
                self._X[0] = self._schema.encode(x)
            except NotEncodableError:
                return False
        else:
            values = self._get(x)
            try:
                # `fsum`, since numpy's floats would warn of a sum that is infinite.
                if not (self._plain.issuperset(map(type, values)) and math.fsum(map(abs, values)) < LARGEST_EXACT):
                    return False
            except OverflowError:
                return False
            self._pack(self._row, 0, *values)
        for imputer in self._storing:
            imputer.take_encoded(x, self._encoded)
        return True

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()
