"""Fast paths of models that vote for a label: voting, a model for each class or pair of classes, output codes."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
from river import ensemble, multiclass

from ..evaluation.comparison import TOLERANCE, check_ties
from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import categories_of_all, numbers_of_all, register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array, Ints
from .members import Members


class _LabelEvaluator(Evaluator):
    """The base of classifiers that name a label and have no probabilities."""

    names_label_alone = True
    _of_labels = False

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._members = Members(schema, of_labels=self._of_labels)
        self._members.follow(_members(model))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        named, labels = self._named(X)
        self.labels = tuple(sorted({label for label in labels if label is not None}, key=sort_key))
        place = {label: i for i, label in enumerate(self.labels)}
        columns = np.array([place.get(label, -1) for label in labels], dtype=np.int64)[named]
        P = np.zeros((len(X), len(self.labels)))
        there = columns >= 0
        P[np.flatnonzero(there), columns[there]] = 1.0
        P[~there] = np.nan
        return P

    @abc.abstractmethod
    def _named(self, X: Array) -> tuple[Ints, Sequence[Any]]:
        """Return for each row the number of its label, and the labels by number; None where there is no prediction."""


class VotingEvaluator(_LabelEvaluator):
    """Evaluates `ensemble.VotingClassifier`: the label with the largest sum of probabilities, or the most votes."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self._of_labels = not model.use_probabilities
        super().__init__(model, schema)

    def _named(self, X: Array) -> tuple[Ints, Sequence[Any]]:
        model = self.model
        if bool(model.use_probabilities) is self._of_labels:  # it may be set at any time
            self._of_labels = not model.use_probabilities
            self._members = Members(self.schema, of_labels=self._of_labels)
        members = self._members
        if model.use_probabilities:
            votes = members.votes(X, model.data)
            total = sum(votes[1:], start=votes[0]) if votes else np.zeros((len(X), 0))
            return _most_probable(total), members.labels or (None,)
        labels: list[Any] = [None]
        cast = np.array(
            [_with_labels(P, known, labels) for P, known in _predicted(members, X, model.data)], dtype=np.int64
        )
        # Of labels with as many votes, the one is named that was voted for first.
        n_votes = (cast[:, None, :] == cast[None, :, :]).sum(axis=0)
        first = n_votes.argmax(axis=0)
        return cast[first, np.arange(len(X))], labels


class OneVsOneEvaluator(_LabelEvaluator):
    """Evaluates `multiclass.OneVsOneClassifier`: the label that wins most of its pairs."""

    _of_labels = True

    def _named(self, X: Array) -> tuple[Ints, Sequence[Any]]:
        pairs = self.model.classifiers
        if not pairs:
            return np.zeros(len(X), dtype=np.int64), [None]
        labels: list[Any] = []
        cast = []
        for pair, (P, known) in zip(pairs, _predicted(self._members, X, list(pairs.values())), strict=True):
            wins = np.array([bool(label) for label in known] or [False])
            of_pair = np.array([_number(label, labels) for label in pair], dtype=np.int64)
            cast.append(of_pair[wins[_most_probable(P)].astype(np.int64)])
        votes = np.array(cast)
        n_votes = (votes[:, None, :] == votes[None, :, :]).sum(axis=0)
        return votes[n_votes.argmax(axis=0), np.arange(len(X))], labels


class OutputCodeEvaluator(_LabelEvaluator):
    """Evaluates `multiclass.OutputCodeClassifier`: the label whose code is nearest to the probabilities."""

    def _named(self, X: Array) -> tuple[Ints, Sequence[Any]]:
        model = self.model
        if not model.code_book:
            return np.zeros(len(X), dtype=np.int64), [None]
        found = _predicted(self._members, X, list(model.classifiers.values()))
        codes: dict[Any, Any] = {}
        for label, code in model.code_book.items():
            codes.setdefault(code, label)  # of labels with the same code the first one is named
        distances = np.zeros((len(X), len(codes)))
        for i, (P, known) in zip(model.classifiers, found, strict=True):
            p = P[:, known.index(True)] if True in known else np.zeros(len(X))
            for c, code in enumerate(codes):
                distances[:, c] += np.abs(code[i] - p)
        if len(codes) > 1:
            two = np.partition(distances, 1, axis=1)
            if not (two[:, 1] - two[:, 0] > TOLERANCE).all():
                raise NotCoveredError("two codes are equally near")
        return distances.argmin(axis=1), list(codes.values())


class OneVsRestEvaluator(Evaluator):
    """Evaluates `multiclass.OneVsRestClassifier`: each label has a model, and its share of what they all say."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._members = Members(schema)
        self._members.follow(_members(model))

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        models = self.model.classifiers
        self.labels = tuple(sorted(models, key=sort_key))
        P = np.zeros((len(X), len(models)))
        if not models:
            return P
        place = {label: i for i, label in enumerate(self.labels)}
        total = np.zeros(len(X))
        for label, (found, known) in zip(models, _predicted(self._members, X, list(models.values())), strict=True):
            if True not in known:
                raise NotCoveredError("the model of a label has not seen it")
            P[:, place[label]] = found[:, known.index(True)]
            total += P[:, place[label]]
        nothing = total == 0.0
        P /= np.where(nothing, 1.0, total)[:, None]
        P[nothing] = 1.0 / len(models)
        return P


def _members(model: Any) -> list[Any]:
    if type(model) is ensemble.VotingClassifier:
        voters: list[Any] = model.data
        return voters
    return list(model.classifiers.values())


def _predicted(members: Members, X: Array, models: Sequence[Any]) -> list[tuple[Array, tuple[Any, ...]]]:
    """Return what each classifier predicts, and its labels."""
    found = members.predict(X, models)
    return list(zip(found, members.labels_of_each(), strict=True))


def _most_probable(P: Array) -> Ints:
    """Return the number of the most probable label of each row; 0 where there is none.

    Raises
    ------
    NotCoveredError
        Two are equally probable: the order in which the model has met them decides.
    """
    if not P.shape[1]:
        return np.zeros(len(P), dtype=np.int64)
    check_ties(P)
    found: Ints = P.argmax(axis=1)
    return found


def _with_labels(P: Array, known: tuple[Any, ...], labels: list[Any]) -> Ints:
    """Return the most probable label of each row by its number among `labels`, which gets those that are new."""
    numbers = np.array([_number(label, labels) for label in known] or [0], dtype=np.int64)
    found: Ints = numbers[_most_probable(P)]
    return found


def _number(label: Any, labels: list[Any]) -> int:
    if label not in labels:
        labels.append(label)
    return labels.index(label)


def _all_models(model: Any) -> list[Any]:
    """Return the members there are, and the one that others are made of."""
    return [*_members(model), *([] if type(model) is ensemble.VotingClassifier else [model.classifier])]


for kind, evaluator in (
    (ensemble.VotingClassifier, VotingEvaluator),
    (multiclass.OneVsOneClassifier, OneVsOneEvaluator),
    (multiclass.OutputCodeClassifier, OutputCodeEvaluator),
    (multiclass.OneVsRestClassifier, OneVsRestEvaluator),
):
    register(
        kind,
        categorical=lambda model: categories_of_all(_all_models(model)),
        numbers=lambda model: numbers_of_all(_all_models(model)),
        gaps=True,
    )(evaluator)
