"""The base of explainers by removal: rows, loss, smoothing, errors."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from ..core.losses import Increments
from ..errors import ExplainerError
from ..evaluation.evaluator import NotCoveredError
from ..evaluation.function import FastFunction
from ..evaluation.schema import Encoded, NotEncodableError
from ..losses.labels import check_label
from ..losses.losses import AnyLoss
from ..losses.watch import ConstantLossWatch
from ..missing import can_be_drawn, check_missing, read_missing
from ..models.function import model_function, resolve_loss
from ..notebook.rows import as_row, check_features_there, check_groups_there
from ..predictions import GivenPredictions, Predictions, check_probabilities, is_usable, predict_rows, show_row
from ..removal.choice import ConstantImputer, choose_imputer, imputer_of
from ..removal.imputer import Imputer, MarginalImputer, Players, PlayersByGroup, Request
from ..removal.observational import ShiftedImputer
from ..removal.reservoirs import GeometricReservoir, Reservoir
from ..smoothing.importance import SmoothedImportance
from ..typing import Array, Features, Groups, Importance, ModelFunction, Prediction, Snapshot
from ..validation import check_groups, check_integer, generator_of
from .base import IncrementalExplainer, snapshot_loss
from .doubt import EVERY, Doubt
from .slowness import SlowFeatures

_LARGE = 1 << 20
"""The rows of an observation that hold more numbers (8 MB) are evaluated in slices of about this size."""


class ModelRaisedError(Exception):
    """An error the model raised on some rows, for explainers to count."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class EvaluatedPredictions(Predictions):
    """Predictions that a fast path has given as an array."""

    def __init__(self, own: Prediction, array: Array, start: int, function: FastFunction) -> None:
        self.own, self.array, self.start, self.function = own, array, start, function
        self.labels, self._columns = function.labels, function.columns

    def column(self, label: Any) -> int:
        """Return the column of a class; -1 for a class unknown to the model."""
        return self._columns.get(label, -1)

    def rows(self, n: int) -> list[Prediction]:
        """Return `n` predictions from `start` on, for a user's own loss."""
        return self.function.predictions(self.array[self.start : self.start + n], self.labels)


def predict(
    function: ModelFunction,
    x: Features,
    explainers: Sequence[RemovalExplainer],
    y_pred: Prediction = None,
    encoded: Encoded | None = None,
) -> tuple[list[Request | str], list[Predictions]]:
    """Predict an observation and all rows that its explainers request.

    Parameters
    ----------
    function
        From `model_function`.
    x
        The observation.
    y_pred
        The prediction for `x`, where the caller has it: it saves the naive path one evaluation. A fast path makes its
        own, at no cost: a feature without effect gets exactly 0 only where the observation and its changed rows are
        evaluated in the same way.
    encoded
        The observation as an array, where the caller has it from the function.

    Returns
    -------
    The requests and the predictions for each; without an explainer there is one prediction, that for `x` alone. A
    reason not to explain gets the prediction for `x` alone, too.

    Raises
    ------
    ModelRaisedError
        The model raised on `x` itself.
    """
    if isinstance(function, FastFunction):
        refusal: Exception
        try:
            if encoded is None:
                encoded = function.encode(x)
        except (NotCoveredError, NotEncodableError) as reason:
            refusal = reason
        requests = [explainer.request(x, encoded) for explainer in explainers]
        if encoded is not None:
            try:
                return requests, evaluate(function, x, encoded, requests)
            except (NotCoveredError, NotEncodableError) as reason:
                refusal = reason
        function.count_refusal(refusal)
        function = function.naive
    else:
        show_row(function, x)
        requests = [explainer.request(x, None) for explainer in explainers]
    rows = [[] if isinstance(request, str) else request.rows() for request in requests] or [[]]
    return requests, RowByRow(function, x, y_pred).evaluate(rows)


