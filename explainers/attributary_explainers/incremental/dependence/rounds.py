"""An update of all curves: its rows, and the questions still open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dependence import choose_column, fill_grid, fitting_of
from ...errors import ExplainerError, ModelError
from ...evaluation.evaluator import NotCoveredError
from ...evaluation.function import FastFunction
from ...evaluation.schema import NotEncodableError, Schema
from ...predictions import is_usable, predict_rows
from ...typing import Array, Features, Ints, ModelFunction, Prediction, Snapshot
from ...validation import LARGEST
from .curve import Block, Curve, Evaluated


def as_float(prediction: Prediction, label: Any) -> float:
    """Return a prediction as a number; NaN where it cannot enter a mean.

    Of probabilities it is that of `label`. NaN: the prediction is unusable or beyond 1e150, whose square is no float,
    or no label is known yet (None).
    """
    if prediction is None or not is_usable(prediction):
        return math.nan
    if isinstance(prediction, dict):
        if label is None:
            return math.nan
        prediction = prediction.get(label, 0.0)
    return float(prediction) if abs(prediction) <= LARGEST else math.nan


def larger_label(labels: list[Any]) -> Any:
    """Return the larger of two classes.

    ModelError: there are more, or they have no order.
    """
    try:
        if len(labels) == 2:
            return max(labels)
    except TypeError:
        pass
    raise ModelError(f"cannot choose among the classes {labels!r}: name one of them as `label`")


class Questions:
    """Rows about which a model is asked repeatedly.

    They are read as numbers once for each schema.
    """

    def __init__(self, rows: list[dict[Any, Any]]) -> None:
        self.rows = rows
        self._encoded: tuple[Schema, Array | None] | None = None

    def encoded(self, schema: Schema, which: Ints) -> tuple[Array, Ints]:
        """Return rows as numbers, and where some of the rows are among them.

        Their shape is (rows, features). NotEncodableError: the schema does not hold all of these.
        """
        if self._encoded is None or self._encoded[0] is not schema:
            try:
                self._encoded = schema, np.ascontiguousarray(schema.encode_many(self.rows))
            except NotEncodableError:
                self._encoded = schema, None  # of some of them it may hold all
        of_all = self._encoded[1]
        if of_all is not None:
            return of_all, which
        some = schema.encode_many([self.rows[i] for i in which])
        return np.ascontiguousarray(some), np.arange(len(which))

    def encoded_points(self, schema: Schema, name: Any, points: Sequence[Any]) -> Array:
        """Return a feature's values as numbers, (points,); raise as `encoded`."""
        found = schema.encode_many([{**self.rows[0], name: point} for point in points])
        return np.ascontiguousarray(found[:, schema.position[name]])


class AskedModel:
    """A model that answers with a number for each row, or NaN for none.

    Of probabilities it is that of `label`.
    """

    def __init__(self, function: ModelFunction, label: Any) -> None:
        self._function, self._label = function, label
        self.n_asked = 0
        """Predictions that were asked for."""
        self.error: Exception | None = None
        """What the model last raised about a row."""

    def rows(self, rows: Sequence[Features]) -> Array:
        """Return the predictions for rows as they are, shape (rows,)."""
        function = self._function
        self.n_asked += len(rows)
        if isinstance(function, FastFunction):
            try:
                schema = function.open_all(rows)
                return self._column(function, function.predict(schema.encode_many(rows)))
            except (NotCoveredError, NotEncodableError) as reason:
                function.count_refusal(reason)
        return self._asked(rows, 1, lambda row: [row])[:, 0]

    def grid(self, questions: Questions, which: Ints, name: Any, points: Sequence[Any]) -> Array:
        """Predict some rows with a feature set to each of some values.

        Shape (rows, points).
        """
        function = self._function
        self.n_asked += len(which) * len(points)
        if isinstance(function, FastFunction):
            try:
                return self._by_array(function, questions, which, name, points)
            except (NotCoveredError, NotEncodableError) as reason:
                function.count_refusal(reason)
        rows = [questions.rows[i] for i in which]
        return self._asked(rows, len(points), lambda row: [{**row, name: point} for point in points])

    def _asked(self, rows: Sequence[Features], n: int, made: Callable[[Features], list[Features]]) -> Array:
        # A row without a fast path must not keep the others from theirs: of several, each is asked by itself.
        if len(rows) == 1 or n == 1 or not isinstance(self._function, FastFunction):
            try:
                asked = predict_rows(self._function, [of_one for row in rows for of_one in made(row)])
                found = [as_float(prediction, self._label) for prediction in asked]
                return np.array(found, dtype=np.float64).reshape(-1, n)
            except ExplainerError:
                raise
            except Exception as error:  # noqa: BLE001 - the model is the user's: what it raises is about these rows
                if len(rows) == 1:
                    self.error = error
                    return np.full((1, n), math.nan)
        return np.concatenate([self._asked([row], n, made) for row in rows])

    def _by_array(
        self, function: FastFunction, questions: Questions, which: Ints, name: Any, points: Sequence[Any]
    ) -> Array:
        rows = [questions.rows[i] for i in which]
        schema = function.open_all([{**rows[0], name: points[0]}, *rows])
        X = function.room(len(which) * len(points), len(schema))
        values = questions.encoded_points(schema, name, points)
        fill_grid(*questions.encoded(schema, which), schema.position[name], values, X)
        return self._column(function, function.predict(X)).reshape(-1, len(points))

    def _column(self, function: FastFunction, P: Array) -> Array:
        column = 0
        if function.labels is not None:
            if self._label is None or not P.shape[1]:
                return np.full(len(P), math.nan)
            column = function.column(self._label)
        found = np.empty(len(P))
        choose_column(np.ascontiguousarray(P, np.float64), column, LARGEST, found)
        return found


