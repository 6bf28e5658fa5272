"""Several explainers of a model, and its prediction, from the same batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..errors import ExplainerError, InvalidParameterError
from ..evaluation.function import FastFunction
from ..missing import check_missing, drop_missing, read_missing
from ..models.cost import is_cheap
from ..models.function import model_function
from ..notebook.cards import Card, figure
from ..notebook.described import Described
from ..notebook.frames import joined_frame
from ..notebook.rows import ExplainsMany, as_row
from ..predictions import Predictions
from ..removal.imputer import Request
from ..typing import Features, ModelFunction, Output, Prediction
from .base import IncrementalExplainer
from .removal import EvaluatedPredictions, ModelRaisedError, RemovalExplainer
from .removal import predict as predict_batch


class Explainers(Described, ExplainsMany):
    """Explainers of the same model that share a batch per observation.

    The batch has all rows of an observation, h(x) among them once. Each explainer can be read and saved by itself, and
    says what it says alone. Call `predict(x)` and, when the label is known, `explain(y)`; or `explain_one(x, y)`, which
    does both; then let the model learn.

    Parameters
    ----------
    model
        The model of all of them.
    explainers
        Any name to explainer. Those that share the batch are by removal, read the same output of the model, and take
        the observation as it is (their policy for missing values); others are asked one after the other.
    output
        The output of the model that `predict` returns; None is the one that the first explainer by removal reads, or
        else the model's own.
    missing
        Policy for missing values by which `predict` asks the model, as in `RemovalExplainer`; with `skip` the model
        gets `x` without them. None is the policy of the explainers by removal, or `value` where they differ.

    Raises
    ------
    InvalidParameterError
        An explainer is of another model or has two names, or the explainers have no names.

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
    >>> [max(values, key=values.get) for values in importance.values()]  # this concept: medium or large
    ['size', 'size']
    """

    def __init__(
        self,
        model: Any,
        explainers: Mapping[str, IncrementalExplainer],
        output: Output | None = None,
        missing: str | Mapping[Any, Any] | None = None,
    ) -> None:
        if not isinstance(explainers, Mapping):
            raise InvalidParameterError("explainers", 'a mapping of names to explainers, as {"pfi": pfi}', explainers)
        self.model, self.explainers = model, dict(explainers)
        for name, explainer in self.explainers.items():
            if explainer.model is not model:
                raise InvalidParameterError("explainers", "explainers of the model that is given", name)
        if len(set(map(id, self.explainers.values()))) < len(self.explainers):
            raise InvalidParameterError("explainers", "each explainer under one name", list(self.explainers))
        by_removal = {name: e for name, e in self.explainers.items() if isinstance(e, RemovalExplainer)}
        read: Output = next((e.loss.output for e in by_removal.values()), "any") if output is None else output
        policies = [e.missing for e in by_removal.values()]
        if missing is None:
            missing = policies[0] if policies and all(policy == policies[0] for policy in policies) else "value"
        self.missing = check_missing(missing)
        self.function = model_function(model, read)
        """The model's prediction of one row."""
        self._alone = _asked_alone(model, self.function)
        self._joined = {name: e for name, e in by_removal.items() if e.loss.output == read}
        for explainer in self._joined.values():
            explainer.evaluate_with(self.function)
        self.n_predicted = 0
        """Observations so far."""
        self.n_rows = 0
        """Rows that the last `predict` asked for, x among them."""
        self._predicted: tuple[Features, Features, Prediction] | None = None
        """The observation as explainers see it, as it came, and the prediction where it is of just that."""
        self._fast = self.function if isinstance(self.function, FastFunction) else None
        self._counts: tuple[int, list[int]] = 0, []
        """Batches and requests so far, as of the last `predict`: where there are more, its rows were overwritten."""
        self._batched: tuple[list[str], list[Request | str], list[Predictions]] | None = None
        self._names, self._taking = list(self._joined), list(self._joined.values())
        self._take_all = all(e.missing == self.missing for e in self._joined.values())
        """Whether all of these have the policy for missing values that `predict` has."""

    def to_frame(self) -> Any:
        """Return all importances in a frame indexed by explainer and feature.

        Raises
        ------
        ExplainerError
            pandas is not installed.
        """
        return joined_frame({name: e.to_frame() for name, e in self.explainers.items()})

    def _card(self) -> Card:
        return Card(repr(self), facts=self._facts(), parts=[e._card() for e in self.explainers.values()])

    def _facts(self) -> list[tuple[str, str]]:
        return [("n_predicted", figure(self.n_predicted))]

    @property
    def paths(self) -> Counter[str]:
        """Number of observations by path: `fast`, or why it was row by row."""
        if isinstance(self.function, FastFunction):
            return self.function.counts.copy()
        return Counter({"there is no fast path for this type": self.n_predicted})

    def predict(self, x: Features, *, explain: bool = True) -> Prediction:
        """Return the prediction for `x`, and evaluate the rows `explain` needs.

        Parameters
        ----------
        explain
            False: this observation is only predicted, or passed over: see `pass_over`.

        Raises
        ------
        InvalidParameterError
            The first observation lacks what the parameters of an explainer name (`RemovalExplainer.check_names`).
        Exception
            What the model raises on `x`.
        """
        self._predicted = self._batched = None
        if type(x) is not dict:
            x = as_row(x)
        if not self.n_predicted:
            for explainer in self.explainers.values():
                if isinstance(explainer, RemovalExplainer):
                    explainer.check_names(x)
        self.n_predicted += 1
        encoded = None if self._fast is None else self._fast.plain(x)
        # For the model, for the explainers, and as it came.
        row, x, original = self._read(x) if encoded is None else (dict(x),) * 3
        if explain and self._take_all and row is x:
            names, taking = self._names, self._taking
        else:
            names = [name for name, e in self._joined.items() if self._takes(e, row, x, original)] if explain else []
            taking = [self._joined[name] for name in names]
        self.n_rows = 1
        if not names and self._alone is not None:
            y_pred = self._alone(row)
            if explain:
                self._batched = [], [], []
                self._counts = self._count([])
            self._predicted = x, original, y_pred if row is x else None
            return y_pred
        try:
            requests, found = predict_batch(self.function, row, taking, encoded=encoded)
        except ModelRaisedError as raised:
            raise raised.error from None
        y_pred = found[0].own
        if explain:
            self._batched = names, requests, found if names else []
            for request in requests:
                if not isinstance(request, str):
                    self.n_rows += request.n_rows
        self._predicted = x, original, y_pred if row is x else None
        self._counts = self._count(taking)
        return y_pred

    def _count(self, taking: list[RemovalExplainer]) -> tuple[int, list[int]]:
        return 0 if self._fast is None else self._fast.n_begun, [e.n_requests for e in taking]

    def _takes(self, explainer: RemovalExplainer, row: Features, x: Features, original: Features) -> bool:
        """Return whether an explainer explains the row asked, by its policy."""
        return row is x and (explainer.missing == self.missing or explainer.accepts(original))

    def _read(self, x: Features) -> tuple[Features, Features, Features]:
        """Return the model's row, the explainers' row, and the row as it came."""
        read = read_missing(x, self.missing)
        if read is None:
            original = dict(x)
            return drop_missing(x), original, original
        row = dict(read)
        return row, row, row if read is x else dict(x)

    def _seen_by(self, explainer: IncrementalExplainer, x: Features, original: Features) -> Features:
        """Return the observation as an explainer reads it by its own policy."""
        has_own = isinstance(explainer, RemovalExplainer) and explainer.missing != self.missing
        return original if has_own else x

    def pass_over(self) -> None:
        """Store the last predicted observation without explaining it.

        The next one explained stands for it too. See `RemovalExplainer.pass_over`. Explainers that are not by removal
        do not see it.

        Raises
        ------
        ExplainerError
            There is no such observation.
        """
        predicted, self._predicted, self._batched = self._predicted, None, None
        if predicted is None:
            raise ExplainerError("there is nothing to pass over: call predict(x, explain=False) first, once for each")
        x, original, y_pred = predicted
        for name, explainer in self.explainers.items():
            if isinstance(explainer, RemovalExplainer):
                seen = self._seen_by(explainer, x, original)
                explainer.pass_over(seen, y_pred if name in self._joined and seen is x else None)

    def explain(self, y: Any = None, *, wanted: bool = True) -> dict[str, Any]:
        """Explain the last predicted observation; return explanations by name.

        Parameters
        ----------
        wanted
            Whether the caller reads the explanations. False takes less time, and what is returned has no meaning: for
            callers that read the explainers' importance now and then.

        Raises
        ------
        ExplainerError
            There is no such observation.
        """
        predicted, batched, self._predicted, self._batched = self._predicted, self._batched, None, None
        if batched is not None and predicted is not None and self._is_overwritten(batched):
            self.n_predicted -= 1
            self.predict(predicted[1])
            predicted, batched, self._predicted, self._batched = self._predicted, self._batched, None, None
        if predicted is None or batched is None:
            raise ExplainerError("there is nothing to explain: call predict(x) first, once for each explain(y)")
        x, original, y_pred = predicted
        names, requests, predictions = batched
        of_each = dict(zip(names, zip(requests, predictions, strict=True), strict=True))
        explained: dict[str, Any] = {}
        for name, explainer in self.explainers.items():
            if name in of_each:
                explained[name] = self._joined[name].update(x, y, *of_each[name], wanted)
            else:
                seen = self._seen_by(explainer, x, original)
                known = y_pred if name in self._joined and seen is x else None
                explained[name] = explainer.explain_one(seen, y, y_pred=known)
        return explained

    def _is_overwritten(self, batched: tuple[list[str], list[Request | str], list[Predictions]]) -> bool:
        """Return whether another request has overwritten the memory of these."""
        n_begun, n_requests = self._count([self._joined[name] for name in batched[0]])
        if n_requests != self._counts[1]:
            return True
        return n_begun != self._counts[0] and any(type(one) is EvaluatedPredictions for one in batched[2])

    def skip(self, x: Features) -> Prediction:
        """Predict and store `x` without explaining it; return the prediction."""
        y_pred = self.predict(x, explain=False)
        self.pass_over()
        return y_pred

    def explain_one(self, x: Features, y: Any = None) -> dict[str, Any]:
        """Predict and explain an observation: `predict` and `explain`."""
        self.predict(x)
        return self.explain(y)


def _asked_alone(model: Any, function: ModelFunction) -> ModelFunction | None:
    """Return a function that predicts single rows, past the batch path.

    That is the model itself, where it is light or has no other way. None: a batch of one row is faster, or the function
    has to see each row as it comes.
    """
    if isinstance(function, FastFunction):
        return function.one if is_cheap(model) else None
    return None if hasattr(function, "many") or hasattr(function, "see") else function
