"""Several explainers of one model, and the prediction itself, from one evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import ExplainerError, InvalidParameterError
from ..imputers.requests import Request
from ..models.function import model_function
from ..typing import Features, Output, Prediction
from .base import IncrementalExplainer
from .batching import Answer, Asking, ModelRaisedError
from .removal import RemovalExplainer


class _Pending(NamedTuple):
    x: Features
    requests: dict[str, Request | str]
    answers: dict[str, Answer]
    y_pred: Prediction


class Explainers:
    """Explainers of one model, whose rows of an observation are evaluated as one batch, h(x) among them once.

    They are themselves, and can be read and saved by themselves: what they say is what they say alone. Call
    `predict(x)` and, when the label is known, `explain(y)`; or `explain_one(x, y)`, which does both; and let the model
    learn after that.

    Parameters
    ----------
    model
        The model of all of them.
    explainers
        Any name to explainer. Those that share the batch are by removal, read the same output of the model, and take
        the observation as it is (their policy for missing values); others are asked one after the other.
    output
        What of the model `predict` returns; None is what the first explainer by removal reads, or else the model's own.

    Raises
    ------
    InvalidParameterError
        An explainer is of another model, or there under two names.

    Examples
    --------
    >>> from river import forest
    >>> from river.datasets import synth
    >>> from attributary_explainers import IncrementalPFI, IncrementalSAGE
    >>> model = forest.ARFClassifier(n_models=3, seed=1)
    >>> both = Explainers(model, {"pfi": IncrementalPFI(model, seed=1), "sage": IncrementalSAGE(model, seed=1)})
    >>> for x, y in synth.STAGGER(classification_function=2, seed=7).take(500):
    ...     importance = both.explain_one(x, y)
    ...     model.learn_one(x, y)
    >>> [min(values, key=values.get) for values in importance.values()]  # this concept: small and red
    ['shape', 'shape']
    """

    def __init__(
        self, model: Any, explainers: Mapping[str, IncrementalExplainer], output: Output | None = None
    ) -> None:
        self.model, self.explainers = model, dict(explainers)
        for name, explainer in self.explainers.items():
            if explainer.model is not model:
                raise InvalidParameterError("explainers", "explainers of the model that is given", name)
        if len(set(map(id, self.explainers.values()))) < len(self.explainers):
            raise InvalidParameterError("explainers", "each explainer under one name", list(self.explainers))
        by_removal = {name: e for name, e in self.explainers.items() if isinstance(e, RemovalExplainer)}
        read: Output = next((e.loss.output for e in by_removal.values()), "any") if output is None else output
        self.function = model_function(model, read)
        """The model's prediction of one row."""
        self._joined = {name: e for name, e in by_removal.items() if e.loss.output == read}
        for explainer in self._joined.values():
            explainer.share(self.function)
        self.n_predicted = 0
        """Observations so far."""
        self.n_rows = 0
        """Rows that the last `predict` asked for, x among them."""
        self._pending: _Pending | None = None
        self._predicted: tuple[Features, Prediction] | None = None

    def predict(self, x: Features, *, explain: bool = True) -> Prediction:
        """The model's prediction for `x`, with all rows that `explain` will need.

        Parameters
        ----------
        explain
            False: this observation is only predicted, or passed over: see `pass_over`.

        Raises
        ------
        Exception
            What the model raises on `x`.
        """
        self._pending = self._predicted = None
        self.n_predicted += 1
        x = dict(x)  # kept until `explain` or `pass_over`
        asking = Asking(self.function, x)
        requests: dict[str, Request | str] = {}
        if explain:
            requests = {name: e.ask(x, asking) for name, e in self._joined.items() if e.takes(x)}
        asked = [request if isinstance(request, Request) else None for request in requests.values()]
        self.n_rows = 1 + sum(request.n_rows for request in asked if request is not None)
        try:
            answers = asking.answer(asked or [None])
        except ModelRaisedError as raised:
            raise raised.error from None
        y_pred = answers[0].y_pred
        if explain:
            self._pending = _Pending(x, requests, dict(zip(requests, answers, strict=False)), y_pred)
        self._predicted = x, y_pred
        return y_pred

    def pass_over(self) -> None:
        """Only store the observation of the last `predict`; the next one explained stands for it too.

        See `RemovalExplainer.pass_over`. Explainers that are not by removal do not see it.

        Raises
        ------
        ExplainerError
            There is no such observation.
        """
        predicted, self._pending, self._predicted = self._predicted, None, None
        if predicted is None:
            raise ExplainerError("there is nothing to pass over: call predict(x, explain=False) first, once for each")
        x, y_pred = predicted
        for name, explainer in self.explainers.items():
            if isinstance(explainer, RemovalExplainer):
                explainer.pass_over(x, y_pred if name in self._joined else None)

    def explain(self, y: Any = None) -> dict[str, Any]:
        """Take the observation of the last `predict` into every explanation; return them by name.

        Raises
        ------
        ExplainerError
            There is no such observation.
        """
        pending, self._pending, self._predicted = self._pending, None, None
        if pending is None:
            raise ExplainerError("there is nothing to explain: call predict(x) first, once for each explain(y)")
        found: dict[str, Any] = {}
        for name, explainer in self.explainers.items():
            if name in pending.requests:
                found[name] = self._joined[name].hear(pending.x, y, pending.requests[name], pending.answers[name])
            else:
                shared = name in self._joined
                found[name] = explainer.explain_one(pending.x, y, y_pred=pending.y_pred if shared else None)
        return found

    def explain_one(self, x: Features, y: Any = None) -> dict[str, Any]:
        """`predict` and `explain`."""
        self.predict(x)
        return self.explain(y)
