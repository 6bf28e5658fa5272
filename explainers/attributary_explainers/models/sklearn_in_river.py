"""River's scikit-learn wrappers: a call of the estimator per batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from river import compose

from ..errors import ModelError
from ..predictions import as_output
from ..typing import Features, Output, Prediction
from .batch import per_row
from .sklearn import is_not_fitted


class CompatFunction:
    """A `ModelFunction` with `many`, of a wrapper or pipelines ending in it.

    One row is predicted by River; a batch by the pipeline's transformers row by row and the estimator at once. The
    estimator is given lists, as River does. A missing feature raises KeyError, as there.

    Raises
    ------
    ModelError
        Probabilities are asked of a classifier made with unsorted classes: scikit-learn sorts them, and River's
        wrapper gives its probabilities to the classes as they were given, so to the wrong ones.
    """

    def __init__(self, model: Any, predict_one: Callable[[Any], Any], output: Output) -> None:
        self._model, self._wrapper = model, _wrapper(model)
        self._predict_one, self._convert = predict_one, as_output(output)
        self._classes = list(self._wrapper.classes) if output == "probabilities" else None
        if self._classes and self._classes != (ordered := _sorted(self._classes)):
            raise ModelError(
                f"SKL2RiverClassifier gives the probabilities of the sorted classes to {self._classes}: make it with "
                f"classes={ordered}"
            )

    def __call__(self, x: Features, /) -> Prediction:
        """Return the prediction for a row."""
        return self._convert(self._predict_one(x))

    def many(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return the predictions for a batch of rows."""
        values = [self._wrapper._align_dict(self._transformed(dict(row))) for row in rows]
        estimator = self._wrapper.estimator
        try:
            found = (estimator.predict if self._classes is None else estimator.predict_proba)(values)
        except (ValueError, AttributeError) as error:
            if is_not_fitted(error):
                return [self(row) for row in rows]  # River has an answer of its own before the first observation
            raise
        return list(map(self._convert, per_row(found, len(rows), self._classes)))

    def _transformed(self, x: Any) -> Any:
        model = self._model
        while type(model) is compose.Pipeline:
            x, model = model.transform_one(x), _last(model)
        return x


def is_compat(model: Any) -> bool:
    """Return whether a model is, or ends in, River's scikit-learn wrapper."""
    # By name: importing river.compat imports scikit-learn.
    kind = type(_wrapper(model))
    return kind.__module__ == "river.compat.sklearn_to_river" and kind.__name__.startswith("SKL2River")


def _wrapper(model: Any) -> Any:
    while type(model) is compose.Pipeline and model.steps:
        model = _last(model)
    return model


def _last(pipeline: Any) -> Any:
    return next(reversed(pipeline.steps.values()))


def _sorted(classes: list[Any]) -> list[Any]:
    try:
        return sorted(classes)
    except TypeError:
        return classes  # of several kinds: scikit-learn refuses them itself
