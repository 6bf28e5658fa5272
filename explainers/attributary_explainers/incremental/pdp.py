"""Partial dependence, updated with every observation, on grids that follow the features' recent values."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any, Self, TypeAlias

import numpy as np

from .. import plots
from ..errors import InvalidParameterError, ModelError
from ..models.function import is_classifier, model_function, model_kind
from ..predictions import is_usable, predict_rows, show_row
from ..smoothing.means import memory_of
from ..typing import Features, Output, Prediction, Snapshot
from ..validation import check_integer, check_number
from .base import IncrementalExplainer

Line: TypeAlias = tuple[list[Any], list[float]]
"""Grid values and, for each, a prediction or mean prediction."""

_LARGEST = 1e307  # of a number: the difference of two is then a float


class IncrementalPDP(IncrementalExplainer):
    """Mean prediction as a function of one feature, the other features as observed.

    With h_t the model at observation t and x_t[j := g] the observation with feature j set to grid value g,

        pdp_j(g) = sum_t w_t h_t(x_t[j := g]),   w_t proportional to (1 - alpha)^(T - t), summing to 1.

    The grid of a number is made of its last `window` values: all of them where at most `grid_size` differ,
    else those at the quantiles (i + 1/2) / grid_size. It is made when `grid_size` values are there, when
    their number has doubled, and then every `window` values. The grid of a category is its last `grid_size`
    different values; the one seen longest ago makes room for a new one.

    When a grid moves, a point between two old ones takes the linear interpolation of their means and weights:
    exact where the curve is straight between them, else an error that fades with alpha. A point outside the
    old range, as a new category, starts anew: its mean is of the observations since.

    Cost: at most d * grid_size evaluations per observation. Memory does not grow with the observations.
    Nothing is drawn, so there is no seed. An observation whose value of a feature is absent, None, NaN,
    infinite or of the wrong kind is left out of that feature's curve, as is one with an unusable prediction or a
    model that raises:
    `n_missing` counts them by feature. `n_skipped` counts the observations that entered no curve.

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
        Valid range (0, 1]. Larger follows change faster and is noisier.
    grid_size
        Valid range >= 2. Larger is finer and costs evaluations in proportion.
    window
        Valid range >= grid_size; values. Larger gives steadier grids that follow later.
    categorical
        Features that are categories although their values are numbers. Any other feature is a number or a
        category (bool, str, anything hashable) by its first value.
    n_ice
        Valid range >= 0; number of most recent observations whose own lines (ICE) are kept.

    Raises
    ------
    InvalidParameterError
        A parameter is out of its range, or a label is named for a model that predicts numbers.
    ModelError
        The model has no such prediction; from `explain_one`, that `label` must be named.

    Source: Muschalik, Fumagalli, Jagtani, Hammer, Huellermeier, iPDP: On Partial Dependence Plots in Dynamic
    Modeling Scenarios, xAI 2023, for the idea; the grids, their moves and weights that sum to 1 are ours.

    Examples
    --------
    >>> pdp = IncrementalPDP(lambda x: 2 * x["a"] + x["b"], grid_size=2, alpha=0.5)
    >>> pdp.explain_one({"a": 0, "b": 10})  # two values make the first grid
    {}
    >>> pdp.explain_one({"a": 1, "b": 30})
    {'a': ([0, 1], [30.0, 32.0]), 'b': ([10, 30], [12.0, 32.0])}
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
        grid_size: int = 10,
        window: int = 200,
        categorical: Iterable[Any] = (),
        n_ice: int = 0,
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
        self._n = self._n_skipped = 0
        self.n_missing: dict[Any, int] = dict.fromkeys(self.features or (), 0)
        self._curves: dict[Any, _Curve] = {}
        self._last_seen: dict[Any, int] = {}
        self._memory = memory_of(self.alpha)
        self._label = label
        output: Output = "number" if numeric else "probabilities" if is_classifier(model) else "any"
        self._function = model_function(model, output)

    @property
    def n_observations(self) -> int:
        """Observations that entered a curve."""
        return self._n

    @property
    def n_skipped(self) -> int:
        """Observations that entered no curve."""
        return self._n_skipped

    @property
    def pdp(self) -> dict[Any, Line]:
        """Feature to its grid values, ascending or in order of appearance, and the mean predictions there."""
        lines = {name: curve.line() for name, curve in self._curves.items()}
        return {name: line for name, line in lines.items() if line[0]}

    @property
    def ice(self) -> dict[Any, list[Line]]:
        """Feature to the lines of the last `n_ice` observations, oldest first, on the grids of their time."""
        return {name: [(list(g), list(p)) for g, p in curve.ice] for name, curve in self._curves.items() if curve.ice}

    @property
    def recent_numbers(self) -> dict[Any, list[Any]]:
        """Feature to its last `window` values, for features that are numbers."""
        return {name: list(curve.recent) for name, curve in self._curves.items() if curve.numeric}

    @property
    def chosen_label(self) -> Any:
        """The class whose probability is the prediction; None where the prediction is a number, or not yet known."""
        return self._label

    def plot(self, feature: Any, **parameters: Any) -> Any:
        """Plot the curve of one feature; return the matplotlib Axes. Parameters are those of `plots.pdp`."""
        return plots.pdp(self, feature, **parameters)

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> dict[Any, Line]:
        """Update the curves with one observation; return `pdp`, empty before there is any.

        `x` is neither kept nor changed; `y` and `y_pred` are not read.
        """
        show_row(self._function, x)
        names = dict.fromkeys((*self.n_missing, *(x if self.features is None else ())))
        asked = {name: curve for name in names if (curve := self._see(name, x)) is not None}
        predictions = self._answers({name: [{**x, name: g} for g in curve.grid] for name, curve in asked.items()})
        used = False
        for name, curve in asked.items():
            used |= self._add(name, curve, predictions[name])
        self._n += used
        self._n_skipped += not used
        if self.features is None:
            now = self._n + self._n_skipped
            self._last_seen.update(dict.fromkeys(x, now))
            if now % self._memory == 0:
                self._forget(now)
        return self.pdp

    def _forget(self, now: int) -> None:
        for name in [name for name, seen in self._last_seen.items() if now - seen >= self._memory]:
            del self._last_seen[name], self.n_missing[name]
            self._curves.pop(name, None)

    def _see(self, name: Any, x: Features) -> _Curve | None:
        """Take a feature's value into its curve, and return that; None, and counted, where no value fits."""
        self.n_missing.setdefault(name, 0)
        value = _plain(x.get(name))
        if name not in self._curves and value is not None:
            self._curves[name] = _Curve(_is_number(value) and name not in self.categorical)
        curve = self._curves.get(name)
        if curve is None or value is None or (curve.numeric and not _is_number(value)):
            self.n_missing[name] += 1
            return None
        curve.see(value, self.grid_size, self.window)
        return curve

    def _add(self, name: Any, curve: _Curve, predictions: list[float | None]) -> bool:
        usable = [p for p in predictions if p is not None]
        if len(usable) < len(predictions):
            self.n_missing[name] += 1
        elif usable:
            curve.add(usable, self.alpha, self.n_ice)
        return bool(usable) and len(usable) == len(predictions)

    def _answers(self, rows: dict[Any, list[dict[Any, Any]]]) -> dict[Any, list[float | None]]:
        """Return by feature its predictions: all in one batch, or one by feature where the model raises on some."""
        try:
            found = iter(predict_rows(self._function, [row for of_feature in rows.values() for row in of_feature]))
        except Exception:  # noqa: BLE001 - said and counted where each is asked by itself
            return {name: self._predictions(of_feature) for name, of_feature in rows.items()}
        return {name: [self._number(next(found)) for _ in of_feature] for name, of_feature in rows.items()}

    def _predictions(self, rows: list[dict[Any, Any]]) -> list[float | None]:
        try:
            return [self._number(prediction) for prediction in predict_rows(self._function, rows)]
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - the model is the user's code: what it raises is about these rows
            self._model_failed(error, depth=4)
            return [None] * len(rows)

    def _number(self, prediction: Prediction) -> float | None:
        if prediction is None or not is_usable(prediction):
            return None
        if not isinstance(prediction, dict):
            return float(prediction)
        if self._label is None and len(prediction) > 1:
            self._label = _larger(list(prediction))
        return None if self._label is None else float(prediction.get(self._label, 0.0))

    @property
    def parameters(self) -> dict[str, Any]:
        """What the explainer was made with, as plain data."""
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
            "counts": [self._n, self._n_skipped],
            "missing": list(self.n_missing.items()),
            "last_seen": list(self._last_seen.items()),
            "curves": [[name, copy.deepcopy(vars(curve))] for name, curve in self._curves.items()],
        }

    def _restore(self, state: Snapshot) -> None:
        self._label = state["chosen_label"]
        self._n, self._n_skipped = state["counts"]
        self.n_missing = dict(map(tuple, state["missing"]))
        self._last_seen = dict(map(tuple, state["last_seen"]))
        self._curves = {}
        for name, attributes in state["curves"]:
            self._curves[name] = curve = _Curve(attributes["numeric"])
            vars(curve).update(copy.deepcopy(attributes))

    @classmethod
    def _from_parameters(cls, parameters: dict[str, Any], model: Any, loss: Any) -> Self:
        return cls(model, **parameters)