class Round:
    """An update of all curves, in steps of a bounded number of questions.

    First come the rows of the block as they are. Then the features take turns: the rows of one are asked at all its
    points and its curve is updated, before the next one begins. The rows are the same for all: the probe, which was
    asked in the last round, and those drawn from the block, which has no predictions yet; with an empty block the
    curves are carried over only. A new row has its place in the block, its weight, and the row of the probe that it
    becomes (-1: none). The plan has for each feature the points to ask at, and those of the grid from now on.
    """

    def __init__(
        self,
        block: Block,
        probe: list[dict[Any, Any]],
        drawn: Ints,
        shares: Array,
        slots: Ints,
        plan: list[tuple[Any, list[Any], list[Any]]],
    ) -> None:
        self._block, self._probe, self._plan = block, probe, plan
        self._drawn, self._shares, self._slots = drawn, shares, slots
        self._questions = Questions([*probe, *(block.rows[i] for i in drawn.tolist())])
        self._done: list[Array] = []  # predictions for the first rows, of the feature whose turn it is
        self._n_done = 0
        self._fitting: tuple[Any, Ints] | None = None  # the rows that have a value of the feature whose turn it is

    @property
    def n_open(self) -> int:
        """Evaluations that are still open, where every row has every feature."""
        n = len(self._block.rows) - len(self._block.predictions)
        if self._plan:
            n += self.n_rows * sum(len(points) for _, points, _ in self._plan) - self._n_done * len(self._plan[0][1])
        return n

    @property
    def n_rows(self) -> int:
        """Rows that are asked at all points of a feature."""
        return len(self._questions.rows)

    @property
    def is_done(self) -> bool:
        """Whether every curve has been updated."""
        return not self._plan

    def forget(self, name: Any) -> None:
        """Leave out a feature."""
        if self._plan and self._plan[0][0] == name:
            self._done, self._n_done = [], 0
        self._plan = [turn for turn in self._plan if turn[0] != name]

    def next_probe(self) -> list[dict[Any, Any]]:
        """Return the probe rows of the next round."""
        probe = [*self._probe, *({} for _ in range(self._n_probe - len(self._probe)))]
        for row, slot in zip(self._drawn.tolist(), self._slots.tolist(), strict=True):
            if slot >= 0:
                probe[slot] = self._block.rows[row]
        return probe

    @property
    def _n_probe(self) -> int:
        return max(len(self._probe), int(self._slots.max(initial=-1)) + 1)

    def step(self, curves: Mapping[Any, Curve], n: int, model: AskedModel, n_ice: int) -> Iterator[tuple[Any, int]]:
        """Ask for about `n` predictions, at most a row more.

        Yield feature and rows left out for each curve updated. Turns that need no prediction are taken too, where `n`
        is 1 or more.
        """
        block = self._block
        n_known = len(block.predictions)
        if n_known < len(block.rows):
            more = block.rows[n_known : n_known + n]
            block.predictions = np.concatenate([block.predictions, model.rows(more)])
            n -= len(more)
        while n > 0 and self._plan:
            name, points, grid = self._plan[0]
            first = self._n_done
            self._n_done = min(first - (-n // len(points)), self.n_rows)
            n -= (self._n_done - first) * len(points)
            self._done.append(self._asked(curves[name], first, self._n_done, name, points, model))
            if self._n_done < self.n_rows:
                continue
            predictions, n_probe = np.concatenate(self._done), len(self._probe)
            found = Evaluated(
                points, predictions[:n_probe], predictions[n_probe:], self._shares, self._drawn, self._slots
            )
            self._plan, self._done, self._n_done = self._plan[1:], [], 0
            yield name, curves[name].update(name, found, grid, block, self._n_probe, n_ice)

    def _asked(self, curve: Curve, first: int, end: int, name: Any, points: list[Any], model: AskedModel) -> Array:
        """Return predictions for rows first to end; NaN where no value fits."""
        if self._fitting is None or self._fitting[0] != name:
            values = fitting_of(self._questions.rows, name, curve.values.numeric)
            self._fitting = name, np.array([i for i, value in enumerate(values) if value is not None], dtype=np.int64)
        begin, stop = np.searchsorted(self._fitting[1], (first, end))
        those = self._fitting[1][begin:stop]
        found = np.full((end - first, len(points)), np.nan)
        if len(those):
            found[those - first] = model.grid(self._questions, those, name, points)
        return found

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "rows": list(map(dict, self._block.rows)),
            "predictions": self._block.predictions.tobytes(),
            "probe": list(map(dict, self._probe)),
            "drawn": self._drawn.tolist(),
            "shares": self._shares.tolist(),
            "slots": self._slots.tolist(),
            "plan": [(name, list(points), list(grid)) for name, points, grid in self._plan],
            "done": [(len(part), part.tobytes()) for part in self._done],
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, alpha: float) -> Round:
        """Return the round that the snapshot was taken of."""
        made = cls(
            Block(list(map(dict, snapshot["rows"])), np.frombuffer(snapshot["predictions"]), alpha),
            list(map(dict, snapshot["probe"])),
            np.array(snapshot["drawn"], dtype=np.int64),
            np.array(snapshot["shares"], dtype=np.float64),
            np.array(snapshot["slots"], dtype=np.int64),
            [(name, list(points), list(grid)) for name, points, grid in snapshot["plan"]],
        )
        made._done = [np.frombuffer(data).reshape(n, -1) for n, data in snapshot["done"]]
        made._n_done = sum(map(len, made._done))
        return made


def new_round(
    block: Block,
    probe: list[dict[Any, Any]],
    n: int,
    n_recent: int,
    curves: Mapping[Any, Curve],
    grid_size: int,
    rng: np.random.Generator,
) -> Round:
    """Return a round with about `n` rows drawn from the block.

    It has as many of the probe at most. There were `n_recent` observations, 1 / alpha at most.
    """
    probe = probe[:n]
    drawn, shares = draw_rows(block.weights, n, rng)
    # A row stands in the probe with the same chance whenever it came in the last 1/alpha observations.
    chance = n * len(block.rows) / max(len(drawn), 1) / max(n_recent, 1)
    slots = draw_slots(len(drawn), len(probe), n, chance, rng)
    plan = []
    for name, curve in curves.items():
        grid = curve.values.new_grid(curve.grid, grid_size)
        wanted = curve.grid if grid is None else grid
        if wanted:
            plan.append((name, list(dict.fromkeys((*wanted, *curve.grid))), wanted))
    return Round(block, probe, drawn, shares, slots, plan)


def draw_rows(weights: Array, n: int, rng: np.random.Generator) -> tuple[Ints, Array]:
    """Draw about `n` rows by weight; return their numbers and weights.

    The numbers ascend. Up to `n` rows are all taken, with their own weights. Of more, one is drawn out of each of `n`
    strata of equal weight; one that is drawn twice counts twice.
    """
    if len(weights) <= n:
        return np.arange(len(weights)), weights
    upto = np.cumsum(weights)
    places = (np.arange(n) + rng.random(n)) / n * upto[-1]
    rows, counts = np.unique(np.searchsorted(upto, places, side="right").clip(max=len(weights) - 1), return_counts=True)
    return rows, counts.astype(np.float64)


def draw_slots(n_new: int, n_probe: int, size: int, chance: float, rng: np.random.Generator) -> Ints:
    """Return the probe row that each new row becomes, -1 for none.

    The probe has `n_probe` rows and may have `size`: free places are taken first; then a new row takes the place of
    another with the probability `chance`.
    """
    slots = np.full(n_new, -1)
    n_free = min(size - n_probe, n_new)
    slots[:n_free] = np.arange(n_probe, n_probe + n_free)
    places = rng.permutation(n_probe)[: n_new - n_free]
    others = slice(n_free, n_free + len(places))
    slots[others] = np.where(rng.random(len(places)) < chance, places, -1)
    return slots
