"""Partial dependence on a grid that follows the current model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from ... import plots
from ...core.dependence import CategoryValues, NumberValues, fitting, is_number, plain_value
from ...errors import ExplainerError, InvalidParameterError
from ...missing import drop_missing, has_missing
from ...models.function import is_classifier, model_function, model_kind
from ...notebook.cards import Card, figure
from ...notebook.frames import curve_frame
from ...notebook.rows import as_row, check_features_there
from ...predictions import check_probabilities, is_usable, predict_rows, show_row
from ...smoothing.importance import memory_of
from ...typing import Features, Output, Prediction, Snapshot
from ...validation import check_integer, check_number, generator_of
from ..base import IncrementalExplainer
from .curve import Block, Curve, Line
from .rounds import AskedModel, Round, as_float, larger_label, new_round

_SHARE = 4  # of a block, one row in so many is asked at the grid points, and as many are kept as the probe
_FIRST = 10  # observations in the first block
_STEP = 200  # evaluations from which on a step is divided


class IncrementalPDP(IncrementalExplainer):
    """Mean prediction as a function of a feature, others as observed.

    With h the model as it is now and x_t[j := g] observation t with feature j set to grid value g,

        pdp_j(g) = sum_t w_t h(x_t[j := g]),   w_t proportional to (1 - alpha)^(T - t), summing to 1,

    estimated from some of the observations. Observations are collected in blocks of `window` (the first ones are
    shorter: 10, then as many as there were so far). For each block the current model is asked at all grid points about
    window / 4 rows of the block, drawn in strata, and window / 4 probe rows, which were asked before. Comparing the
    answers of now and then carries the old means over to the current model, and says how much of their weight is left.
    Where a model changes so much that little is left, up to twice as many rows are asked, in steps that are larger
    alike. The predictions for the whole block, as they came, are a control variate. `Curve` has the formulas. Nothing
    is interpolated: means are given at the grid points, where they are evaluated.

    The grid of a number is made of a sample of `window` of its values: all of them where at most `grid_size` differ,
    else those at the quantiles (i + 1/2) / grid_size. It is laid anew when a point's rank in the sample is off by more
    than 0.2, or a value is new where few differ. The grid of a category is its first `grid_size` different values; one
    that has not been seen for `window` values makes room for one that comes.

    The questions for a block are spread over the next one, the features taking turns. With d features an observation
    costs about d * grid_size / 2 evaluations, beside two for itself; where that is less than 200, they come 200 at a
    time, and then none. It costs up to twice as many where the model changes much, and more where grids move. `update`
    asks all open questions at once; until then each curve is as of its feature's last turn, up to two blocks ago.
    Memory does not grow with the observations: about 2.25 * window rows, and by feature window values and window / 4
    predictions for each grid point, at most 2.5 * window rows and window / 2 predictions where the model changes much.

    An observation whose value of a feature is absent, None, NaN, infinite or of the wrong kind is left out of that
    feature's curve, as is one for which the model raises or gives no usable prediction: `n_missing` counts them by
    feature. `n_skipped` counts the observations that entered no curve: no feature has a value, or the model gave no
    usable prediction for the observation itself. A prediction beyond 1e150 is not usable.

    Parameters
    ----------
    model
        River classifier, regressor or anomaly detector, pipeline, or callable `x -> prediction`.
    features
        Features to follow; None follows every feature that is seen, and forgets one that has not been seen while
        its weight faded below 1e-12 (1000 observations at least).
    label
        Class whose probability is the prediction, where the model gives probabilities. None takes the larger
        of two classes (True, 1) at the first prediction that names two; until then observations are skipped.
    alpha
        Valid range (0, 1]. Larger forgets old rows faster and is noisier; the model is followed at once with any alpha.
    grid_size
        Valid range >= 2. Larger is finer and costs evaluations in proportion.
    window
        Valid range >= grid_size; observations in a block, and values that a grid is made of. Larger asks less often
        about more rows, at the same cost.
    categorical
        Features that are categories although their values are numbers. Any other feature is a number or a
        category (bool, str, anything hashable) by its first value.
    n_ice
        Valid range >= 0; number of most recent rows whose own lines (ICE) are kept.
    seed
        Seed of the draws of rows and values; equal seeds, parameters and streams give equal curves.

    Raises
    ------
    InvalidParameterError
        A parameter is out of its range, or a label is named for a model that predicts numbers.
    ModelError
        The model has no such prediction; from `explain_one`, that `label` must be named.

    Source: Muschalik, Fumagalli, Jagtani, Hammer, Huellermeier, iPDP: On Partial Dependence Plots in Dynamic
    Modeling Scenarios, xAI 2023, for the idea. Theirs smooths the predictions of the models as they were; carrying
    the means over to the current model, the control variate and the grids are ours.

    Examples
    --------
    >>> pdp = IncrementalPDP(lambda x: 2 * x["a"] + x["b"], alpha=0.5)
    >>> pdp.explain_one({"a": 0, "b": 16}), pdp.explain_one({"a": 0, "b": 40})  # nothing has been asked yet
    ({}, {})
    >>> pdp.update()  # the second has twice the weight of the first
    {'a': ([0], [32.0]), 'b': ([16, 40], [16.0, 40.0])}
    >>> again = IncrementalPDP.from_snapshot(pdp.snapshot(), pdp.model)
    >>> again.explain_one({"a": 1, "b": 30}) == pdp.explain_one({"a": 1, "b": 30})
    True
    """

    name = "pdp"

    def __init__(
        self,
        model: Any,
        features: Iterable[Any] | None = None,
        *,
        label: Any = None,
        alpha: float = 0.001,
        grid_size: int = 20,
        window: int = 800,
        categorical: Iterable[Any] = (),
        n_ice: int = 0,
        seed: int | None = None,
    ) -> None:
        for parameter, names in (("features", features), ("categorical", categorical)):
            if isinstance(names, str):
                raise InvalidParameterError(parameter, "a list of features", names)
        numeric = model_kind(model) in ("regressor", "anomaly_detector")
        if numeric and label is not None:
            raise InvalidParameterError("label", "None for a model that predicts numbers", label)
        self.model, self.label = model, label
        self.features = None if features is None else tuple(dict.fromkeys(features))
        self.alpha = check_number("alpha", alpha, above=0.0, maximum=1.0)
        self.grid_size = check_integer("grid_size", grid_size, minimum=2)
        self.window = check_integer("window", window, minimum=self.grid_size)
        self.categorical = tuple(dict.fromkeys(categorical))
        self.n_ice = check_integer("n_ice", n_ice, minimum=0)
        self._n = self._n_skipped = self._n_evaluations = 0
        self._n_missing: dict[Any, int] = dict.fromkeys(self.features or (), 0)
        self._rng = generator_of(seed)
        self._curves: dict[Any, Curve] = {}
        self._last_seen: dict[Any, int] = {}
        self._memory = memory_of(self.alpha)
        self._reach = math.ceil(1.0 / self.alpha)
        self._block: list[dict[Any, Any]] = []
        self._due = self._n_due
        self._probe: list[dict[Any, Any]] = []
        self._round: Round | None = None
        self._are_names_known = not self.features
        self._label = label
        output: Output = "number" if numeric else "probabilities" if is_classifier(model) else "any"
        self._function = model_function(model, output)

    @property
    def n_observations(self) -> int:
        """Observations that entered a curve, or will at its next update."""
        return self._n

    @property
    def n_skipped(self) -> int:
        """Observations that entered no curve."""
        return self._n_skipped

    @property
    def n_missing(self) -> dict[Any, int]:
        """Feature to the number of observations that were left out of its curve."""
        return self._n_missing

    @property
    def n_evaluations(self) -> int:
        """Predictions that the model has been asked for, `y_pred` not among them."""
        return self._n_evaluations

    @property
    def pdp(self) -> dict[Any, Line]:
        """Feature to its grid values and the mean predictions there.

        Grid values are ascending, or in order of appearance. A curve is as of its feature's last turn; call `update`
        first for that of this moment.
        """
        is_probability = self._label is not None
        return {name: curve.line(is_probability=is_probability) for name, curve in self._curves.items() if curve.known}

    @property
    def ice(self) -> dict[Any, list[Line]]:
        """Feature to the last `n_ice` lines, oldest first, on their own grids."""
        return {name: [(list(g), list(p)) for g, p in curve.ice] for name, curve in self._curves.items() if curve.ice}

    @property
    def recent_numbers(self) -> dict[Any, list[Any]]:
        """Numeric feature to the sample of recent values that makes its grid."""
        values = {name: curve.values for name, curve in self._curves.items()}
        return {name: list(of_one.sample) for name, of_one in values.items() if isinstance(of_one, NumberValues)}

    @property
    def chosen_label(self) -> Any:
        """Class whose probability is predicted; None for numbers, or not yet."""
        return self._label

    def plot(  # type: ignore[override]
        self, feature: Any = None, *, ice: bool = True, ax: Any = None
    ) -> Any:
        """Draw a feature's curve by `plots.pdp`; return the matplotlib Axes.

        The feature may be left out where there is a curve of one alone.
        """
        if feature is None and len(curves := self.pdp) == 1:
            feature = next(iter(curves))
        return plots.pdp(self, feature, ice=ice, ax=ax)

    def to_frame(self) -> Any:
        """Return a pandas frame of all points: feature (index), value, prediction.

        Raises
        ------
        ExplainerError
            pandas is not installed.
        """
        return curve_frame((name, *line) for name, line in self.pdp.items())

    def _card(self) -> Card:
        rows = [
            [str(name), figure(len(grid)), f"{figure(min(means))} to {figure(max(means))}"]
            for name, (grid, means) in self.pdp.items()
        ]
        facts = [*self._facts(), ("n_evaluations", figure(self.n_evaluations))]
        if self.chosen_label is not None:
            facts.append(("label", str(self.chosen_label)))
        return Card(repr(self), facts=facts, columns=("feature", "points", "mean prediction"), rows=rows)

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> dict[Any, Line]:
        """Take in an observation and ask due questions; return `pdp`.

        It is empty until a curve is known. `x` is a mapping, a pandas Series, a data frame with one row or a named
        tuple; it is not changed, and `y` not read. `y_pred` is the model's prediction for `x`, where the caller has it
        already; it saves one evaluation.

        Raises
        ------
        InvalidParameterError
            The first observation has none of `features`, or has one that is spelt nearly like one of them.
        ProbabilityError
            Predicted probabilities are below 0, or do not sum to 1.
        """
        check_probabilities(y_pred)
        self.take(x, y_pred)
        return self.pdp

    def take(self, x: Features, y_pred: Prediction = None) -> None:
        """Take in an observation as `explain_one` does; return nothing."""
        if type(x) is not dict:
            x = as_row(x)
        if not self._are_names_known and x:
            check_features_there("features", self.features or (), x)
            self._are_names_known = True
        if y_pred is None and has_missing(x):
            x = drop_missing(x)  # the model is asked without them, as other explainers ask it
        show_row(self._function, x)
        self._take_in(x, y_pred)
        if self.features is None:
            now = self._n + self._n_skipped
            self._last_seen.update(dict.fromkeys(x, now))
            if now % self._memory == 0:
                self._forget(now)
        self._work()

    def update(self) -> dict[Any, Line]:
        """Ask all open questions, so that all observations count; return `pdp`.

        It costs up to (window / 2) * grid_size evaluations for each feature, twice that of a model that changes much,
        and as many again where the questions for an earlier block are still open; where that takes too long, read
        `pdp`. It may be called at any time and any number of times.
        """
        self._finish()
        self._round = self._new_round()
        self._finish()
        return self.pdp

    def follow(self, features: Iterable[Any]) -> None:
        """Follow these features from now on; forget the curves of others.

        Curves that go on are not changed by it, but for the numbers that are drawn later. New ones begin with the block
        that is being collected.
        """
        self.features = tuple(dict.fromkeys(features))
        for name in [name for name in self._n_missing if name not in self.features]:
            self._drop(name)
        self._last_seen.clear()
        for name in self.features:
            self._n_missing.setdefault(name, 0)
        self._are_names_known = True

    def know_names(self) -> None:
        """Accept every observation, even a first without `features`."""
        self._are_names_known = True

    def _take_in(self, x: Features, y_pred: Prediction) -> None:
        values = self._values(x)
        if not values or not self._is_usable(x, y_pred):
            self._n_skipped += 1
            for name in values:
                self._n_missing[name] += 1
            return
        self._n += 1
        self._block.append(dict(x))
        draw = self._rng.random()
        for name, value in values.items():
            curve = self._curves.get(name)
            if curve is None:
                curve = self._curves[name] = self._made_curve(is_number(value) and name not in self.categorical)
            curve.values.see(value, draw)

    def _values(self, x: Features) -> dict[Any, Any]:
        """Return the values that fit their curves; count missing values."""
        if self.features is None and x.keys() != self._n_missing.keys():
            for name in x:
                self._n_missing.setdefault(name, 0)
        values = {}
        for name in self._n_missing:
            curve = self._curves.get(name)
            value = plain_value(x.get(name)) if curve is None else fitting(x.get(name), curve.values.numeric)
            if value is None:
                self._n_missing[name] += 1
            else:
                values[name] = value
        return values

    def _made_curve(self, numeric: bool) -> Curve:
        return Curve(NumberValues(self.window, self._reach) if numeric else CategoryValues(self.grid_size, self.window))

    def _is_usable(self, x: Features, y_pred: Prediction) -> bool:
        """Return whether the model predicts `x`; choose the label if unknown."""
        if y_pred is None:
            self._n_evaluations += 1
            try:
                y_pred = predict_rows(self._function, [x])[0]
            except ExplainerError:
                raise
            except Exception as error:  # noqa: BLE001 - the model is the user's code: what it raises is about this row
                self._model_failed(error)
        if self._label is None and isinstance(y_pred, dict) and len(y_pred) > 1 and is_usable(y_pred):
            self._label = larger_label(list(y_pred))
        return not math.isnan(as_float(y_pred, self._label))

    def _forget(self, now: int) -> None:
        for name in [name for name, seen in self._last_seen.items() if now - seen >= self._memory]:
            del self._last_seen[name]
            self._drop(name)

    def _drop(self, name: Any) -> None:
        del self._n_missing[name]
        self._curves.pop(name, None)
        if self._round is not None:
            self._round.forget(name)

    @property
    def _n_due(self) -> int:
        """Observations that the block has when it is full."""
        return min(self.window, max(_FIRST, self._n - len(self._block)))

    @property
    def _n_asked(self) -> int:
        """Rows of a block to ask: up to twice as many if the model changes much."""
        lost = [1.0 - curve.followed for curve in self._curves.values()]
        return max(int(self.window * (1.0 + sum(lost) / max(len(lost), 1))) // _SHARE, 1)

    def _work(self) -> None:
        """Ask the questions that are due at this observation."""
        n_left = self._due - len(self._block)
        if self._round is not None:
            # Where more rows are asked, more are at a time: following a model that has learnt costs by the batch.
            n = max(_STEP, _STEP * self._round.n_rows * _SHARE // (2 * self.window))
            self._advance(self._round, max(n, -(-self._round.n_open // max(n_left, 1))))
        if n_left <= 0 and self._round is None:
            self._round = self._new_round()

    def _finish(self) -> None:
        """Ask all that is open of the round that there is."""
        if self._round is not None:
            self._advance(self._round, max(self._round.n_open, 1))

    def _new_round(self) -> Round:
        block, self._block = Block(self._block, np.zeros(0), self.alpha), []
        self._due = self._n_due
        n_recent = min(self._n, self._reach)
        return new_round(block, self._probe, self._n_asked, n_recent, self._curves, self.grid_size, self._rng)

    def _advance(self, of: Round, n: int) -> None:
        model = AskedModel(self._function, self._label)
        for name, missing in of.step(self._curves, n, model, self.n_ice):
            self._n_missing[name] += missing
        self._n_evaluations += model.n_asked
        if model.error is not None:
            self._model_failed(model.error)
        if of.is_done:
            self._probe, self._round = of.next_probe(), None

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data, but for the seed."""
        return {
            "features": None if self.features is None else list(self.features),
            "label": self.label,
            "alpha": self.alpha,
            "grid_size": self.grid_size,
            "window": self.window,
            "categorical": list(self.categorical),
            "n_ice": self.n_ice,
        }

    def _state(self) -> Snapshot:
        return {
            "chosen_label": self._label,
            "counts": [self._n, self._n_skipped, self._n_evaluations],
            "missing": list(self._n_missing.items()),
            "last_seen": list(self._last_seen.items()),
            "generator": self._rng.bit_generator.state,
            "block": list(map(dict, self._block)),
            "probe": list(map(dict, self._probe)),
            "round": None if self._round is None else self._round.snapshot(),
            "curves": [(name, curve.snapshot()) for name, curve in self._curves.items()],
        }

    def _restore(self, state: Snapshot) -> None:
        self._are_names_known = True
        self._label = state["chosen_label"]
        self._n, self._n_skipped, self._n_evaluations = state["counts"]
        self._n_missing = dict(map(tuple, state["missing"]))
        self._last_seen = dict(map(tuple, state["last_seen"]))
        self._rng.bit_generator.state = state["generator"]
        self._block = list(map(dict, state["block"]))
        self._due = self._n_due
        self._probe = list(map(dict, state["probe"]))
        self._round = None if state["round"] is None else Round.from_snapshot(state["round"], self.alpha)
        self._curves = {}
        for name, of_curve in state["curves"]:
            self._curves[name] = curve = self._made_curve(of_curve["numeric"])
            curve.restore(of_curve)

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any], model: Any, loss: Any) -> Self:
        return cls(model, **parameters)
