"""One learning model under many change explainers: each frozen state of it is made and asked once for all of them.

What an explainer sees is what it would see without: a copy of the model as it was, and its labels. A test compares.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from river import base

from attributary_explainers.pickling import dump_model, load_model

Row = Mapping[str, Any]


class _Remembering(base.Classifier):
    """A classifier that keeps its answers, by row."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._known: dict[tuple[Hashable, ...], tuple[dict[Any, float], Any]] = {}

    def predict_proba_one(self, x: Any, **_: Any) -> dict[Any, float]:
        """The model's probabilities."""
        return self._answer(x)[0]

    def predict_one(self, x: Any, **_: Any) -> Any:
        """The label with the greatest probability, the first of several; None where there is none."""
        return self._answer(x)[1]

    def _answer(self, x: Row) -> tuple[dict[Any, float], Any]:
        row = tuple(x.values())
        answer = self._known.get(row)
        if answer is None:
            probabilities = self._model.predict_proba_one(x)
            label = max(probabilities, key=probabilities.__getitem__) if probabilities else None
            answer = self._known[row] = probabilities, label
        return answer

    def learn_one(self, x: Any, y: Any) -> None:
        """Nothing: only `SharedModel` learns."""


class Frozen(_Remembering):
    """The model as it was when it had learnt so many observations."""


class SharedModel(_Remembering):
    """A model that learns, and its states in the past.

    Parameters
    ----------
    model
        The model; every row has the same features in the same order.
    """

    _all: ClassVar[WeakValueDictionary[int, SharedModel]] = WeakValueDictionary()

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.n_learnt = 0
        self._frozen: WeakValueDictionary[int, Frozen] = WeakValueDictionary()
        SharedModel._all[id(self)] = self

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn; what it answered before is forgotten."""
        self._model.learn_one(x, y)
        self.n_learnt += 1
        self._known = {}

    def frozen(self) -> Frozen:
        """The present state, as one object for all who ask before it learns again."""
        state = self._frozen.get(self.n_learnt)
        if state is None:
            state = self._frozen[self.n_learnt] = Frozen(load_model(dump_model(self._model)))
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        # An explainer copies its model by way of bytes; these say which state, and loading gives the one object.
        return _frozen_now, (id(self), self.n_learnt)


def _frozen_now(key: int, n_learnt: int) -> Frozen:
    shared = SharedModel._all[key]
    if n_learnt != shared.n_learnt:
        raise ValueError(f"the model has learnt {shared.n_learnt} observations since then, not {n_learnt}")
    return shared.frozen()
