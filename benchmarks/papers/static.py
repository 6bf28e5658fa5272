"""Explaining a static model with few calls to it.

A model of scikit-learn takes a millisecond for one row and hardly more for a thousand. What an explainer asks of a
static model does not depend on the answers, as long as its draws do not: so it runs twice with the same seed, first
with a model that notes the rows and answers nothing of value, then with one that gives their predictions in turn.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from attributary_explainers.typing import Features, Importance
from benchmarks.papers.explainers import as_batch

T = TypeVar("T")
E = TypeVar("E", bound="Explains")

Matrix = npt.NDArray[np.float64]
PredictMany = Callable[[Matrix], Sequence[Any]]


class Explains(Protocol):
    """What is run twice."""

    def explain_one(self, x: Features, y: Any = None) -> Importance: ...


class _Recorder:
    """Notes the rows that it is asked about, and answers always the same."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self._noted: list[Matrix] = []

    def __call__(self, rows: Matrix) -> list[Any]:
        self._noted.append(rows)
        return [self.answer] * len(rows)

    def take(self) -> list[Matrix]:
        noted, self._noted = self._noted, []
        return noted


class _Replayer:
    """Gives predictions in turn, to exactly the rows that they were made for."""

    def __init__(self) -> None:
        self._rest: Iterator[tuple[Matrix, Sequence[Any]]] = iter(())

    def load(self, noted: Sequence[Matrix], predict_many: PredictMany) -> None:
        self.check_done()
        predictions = predict_many(np.concatenate(noted)) if noted else ()
        ends = np.cumsum([len(rows) for rows in noted]).tolist()
        parts = [predictions[end - len(rows) : end] for rows, end in zip(noted, ends, strict=True)]
        self._rest = iter(list(zip(noted, parts, strict=True)))

    def check_done(self) -> None:
        if next(self._rest, None) is not None:
            raise RuntimeError("rows that were noted were not asked for again")

    def __call__(self, rows: Matrix) -> Sequence[Any]:
        noted, predictions = next(self._rest, (None, ()))
        if noted is None or not np.array_equal(noted, rows):
            raise RuntimeError(
                "rows differ from those noted: what is asked depends on the answers; ask the model itself"
            )
        return predictions


class Shared:
    """A model for two explainers that ask for the same rows, as those do that differ in alpha alone: asked once.

    Give one explainer `as_batch(shared.first)`, the other `as_batch(shared.again)`, and call them in this order.
    """

    def __init__(self, predict_many: Callable[[Sequence[Features]], Sequence[Any]]) -> None:
        self._predict_many = predict_many
        self._kept: deque[tuple[Sequence[Features], Sequence[Any]]] = deque()

    def first(self, rows: Sequence[Features]) -> Sequence[Any]:
        """Predictions, kept for `again`."""
        found = self._predict_many(rows)
        self._kept.append((rows, found))
        return found

    def again(self, rows: Sequence[Features]) -> Sequence[Any]:
        """The predictions that `first` has made for the same rows.

        Raises
        ------
        RuntimeError
            The rows are others.
        """
        asked, found = self._kept.popleft()
        if asked != rows:
            raise RuntimeError("two explainers with equal seeds asked for different rows")
        return found


@contextmanager
def _no_warnings() -> Iterator[None]:
    # That every loss is the same, say: true of the pass that only notes rows, and of no model.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def explain_static(
    make: Callable[[Any], E],
    predict_many: PredictMany,
    stream: Iterable[tuple[Features, Any]],
    *,
    names: Sequence[str],
    answer: Any,
    chunk: int = 500,
) -> Iterator[E]:
    """Run an explainer of a static model over a stream; gives the explainer after every observation.

    Parameters
    ----------
    make
        Makes the explainer of a model, with the same seed each time; called twice.
    predict_many
        Predictions of rows, as the explainer's loss reads them.
    names
        The features, in the order of the columns of `predict_many`.
    answer
        Any usable prediction, for the first pass.
    chunk
        Observations whose rows are predicted, and held in memory, at once.

    Raises
    ------
    RuntimeError
        The rows of the two passes differ.
    """
    recorder, replayer = _Recorder(answer), _Replayer()
    first, second = make(as_batch(recorder, features=names)), make(as_batch(replayer, features=names))
    rest = iter(stream)
    while observations := list(islice(rest, chunk)):
        with _no_warnings():
            for x, y in observations:
                first.explain_one(x, y)
        replayer.load(recorder.take(), predict_many)
        for x, y in observations:
            second.explain_one(x, y)
            yield second
    replayer.check_done()


def compute_static(compute: Callable[[Any], T], predict_many: PredictMany, *, names: Sequence[str], answer: Any) -> T:
    """Compute something of a static model in the same two passes, all of it at once; `compute` is called twice."""
    recorder, replayer = _Recorder(answer), _Replayer()
    with _no_warnings():
        compute(as_batch(recorder, features=names))
    replayer.load(recorder.take(), predict_many)
    result = compute(as_batch(replayer, features=names))
    replayer.check_done()
    return result