class _Curve:
    """Grid, means and weights of one feature. All attributes are plain data: they are its snapshot."""

    def __init__(self, numeric: bool) -> None:
        self.numeric = numeric
        self.recent: list[Any] = []  # values of a number; categories, the one seen longest ago first
        self.n_values = self.next_grid = 0
        self.grid: list[Any] = []
        self.means: list[float] = []
        self.remaining: list[float] = []  # (1 - alpha)^n by grid point, as in smoothing.Weights
        self.ice: list[Line] = []

    def see(self, value: Any, grid_size: int, window: int) -> None:
        """Let the grid follow one more value."""
        if not self.numeric:
            self.recent = [*(category for category in self.recent if category != value), value][-grid_size:]
            kept = [g for g in self.grid if g in self.recent]
            self._move(kept if value in kept else [*kept, value])
            return
        self.n_values += 1
        self.recent.append(value)
        del self.recent[:-window]
        if self.n_values >= max(grid_size, self.next_grid):
            self.next_grid = self.n_values + min(self.n_values, window)
            points, values = sorted(set(self.recent)), sorted(self.recent)
            if len(points) > grid_size:
                ranks = ((2 * i + 1) * len(values) // (2 * grid_size) for i in range(grid_size))
                points = sorted({values[rank] for rank in ranks})
            self._move(points)

    def _move(self, grid: list[Any]) -> None:
        carried = [self._carried(point) for point in grid]
        self.grid, self.means, self.remaining = grid, [m for m, _ in carried], [r for _, r in carried]

    def _carried(self, point: Any) -> tuple[float, float]:
        """Return mean and remaining weight that a point of a new grid takes over; (0, 1) starts anew."""
        if point in self.grid:
            i = self.grid.index(point)
            return self.means[i], self.remaining[i]
        i = bisect_left(self.grid, point) if self.numeric else 0
        if not 0 < i < len(self.grid) or max(self.remaining[i - 1 : i + 1]) == 1.0:
            return 0.0, 1.0
        low, high = self.grid[i - 1], self.grid[i]
        span = float(high - low)
        t = float(point - low) / span if span else 0.5  # 0 for an int and a float that differ in no bit of a float
        mean, remaining = ((1.0 - t) * v[i - 1] + t * v[i] for v in (self.means, self.remaining))
        return mean, remaining

    def add(self, predictions: list[float], alpha: float, n_ice: int) -> None:
        """Add one observation's predictions at the grid points."""
        for i, prediction in enumerate(predictions):
            first = self.remaining[i] == 1.0
            self.remaining[i] *= 1.0 - alpha
            rate = 1.0 if first else alpha / (1.0 - self.remaining[i])
            self.means[i] += rate * (prediction - self.means[i])
        if n_ice:
            self.ice = [*self.ice, (list(self.grid), predictions)][-n_ice:]

    def line(self) -> Line:
        """Return the points that have a mean."""
        known = [i for i, remaining in enumerate(self.remaining) if remaining < 1.0]
        return [self.grid[i] for i in known], [self.means[i] for i in known]


def _plain(value: Any) -> Any:
    """Return the value as a builtin; None for what no grid can hold: None, NaN, infinite, not hashable."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)):
        return value if -_LARGEST <= value <= _LARGEST else None
    return value if isinstance(value, Hashable) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _larger(labels: list[Any]) -> Any:
    """Return the larger of two classes; ModelError for more, or for classes that have no order."""
    try:
        if len(labels) == 2:
            return max(labels)
    except TypeError:
        pass
    raise ModelError(f"cannot choose among the classes {labels!r}: name one of them as `label`")
