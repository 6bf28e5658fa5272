"""The members of an ensemble, each with its own fast path, and their predictions under common labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import make_evaluator, make_member
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array


class Members:
    """Keeps fast paths of models that may be exchanged at any time; a new model gets a new path.

    Parameters
    ----------
    schema
        The schema of the rows.
    of_labels
        Whether labels of the models are enough: of a classifier without probabilities, too.
    """

    def __init__(self, schema: Schema, *, of_labels: bool = False) -> None:
        self.schema = schema
        self._make = make_evaluator if of_labels else make_member
        self.labels: tuple[Any, ...] = ()
        """For classifiers, the classes of all members at the last call, in the order of `sort_key`."""
        self._models: list[Any] = []
        self._features: list[tuple[Any, ...] | None] = []
        self._evaluators: list[Evaluator] = []
        self._columns: list[Any] = []
        self._seen: list[tuple[Any, ...]] = []
        self._places: list[list[int]] = []

    def predict(self, X: Array, models: Sequence[Any], features: Sequence[Any] | None = None) -> list[Array]:
        """Return the predictions of each model; `labels` is not set.

        Parameters
        ----------
        features
            For each model, the features that it sees, or None for all.

        Raises
        ------
        NotCoveredError
            A model is not covered, or has no prediction for a row.
        """
        self.follow(models, features)
        found = []
        for evaluator, columns in zip(self._evaluators, self._columns, strict=True):
            P = evaluator.predict(X if columns is None else np.take(X, columns, axis=1))
            if np.isnan(P).any():
                raise NotCoveredError("a member of the ensemble has no prediction yet")
            found.append(P)
        return found

    def votes(self, X: Array, models: Sequence[Any], features: Sequence[Any] | None = None) -> list[Array]:
        """Return the predictions of classifiers, shape (rows, labels) each: 0 for a class that a model lacks."""
        found = self.predict(X, models, features)
        seen = self.labels_of_each()
        if seen != self._seen:
            self._seen = seen
            self.labels = tuple(sorted(dict.fromkeys(label for labels in seen for label in labels), key=sort_key))
            place = {label: i for i, label in enumerate(self.labels)}
            self._places = [[place[label] for label in labels] for labels in seen]
        n = len(self.labels)
        for i, (P, places) in enumerate(zip(found, self._places, strict=True)):
            if len(places) < n:
                found[i] = np.zeros((len(X), n))
                found[i][:, places] = P
        return found

    def labels_of_each(self) -> list[tuple[Any, ...]]:
        """Return the classes of each model at the last call.

        Raises
        ------
        NotCoveredError
            A model is no classifier.
        """
        if any(evaluator.labels is None for evaluator in self._evaluators):
            raise NotCoveredError("a member of the ensemble is no classifier")
        return [evaluator.labels or () for evaluator in self._evaluators]

    def follow(self, models: Sequence[Any], features: Sequence[Any] | None = None) -> None:
        """Make a path for each of these models that has none yet, and drop those of all others.

        Raises
        ------
        NotCoveredError
            A model is not covered.
        """
        seen = [None if names is None else tuple(names) for names in features or [None] * len(models)]
        if (
            len(models) == len(self._models)
            and all(one is other for one, other in zip(models, self._models, strict=True))
            and seen == self._features
        ):
            return
        known = {
            (id(model), names): (evaluator, columns)
            for model, names, evaluator, columns in zip(
                self._models, self._features, self._evaluators, self._columns, strict=True
            )
        }
        paths = [
            known.get((id(model), names)) or self._path(model, names) for model, names in zip(models, seen, strict=True)
        ]
        self._evaluators, self._columns = [path[0] for path in paths], [path[1] for path in paths]
        self._models, self._features = list(models), seen

    def _path(self, model: Any, names: tuple[Any, ...] | None) -> tuple[Evaluator, Any]:
        schema = self.schema
        if names is None:
            return self._make(model, schema), None
        kept = [name for name in names if name in schema.position]
        if not kept:
            raise NotCoveredError("a member of the ensemble sees no feature")
        inner = schema.for_columns(kept, schema.categorical.intersection(kept), schema.numbers)
        columns = [schema.position[name] for name in inner.features]
        for column in inner.codes:
            inner.share(column, schema, columns[column])
        return self._make(model, inner), columns