def evaluate(
    function: FastFunction, x: Features, encoded: Encoded, requests: Sequence[Request | str]
) -> list[Predictions]:
    """Predict `x` and each request on the fast path, as a single batch.

    Without a request there is one prediction, that for `x`.

    Raises
    ------
    NotCoveredError, NotEncodableError
        The model itself is to be asked.
    """
    schema, row = encoded
    n_rows = 1
    for request in requests:
        if not isinstance(request, str):
            n_rows += request.n_rows
    if n_rows * len(row) > _LARGE:
        return _evaluate_in_slices(function, x, encoded, requests)
    X = function.room(n_rows, len(row))
    X[0] = row
    starts, start = [], 1
    for request in requests:
        starts.append(start)
        if not isinstance(request, str):
            request.fill(X, start, schema)
            start += request.n_rows
    P = function.predict(X)
    own = function.first(P, x)
    return [EvaluatedPredictions(own, P, start, function) for start in starts or (1,)]


def _evaluate_in_slices(
    function: FastFunction, x: Features, encoded: Encoded, requests: Sequence[Request | str]
) -> list[Predictions]:
    """Evaluate wide rows in slices: 1000 features would take 80 MB at once."""
    schema, row = encoded
    own: Prediction = None
    answers: list[Predictions] = []
    for request in requests:
        n_parts = 0 if isinstance(request, str) else request.n_parts
        of_part = 0 if isinstance(request, str) or not n_parts else request.n_rows // n_parts
        size = max(1, _LARGE // (len(row) * max(of_part, 1)))
        found: list[Array] = []
        for first in range(0, max(n_parts, 1), size):
            stop = min(first + size, n_parts)
            X = function.room(1 + (stop - first) * of_part, len(row))
            X[0] = row
            if not isinstance(request, str):
                request.fill(X, 1, schema, first, stop)
            P = function.predict(X)
            if not answers and not found:
                own = function.first(P, x)
            found.append(P[min(len(found), 1) :].copy())  # row 0 once
        answers.append(EvaluatedPredictions(own, np.concatenate(found), 1, function))
    return answers


class RowByRow:
    """The model itself, asked for an observation and explainers' rows."""

    def __init__(self, function: ModelFunction, x: Features, y_pred: Prediction) -> None:
        self._function, self._x, self._y_pred = function, x, y_pred

    def evaluate(self, rows: list[list[dict[Any, Any]]]) -> list[Predictions]:
        """Return the predictions for the observation and each explainer's rows.

        Raises
        ------
        ModelRaisedError
            The model raised on the observation itself.
        """
        if hasattr(self._function, "many"):
            try:
                return self._evaluate_at_once(rows)
            except ModelRaisedError:
                pass  # on some of the rows: the other explainers' are evaluated again
        if self._y_pred is None:
            self._y_pred = self._predict([self._x])[0]
        return [self._evaluate_alone(of_one) for of_one in rows]

    def _evaluate_at_once(self, rows: list[list[dict[Any, Any]]]) -> list[Predictions]:
        own = [self._x] if self._y_pred is None else []
        found = self._predict([*own, *chain.from_iterable(rows)])
        y_pred, start = found[0] if own else self._y_pred, len(own)
        answers: list[Predictions] = []
        for of_one in rows:
            answers.append(GivenPredictions([y_pred, *found[start : start + len(of_one)]]))
            start += len(of_one)
        return answers

    def _evaluate_alone(self, rows: list[dict[Any, Any]]) -> Predictions:
        own = self._y_pred
        if not is_usable(own):  # there is nothing to compare the others with
            return GivenPredictions([own, *[None] * len(rows)])
        try:
            return GivenPredictions([own, *self._predict(rows)])
        except ModelRaisedError as raised:
            return GivenPredictions([own], error=raised.error)

    def _predict(self, rows: Sequence[Features]) -> list[Prediction]:
        try:
            return predict_rows(self._function, rows)
        except ExplainerError:
            raise
        except Exception as error:
            raise ModelRaisedError(error) from error


_PLAIN_IMPUTER = {"removal": "constant", "values": {}}  # that `imputer_of` can make, whatever the explainer has


class RemovalExplainer(IncrementalExplainer):
    """Global importance per feature: the effect of its removal on the loss.

    Parameters
    ----------
    model
        River classifier, regressor or anomaly detector, scikit-learn estimator, pipeline of either, or callable
        `x -> prediction`; see `model_function`.
    loss
        Name, `Loss`, callable `(y, prediction) -> float`, or metric of River (see `as_loss`); None takes brier,
        expected_zero_one, squared or score by the kind of model (`resolve_loss`). Importance is in its unit,
        `loss.unit`.
    alpha
        Valid range (0, 1]. Larger follows change faster and is noisier; 2 / (N + 1) is a window of N
        observations, so the default 0.001 is a window of about 2000.
    n_samples
        Valid range >= 1. Draws per feature (PFI) or coalition (SAGE). Larger lowers the variance, and for SAGE
        the bias; the cost in model evaluations is proportional.
    removal
        Where removed features take their values: `interventional` (one stored observation for all), `product` (one
        for each feature), `observational` (stored observations, shifted to fit the features that are kept; see
        `ShiftedImputer`), `observational-trees` (drawn given these by a tree per feature, as the iSAGE paper does), or
        an `Imputer`, as `ConstantImputer({...})`.
    reservoir
        Observations that replacements are drawn from; None is `LaggedReservoir()`. The explainer owns it. Not with an
        `Imputer`, which has its own.
    sampling
        `stratified`: the draws of an observation are spread over the reservoir, which has the same expectation and
        less variance; `independent`: as the papers draw. Not with an `Imputer`, and without effect on `observational`
        removal, whose draws are independent.
    groups
        Group name to the features that are removed together, as the one-hot columns of a category are.
        Features in no group stand alone. A group name must differ from every feature.
    missing
        What None and NaN in `x` mean. `absent`: the feature is not there, and the model gets `x` without it. `skip`: an
        observation with one is neither explained nor stored. `value`: values as any other, passed on to the model and
        drawn, for a model that asks for them. Or a mapping of features to the values that replace missing ones; one
        that is not in it is absent.
    seed
        Seed of the explainer's own generator; equal seeds, parameters and streams give equal importance. None draws
        anew each time; a worker has 42 by default.

    Raises
    ------
    InvalidParameterError
        A parameter is out of its range.
    ModelError
        The loss needs an output that the model does not have.
    """

    _needs_predictions: ClassVar[bool] = True
    """Whether draws are spread by what was predicted for the stored observations."""

    def __init__(
        self,
        model: Any,
        *,
        loss: AnyLoss | None = None,
        alpha: float = 0.001,
        n_samples: int = 5,
        removal: str | Imputer = "interventional",
        reservoir: Reservoir | None = None,
        sampling: str | None = None,
        groups: Groups | None = None,
        missing: str | Mapping[Any, Any] = "absent",
        seed: int | None = None,
    ) -> None:
        self.model = model
        self.loss = resolve_loss(model, loss)
        self.n_samples = check_integer("n_samples", n_samples, minimum=1)
        self.groups = check_groups(groups)
        self.missing = check_missing(missing)
        self.skipped: Counter[str] = Counter()
        self._rng = generator_of(seed)
        self._smoothed = SmoothedImportance(alpha)
        self._increments = Increments()
        self.imputer = choose_imputer(removal, reservoir, sampling, self.alpha, self._rng)
        self.imputer.reservoir.settle(self.alpha)
        self._watch = ConstantLossWatch(self.loss.name)
        self._slow = SlowFeatures(self.alpha)
        self._players = PlayersByGroup(self.groups)
        self.evaluate_with(model_function(model, self.loss.output))
        self.n_requests = 0
        """Requests so far: each may be in the memory of the one before."""
        self._times = 1  # observations that the next one explained stands for: itself, and those passed over
        self._are_names_known = not self.groups and not isinstance(self.imputer, ConstantImputer)
        is_shifted = isinstance(self.imputer, ShiftedImputer)
        self._doubt = Doubt(partial(getattr, self.imputer, "misfit"), self._interventional) if is_shifted else None
        if isinstance(self.imputer, MarginalImputer):
            self.imputer.keeps_predictions = self._needs_predictions

    @property
    def alpha(self) -> float:
        """Smoothing factor."""
        alpha: float = self._smoothed.weights.alpha
        return alpha

    @property
    def reservoir(self) -> Reservoir:
        """The stored observations."""
        return self.imputer.reservoir

    @property
    def n_observations(self) -> int:
        """Observations in the importance; `n_skipped` more are not in it."""
        n: int = self._smoothed.weights.n
        return n

    @property
    def latest_increments(self) -> tuple[tuple[Any, ...], Array]:
        """Names, and the last explained observation's increments, (names,).

        It is what `importance` is the mean of, for `ImportanceShift`. Read it before the next observation; a restored
        explainer has none until then.
        """
        names, increments = self._smoothed.latest
        return names, increments.copy()

    @property
    def n_skipped(self) -> int:
        """Observations not explained; `skipped` has them by `SKIP_REASONS`."""
        return self.skipped.total()

    @property
    def importance(self) -> Importance:
        """Importance per feature or group, bias-corrected (weights sum to 1)."""
        return self._smoothed.mean()

    @property
    def raw_importance(self) -> Importance:
        """Importance by the papers' recursion from 0, not bias-corrected.

        It is `importance` times 1 - (1 - alpha)^n (iPFI Theorem 2). From the first explained observation on, n also
        counts those passed over.
        """
        return self._smoothed.raw_mean()

    @property
    def std_error(self) -> Importance:
        """Standard error of `importance`; NaN before the second observation.

        An interval takes `half_width`. The error holds for observations that depend on each other, and takes into
        account that consecutive ones draw from the same stored rows: see `SmoothedImportance`.
        """
        return self._smoothed.std_error()

    @property
    def half_width(self) -> Importance:
        """Half-width of the 95 % interval; NaN before the second observation.

        Importance plus or minus it holds the expected importance about 95 times in 100 from 5 / alpha observations on,
        while neither the model nor the stream changes. `locality` and `autocorrelation_time` show which features move
        too slowly for that.
        """
        return self._smoothed.half_width()

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of the errors, from 2 to about 21 in a long stream."""
        return self._smoothed.degrees_of_freedom

    @property
    def locality(self) -> Importance:
        """Possible relative error per feature from storing rows near in time.

        It is |c| of `Locality`: the correlation of a feature's values with what they may be replaced by. NaN until
        5 / alpha observations have been seen, 5000 at least, and for a feature with one value. Where it is above .05
        by more than two of its standard errors, a `LocalReservoirWarning` names the feature, once.
        """
        return self._slow.locality()

    @property
    def autocorrelation_time(self) -> Importance:
        """Number of observations for which each numeric feature stays alike.

        See `Persistence`; NaN until 2 / alpha observations have been seen. Above 1 / (5 alpha), with an alpha of at
        most 0.05, a `SlowFeatureWarning` names the feature, once: importance is then that of the latest values, and
        its interval too narrow.
        """
        return self._slow.autocorrelation_time()

    @property
    def observational_doubt(self) -> Importance:
        """Least error of observational importance; NaN where it is unknown.

        It is in the unit of the loss. Draws given the other features may miss a part of the dependence, as where three
        features depend on each other in a way that no two do. The effect of the missed share on the importance is
        estimated from every 20th observation, by interventional removal. A feature that depends on no other has NaN.
        The result is empty for other kinds of removal, which have no such doubt.
        """
        if self._doubt is None:
            return {}
        return self._doubt.values(self.importance, self.std_error, self.groups)

    def _interventional(self) -> Self:
        """Return a cheap interventional explainer with equal parameters."""
        arguments = self._arguments({**self.parameters, **_PLAIN_IMPUTER}, self.loss)
        few = {"alpha": min(EVERY * self.alpha, 1.0), "n_samples": 2, "seed": 0}
        removal = MarginalImputer(GeometricReservoir(20))
        other = type(self)(self.model, **{**arguments, **few, "removal": removal})
        other.evaluate_with(self._function)
        other.know_names()
        other._has_warned = True
        return other

    def for_model(self, model: Any) -> Self:
        """Return an explainer of another model that keeps the stored rows.

        It has the same parameters and no importance yet: for a new version of a model, which starts anew but need not
        wait for a reservoir. This explainer hands its imputer over, and must not be used any more.

        Raises
        ------
        ModelError
            The loss needs an output that the model does not have.
        """
        arguments = {**self._arguments({**self.parameters, **_PLAIN_IMPUTER}, self.loss), "removal": self.imputer}
        other = type(self)(model, **arguments)
        other._rng = self._rng
        other.know_names()
        return other

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Update the importance with an observation and return it.

        Parameters
        ----------
        x
            Features of the observation; not kept, not changed. A mapping, a pandas Series, a data frame with one row,
            or a named tuple; `rows` names the values of arrays.
        y
            Its label or target; not read by the loss `score`. See `check_label` for which labels are the same.
        y_pred
            The model's prediction for `x`, in the form that the loss reads, where the caller has it already:
            saves one evaluation. None evaluates the model.

        Returns
        -------
        Importance
            Feature or group to importance. Empty until there is a row to draw from and the model predicts.

        Raises
        ------
        LabelError
            There is no label, or the first one is of another type than the model's classes; the explainer stays as it
            is.
        InvalidParameterError
            The first observation has no feature of a group, or the values have no names.
        ProbabilityError
            Predicted probabilities are below 0, or do not sum to 1.
        """
        if type(x) is not dict:
            x = as_row(x)
        if y_pred is not None:
            check_probabilities(y_pred)
        try:
            if not self._are_names_known:
                self.check_names(x)
            encoded = None if self._fast is None else self._fast.plain(x)
            read = self._read(x) if encoded is None else x  # what could be read as a row of numbers lacks nothing
            if read is None:
                return self.importance
            # A given prediction is of `x` as it came: it counts where the policy for missing values changed nothing.
            requests, predictions = predict(self._function, read, (self,), y_pred if read is x else None, encoded)
        except ModelRaisedError as raised:
            return self._raised(raised.error)
        return self.update(read, y, requests[0], predictions[0])

    def pass_over(self, x: Features, y_pred: Prediction = None) -> None:
        """Store an observation to draw from, without explaining it.

        This is for observations whose explanation would cost more than is to be spent. The next one explained stands
        for it too: after k passed over it has the weight 1 - (1 - alpha)^(1 + k) in every smoothed mean. So the window
        is that of alpha in observations, whatever share of them is explained, and SAGE values sum to what they should.
        The choice of those passed over must not depend on what is in them. They are counted in `skipped["budget"]`.

        Parameters
        ----------
        x, y_pred
            As for `explain_one`.
        """
        x = as_row(x)
        check_probabilities(y_pred)
        read = self._read(x)
        if read is None:
            return
        if read is not x or y_pred is None:
            try:
                y_pred = predict(self._function, read, ())[1][0].own
            except ModelRaisedError as raised:
                self._raised(raised.error)
                return
        self.skipped["budget"] += 1
        self._times += 1
        if can_be_drawn(read, y_pred):
            self._store(read, y_pred)

    def forget(self, names: Collection[Any]) -> None:
        """Forget at once the importance of features that will not come again.

        Parameters
        ----------
        names
            Features or groups; those that are not known do not matter.
        """
        self._smoothed.forget(names)

    def check_names(self, x: Features) -> None:
        """Check that the first observation has the features parameters name.

        Raises
        ------
        InvalidParameterError
            A group has no feature there, or the constants name a feature that is not there (a constant for one that
            comes later is fine where it is not spelt nearly like another one).
        """
        if not self._are_names_known and x:
            check_groups_there(self.groups, x)
            if isinstance(self.imputer, ConstantImputer) and self.imputer.values:
                check_features_there("values", self.imputer.values, x)
            self._are_names_known = True

    def know_names(self) -> None:
        """Skip the check that the first observation has the named features."""
        self._are_names_known = True

    def _read(self, x: Features) -> Features | None:
        """Read `x` by the missing-value policy; None, and counted, if left out."""
        read = read_missing(x, self.missing)
        if read is None:
            self.skipped["missing"] += 1
        return read

    def evaluate_with(self, function: ModelFunction) -> None:
        """Evaluate by `function` from now on; it must read the same output."""
        self._function, self._fast = function, function if isinstance(function, FastFunction) else None
        if self.groups and self._fast is not None:
            self._fast.expect(self._players.group_of)

    def accepts(self, x: Features) -> bool:
        """Return whether the missing-value policy leaves `x` as it is."""
        return read_missing(x, self.missing) is x

    def request(self, x: Features, encoded: Encoded | None) -> Request | str:
        """Return the rows an observation needs, or why it is not explained."""
        self.n_requests += 1
        if not x:
            return "no_features"
        imputer = self.imputer
        if not imputer.ready:
            return "nothing_stored"
        return self._request(x, self._players.of(x), self.n_samples if imputer.n_independent else 1, encoded)

    def update(
        self, x: Features, y: Any, request: Request | str, predictions: Predictions, wanted: bool = True
    ) -> Importance:
        """Take in an observation's predictions; return importance if `wanted`."""
        if predictions.error is not None:
            return self._raised(predictions.error)
        if y is None or (type(y) is float and y != y) or not (self._smoothed.weights.n or self.skipped):
            check_label(self.loss, y, predictions.own)
        reason = request if isinstance(request, str) else self._update(request, y, predictions)
        self._slow.until -= 1
        if not self._slow.until:
            self._slow.look(x, self.imputer.reservoir.rows)
        if reason is None:
            self._times = 1
            if self._doubt is not None and self._doubt.update(x, y, predictions.own):
                self._doubt.warn(self.importance, self.observational_doubt, self.groups)
        else:
            self.skipped[reason] += 1
        if reason is None or can_be_drawn(x, predictions.own):
            self._store(x, predictions.own)
        return self._smoothed.mean() if wanted else {}

    def _store(self, x: Features, y_pred: Prediction) -> None:
        """Take in an observation to draw from, explained or not."""
        self.imputer.update(x, y_pred, self._rng)

    def _raised(self, error: Exception) -> Importance:
        # It is not stored either: drawn into others, it would cost them their explanation too.
        self.skipped["model_error"] += 1
        self._model_failed(error)
        return self.importance

    @abc.abstractmethod
    def _request(self, x: Features, players: Players, n: int, encoded: Encoded | None) -> Request:
        """Return `n` rows per player or coalition, with `asked` for `_update`."""

    @abc.abstractmethod
    def _update(self, request: Request, y: Any, predictions: Predictions) -> str | None:
        """Smooth this observation's increments, or return why not, unchanged."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        return {
            "loss": self.loss.name,
            "alpha": self.alpha,
            "n_samples": self.n_samples,
            **self.imputer.parameters,
            "groups": {group: list(features) for group, features in self.groups.items()},
            "missing": self.missing if isinstance(self.missing, str) else dict(self.missing),
        }

    def _state(self) -> Snapshot:
        return {
            "smoothed": self._smoothed.snapshot(),
            "imputer": self.imputer.snapshot(),
            "generator": self._rng.bit_generator.state,
            "skipped": dict(self.skipped),
            "watch": self._watch.snapshot(),
            "slow": self._slow.snapshot(),
            "passed": self._times - 1,
            "doubt": None if self._doubt is None else self._doubt.snapshot(),
        }

    def _restore(self, state: Snapshot) -> None:
        self._smoothed = SmoothedImportance.from_snapshot(state["smoothed"])
        self.imputer.restore(state["imputer"])
        self._rng.bit_generator.state = state["generator"]
        self.skipped = Counter(state["skipped"])
        self._watch.restore(state["watch"])
        self._slow.restore(state["slow"])
        self._times = 1 + state["passed"]
        self._are_names_known = True
        if self._doubt is not None:
            self._doubt.restore(state["doubt"])

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any], model: Any, loss: Any) -> Self:
        return cls(model, **cls._arguments(parameters, loss))

    @classmethod
    def _arguments(cls, parameters: Mapping[str, Any], loss: Any) -> dict[str, Any]:
        """Return the arguments of the constructor that give these parameters."""
        return {
            "loss": snapshot_loss(parameters["loss"], loss),
            "alpha": parameters["alpha"],
            "n_samples": parameters["n_samples"],
            "removal": imputer_of(parameters),
            "groups": parameters["groups"],
            "missing": parameters["missing"],
        }
