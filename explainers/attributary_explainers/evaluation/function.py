"""A model as explainers know it, with its fast path if available."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, NoReturn

import numpy as np

from ..core.rows import Columns
from ..errors import FastPathFaultWarning, NaivePathWarning, UntestedRiverWarning, warn_caller
from ..predictions import is_usable
from ..typing import Array, Features, ModelFunction, Output, Prediction
from .evaluator import Evaluator, NotCoveredError
from .registry import make_evaluator, number_types, read_as_categories, takes_gaps
from .schema import Encoded, GapSchema, NotEncodableError, Schema, TwoTypesError, categorical_features, has_plain_values

_COMPARED = 1024
_COMPARED_UNTESTED = 64
"""Batches of which one is compared with the model, and those with a release of River that has not been tested."""
_MOST_CODES = 5000
_MOST_REASONS = 20
_LIGHT = "one row of a light model, which takes the model itself less time"
_FAULTY = "its fast path has been seen to differ from the model"
_said: set[tuple[str, str]] = set()
TOLERANCE = 1e-9
"""Difference from which on a fast path is said to be wrong: absolute, and relative for numbers beyond 1."""
TESTED_RIVER = "0.26.1"
"""The newest release of River for which the tests have shown every fast path to equal the model.

Fast paths are taken with every release of its series (0.26), and with no other.
"""
_MOST_FEATURES = 256
"""More features than these are not kept for rows to come, unless four observations have as many."""


class FastFunction:
    """A fast `ModelFunction` with `many`, and `predict` for encoded rows.

    The naive path, one call of the model per row, is the truth. It is taken for single rows, where the model, its state
    or the rows are not covered by a fast path, and for good once the two have been seen to differ. One row of the
    batches 1, 2, 4, 8, … and of every 1024th one is evaluated both ways; of every 64th one where River is newer than
    the newest release that fast paths are tested with.

    Parameters
    ----------
    model
        A model of a type that has a fast path.
    output
        What the loss reads.
    naive
        The model's prediction for one row.
    """

    def __init__(self, model: Any, output: Output, naive: ModelFunction) -> None:
        self._model, self._output, self._naive = model, output, naive
        self._categorical: frozenset[Any] | None = None
        self._schema: Schema | None = None
        self._columns: Columns | None = None
        """Reads observations by the schema; made when one of another form has come."""
        self._encoded: Encoded | None = None
        """The schema, and the row that `_columns` writes."""
        self._evaluator: Evaluator | None = None
        self._made: Evaluator | None = None
        self._expected: frozenset[Any] = frozenset()
        self._refused: str | None = None
        self._is_doubted = False
        """Whether the model was asked itself, so that it may read more features as categories than the schema has."""
        self._faulty = False
        self._most_codes = 0
        self.n_evaluated = 0
        """Batches that this function's own fast path has evaluated."""
        self.n_begun = 0
        """Batches whose evaluation was begun: each may overwrite the predictions of the one before."""
        self._compared = _COMPARED
        self._next_compared = 1
        """The next of these that is compared with the model."""
        self._room: Array = np.empty((0, 0))
        self._shown = self._room
        self._named: tuple[Any, ...] | None = None
        self.columns: dict[Any, int] = {}
        """The column of each class in the prediction that `first` was last given."""
        self._counts: Counter[str] = Counter()

    def __call__(self, x: Features, /) -> Prediction:
        """Return the model's own prediction for a row."""
        return self._naive(x)

    def one(self, x: Features) -> Prediction:
        """Return the model's own prediction for a single row, and count it."""
        self._counts[_LIGHT] += 1
        return self._naive(x)

    def many(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the predictions for a batch of rows."""
        try:
            opened = self.open_all(rows)
            return self.predictions(self.predict(opened.encode_many(rows)), self.labels)
        except (NotCoveredError, NotEncodableError) as reason:
            self.count_refusal(reason)
            return [self._naive(row) for row in rows]

    @property
    def naive(self) -> ModelFunction:
        """The function that asks the model itself, row by row."""
        return self._naive

    def count_refusal(self, reason: Exception | None) -> None:
        """Count a batch for which the model itself is asked, by the reason."""
        said = str(reason)
        counts = self._counts
        counts[said if said in counts or len(counts) < _MOST_REASONS else "other reasons"] += 1

    @property
    def counts(self) -> Counter[str]:
        """Batches by path: "fast", or else why the model itself was asked."""
        if self.n_evaluated:  # counted as a number, which takes a tenth of the time
            self._counts["fast"] = self.n_evaluated
        return self._counts

    @property
    def n_naive(self) -> int:
        """Batches for which the model itself was asked."""
        return self.counts.total() - self.n_evaluated

    def room(self, n_rows: int, n_features: int) -> Array:
        """Return an array for so many rows; the next call returns the same memory."""
        if self._shown.shape != (n_rows, n_features):
            if self._room.shape[0] < n_rows or self._room.shape[1] != n_features:
                self._room = np.empty((n_rows, n_features))
            self._shown = self._room[:n_rows]
        return self._shown

    def plain(self, x: Features) -> Encoded | None:
        """Return `x` as an array if complete and of the last form; else None."""
        columns = self._columns
        if columns is not None and type(x) is dict and not self._is_doubted and columns.read(x):
            return self._encoded
        return None

    def encode(self, x: Features) -> Encoded:
        """Return `x` as an array, with the schema for rows of its features.

        Raises
        ------
        NotCoveredError, NotEncodableError
            There is no fast path for the model, or for this row.
        """
        encoded = self.plain(x)
        if encoded is not None:
            return encoded
        # Other features, a number that has become a category, a new one: as for a process that begins here.
        schema = self.open(x)
        try:
            row = schema.encode(x)
        except TwoTypesError:
            # The other one may be long gone: as for a process that begins here.
            self._schema = self._columns = None
            schema = self.open(x)
            row = schema.encode(x)
        if self._columns is None:
            self._columns = columns = schema.reader()
            self._encoded = Encoded(schema, columns.row)
        return Encoded(schema, row)

    def open(self, x: Features) -> Schema:
        """Return the schema for rows with the features of `x`.

        The schema follows from `x` and the model alone: a restored process has to take the same path.

        Raises
        ------
        NotCoveredError, NotEncodableError
            There is no fast path for the model, or for any row with such values.
        """
        if self._faulty:
            raise NotCoveredError(_FAULTY)
        schema = self._schema
        if schema is None or not self._fits(schema, x):
            if not x:
                raise NotCoveredError("there is no feature")
            if not has_plain_values(x):
                raise NotEncodableError("a value is neither a number nor text")  # and the schema is kept
            self._categorical = read_as_categories(self._model)
            categorical = (self._categorical & x.keys()) | categorical_features(x)
            self._evaluator = self._refused = self._columns = None
            self._is_doubted = False
            schema = self._schema = self._new_schema(x, categorical)
            self._most_codes = 0
        return schema

    def expect(self, features: Iterable[Any]) -> None:
        """Expect features of groups in rows, even if the observation lacks them."""
        if not self._expected.issuperset(features):
            self._expected |= frozenset(features)
            self._schema = self._columns = None

    def _new_schema(self, x: Features, categorical: frozenset[Any]) -> Schema:
        self._made = None
        for schema in gap_schemas(self._model, x, categorical, self._expected, self._schema):
            try:
                self._made = make_evaluator(self._model, schema)
            except NotCoveredError:
                continue
            except Exception as error:  # noqa: BLE001 - as in `predict`
                self._give_up(f"raised {error!r}")
            return schema
        return Schema(x, categorical, number_types(self._model))

    def open_all(self, rows: Sequence[Features]) -> Schema:
        """Return the schema for rows, from them and the model alone: see `open`."""
        schema = self.open(rows[0])
        if schema.takes_gaps and not all(row.keys() <= schema.keys for row in rows):
            of_all = {name: value for row in reversed(rows) for name, value in row.items()}
            schema = self.open(of_all)
        return schema

    def _fits(self, schema: Schema, x: Features) -> bool:
        if self._is_doubted:
            # The model may read more features as categories by now, as a process that begins here would see at once.
            self._is_doubted = self._refused is not None
            if read_as_categories(self._model) != self._categorical:
                return False
        if schema.keys != x.keys() and not (schema.takes_gaps and x and x.keys() <= schema.keys):
            return False
        if schema.codes:
            most = max(map(len, schema.codes.values()))
            if not self._most_codes:  # those that the model and the reservoir hold now are needed again by the next one
                self._most_codes = min(max(_MOST_CODES, 2 * most), 8 * _MOST_CODES)
            if most > self._most_codes:
                return False
        return schema.categorical & x.keys() == (self._categorical or frozenset()) & x.keys() | categorical_features(x)

    def predict(self, X: Array) -> Array:
        """Return the predictions for rows encoded by the last `open`'s schema.

        See `Evaluator.predict`.

        Raises
        ------
        NotCoveredError
            The model is to be asked itself.
        """
        evaluator = self._evaluator
        if evaluator is None:
            evaluator = self._current()
        self.n_begun += 1
        try:
            P = evaluator.predict(X)
        except NotCoveredError:
            self._is_doubted = True
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours, which must not cost an explanation
            self._give_up(f"raised {error!r}")
        if self._output == "label":
            check_ties(P)
        calls = self.n_evaluated + 1
        if calls == self._next_compared:
            self._compare(P[-1], X[-1])
            self._next_compared = self._compared_after(calls)
        self.n_evaluated = calls
        return P

    def _compared_after(self, calls: int) -> int:
        """Return the next batch to be compared with the model after these calls."""
        return min(1 << calls.bit_length(), calls - calls % self._compared + self._compared)

    def _current(self) -> Evaluator:
        if self._evaluator is not None:
            return self._evaluator
        if self._refused is not None:
            raise NotCoveredError(self._refused)
        model, schema = self._model, self._schema
        assert schema is not None
        try:
            self._compared = _COMPARED_UNTESTED if is_newer_than_tested() else _COMPARED
            self._next_compared = self._compared_after(self.n_evaluated)
            self._evaluator = make_evaluator(model, schema) if self._made is None else self._made
        except NotCoveredError as reason:
            self._refused, self._is_doubted = str(reason), True
            say(model, self._refused)
            raise
        except Warning:
            raise  # a user who turns warnings into errors wants them
        except Exception as error:  # noqa: BLE001 - as in `predict`
            self._give_up(f"raised {error!r}")
        return self._evaluator

    def _compare(self, row: Array, encoded: Array) -> None:
        schema = self._schema
        assert schema is not None
        x = schema.decode(encoded, schema.features)
        try:
            expected, found = self._naive(x), self.predictions(row[None], self.labels)[0]
        except Exception:  # noqa: BLE001 - nothing to compare: what the model raises is not about this row alone
            return
        if differ(expected, found):
            self._give_up(f"gives {found!r} for {x!r}, and the model {expected!r}")

    def _give_up(self, fault: str) -> NoReturn:
        self._faulty, self._columns = True, None
        said = (
            f"the fast path of {type(self._model).__name__} {{}}: from now on the model itself is asked. Please report "
            "this with the versions of attributary and River, unless the model has learnt numbers of numpy's float32, "
            "in which it then computes: let it learn Python's, as `rows` gives them"
        )
        warning = FastPathFaultWarning(said.format(fault))
        warning.without_values = said.format("differs from the model, or failed")
        warn_caller(warning)
        raise NotCoveredError(_FAULTY)

    def __getstate__(self) -> dict[str, Any]:
        # What has been read of the model belongs to this object of it: a copy reads its own.
        return {
            **vars(self),
            **dict.fromkeys(("_schema", "_columns", "_encoded", "_evaluator", "_made", "_categorical")),
        }

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """For a classifier, the class of each column of the last prediction."""
        return None if self._evaluator is None else self._evaluator.labels

    def column(self, label: Any) -> int:
        """Return a class's column in the last prediction; -1 if it is unknown."""
        labels = self.labels
        if labels is not self._named:
            self._name_columns(labels)
        return self.columns.get(label, -1)

    def _name_columns(self, labels: tuple[Any, ...] | None) -> None:
        self._named, self.columns = labels, {label: i for i, label in enumerate(labels or ())}

    def first(self, P: Array, x: Features) -> Prediction:
        """Return the prediction of the first row, which is that of `x`.

        Where classes are equally probable the model itself is asked: the order of its classes says which one it names.
        """
        evaluator = self._evaluator
        labels = None if evaluator is None else evaluator.labels
        if labels is not self._named:
            self._name_columns(labels)
        if self._output == "label":
            return self.predictions(P[:1], self.labels)[0]
        if labels is not None and P.shape[1] == 2:  # without a list and a sort
            one, other = P.item(0), P.item(1)
            if one != one:
                return None
            if abs(one - other) <= TOLERANCE:
                return self._naive(x)
            return {labels[0]: one, labels[1]: other}
        row = P[0].tolist()
        if not row or row[0] != row[0]:
            return None
        if labels is None:
            number: float = row[0]
            return number
        if len(row) > 1:
            second, most = sorted(row)[-2:]
            if most - second <= TOLERANCE:
                return self._naive(x)
        return dict(zip(labels, row, strict=True))

    def predictions(self, P: Array, labels: tuple[Any, ...] | None) -> list[Prediction]:
        """Return rows of predictions in the form that the loss reads."""
        if labels is None:
            return [None if value != value else value for (value,) in P.tolist()]
        if self._output == "label":
            return _labels(P, labels)
        return [dict(zip(labels, row, strict=True)) if row and row[0] == row[0] else None for row in P.tolist()]


def say(model: Any, reason: str) -> None:
    """Warn that a model has no fast path, once per type and reason."""
    name = type(model).__name__
    if (name, reason) not in _said:
        _said.add((name, reason))
        warn_caller(NaivePathWarning(f"{name} is evaluated row by row, which is slow: {reason}. This is said once"))


def _labels(P: Array, labels: tuple[Any, ...]) -> list[Prediction]:
    if not labels:
        return [None] * len(P)
    known = (P[:, 0] == P[:, 0]).tolist()
    return [{labels[i]: 1.0} if there else None for i, there in zip(P.argmax(axis=1).tolist(), known, strict=True)]


def differ(expected: Prediction, found: Prediction) -> bool:
    """Return whether two predictions differ by more than rounding."""
    if not is_usable(expected) or not is_usable(found):
        return is_usable(expected) != is_usable(found)
    if isinstance(expected, dict) and isinstance(found, dict):
        return any(_are_apart(expected.get(label, 0.0), found.get(label, 0.0)) for label in {*expected, *found})
    if isinstance(expected, dict) or isinstance(found, dict) or expected is None or found is None:
        return True
    return _are_apart(expected, found)


def check_ties(P: Array) -> None:
    """Refuse probabilities that leave the model's predicted class unclear.

    Among equally probable classes the model names the one that it met first. It names a class also where its
    probabilities are NaN, and here NaN stands for a model without a prediction.

    Raises
    ------
    NotCoveredError
        A probability is NaN, or two classes of a row are equally probable.
    """
    if P.shape[1] and not (P == P).all():
        raise NotCoveredError("a probability is NaN")
    if P.shape[1] > 1:
        two = np.partition(P, -2, axis=1)
        if (two[:, -1] - two[:, -2] <= TOLERANCE).any():
            raise NotCoveredError("two classes are equally probable")


def _are_apart(a: float, b: float) -> bool:
    return not abs(a - b) <= TOLERANCE * max(1.0, abs(a))


def gap_schemas(
    model: Any, x: Features, categorical: frozenset[Any], expected: Collection[Any], before: Schema | None
) -> Iterator[GapSchema]:
    """Yield schemas for rows with gaps, best first, if the model takes such.

    Parameters
    ----------
    x
        The observation.
    categorical
        Those of its features that are categories.
    expected
        Features that rows made of it may have, too.
    before
        The schema until now: its features stay, so that later rows may have them again.
    """
    if not takes_gaps(model):
        return
    numbers = number_types(model)
    least = x.keys() | set(expected)
    if before is not None and before.takes_gaps:
        features = before.keys | least
        if len(features) <= max(_MOST_FEATURES, 4 * len(least)):
            yield GapSchema(features, (before.categorical - x.keys()) | categorical, numbers)
    # What is not covered may be about a feature that this observation lacks.
    yield GapSchema(least, categorical, numbers)


@cache
def is_newer_than_tested(river: str | None = None) -> bool:
    """Return whether River is newer than tested; warn the first time.

    Parameters
    ----------
    river
        A release of River; None is the one that is installed.

    Raises
    ------
    NotCoveredError
        The release is of another series: every prediction is asked of the model itself.
    """
    found, tested = _numbers(version("river") if river is None else river), _numbers(TESTED_RIVER)
    named = ".".join(map(str, found))
    if found[:2] != tested[:2]:
        raise NotCoveredError(f"fast paths are tested with River {tested[0]}.{tested[1]}, and this is River {named}")
    if found <= tested:
        return False
    warn_caller(
        UntestedRiverWarning(
            f"River {named} is newer than {TESTED_RIVER}, the newest release that fast paths are tested with. They are "
            "taken, and compared with the model more often. This is said once"
        )
    )
    return True


def _numbers(release: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", release)
    return tuple(map(int, found[0].split("."))) if found else ()
