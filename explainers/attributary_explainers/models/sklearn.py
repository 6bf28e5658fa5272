"""scikit-learn estimators as models, without importing scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import base, compose

from ..errors import InvalidParameterError, ModelError
from ..predictions import Kind, as_output
from ..typing import Features, Output, Prediction
from .batch import BatchFunction, Frames, Mixing, check_names, is_numeric, object_array, pandas_or_none, per_row, table
from .threads import by_one_thread
from .trained.native import (
    a_category_of,
    as_in_rows,
    as_written,
    categorical_of,
    columns_of,
    first_line,
    has_text_columns,
    library_of,
)

# scikit-learn's estimator types. A density estimator scores rows as an outlier detector does: low where data are rare.
_KINDS: dict[Any, Kind] = {
    "classifier": "classifier",
    "regressor": "regressor",
    "outlier_detector": "anomaly_detector",
    "density_estimator": "anomaly_detector",
}


class SklearnModel:
    """A scikit-learn-like estimator with named features or classes.

    Explainers take the estimator itself, too. Its columns are then

    1. `feature_names_in_`, where it was fitted on a data frame: rows are read by these names, and handed over as a
       pandas data frame (an array where pandas is not installed). Strings, categories and transformers that select
       columns by name work as they did in `fit`;
    2. else the features of the first row that the explainer sees, in the order of that row; later rows are read by
       name. **Wrap the estimator to name them** where the keys of a row may come in another order than the columns
       that it was fitted on: positions are all that such an estimator knows.

    A feature that a row lacks is NaN; whether that is allowed is the estimator's affair. An estimator that is not
    fitted yet has no prediction. Predictions: `predict_proba` or the label of a classifier, `predict` of a
    regressor, and for an outlier detector or density estimator **minus** `score_samples`, so that larger is more
    anomalous, as River's `score_one`. Labels are those of `classes_`, as builtins.

    The estimator is neither copied nor changed: fit it, or `partial_fit` it, as you like. Where a stream's
    observations are to be learnt one by one, `river.compat.convert_sklearn_to_river(estimator, classes)` gives a
    River model with `learn_one`, which explainers take as such and evaluate in batches. Give it sorted classes.

    Parameters
    ----------
    estimator
        Classifier, regressor, outlier detector or density estimator, fitted or not; a pipeline or search of one.
    features
        Names of the columns in the order that the estimator was fitted with; None takes the rules above. Where it
        has `feature_names_in_` these must be the same names.
    classes
        Labels in the order of its `classes_`, of a classifier that was fitted to numbers in their place, as those of
        XGBoost are; None where it knows them itself.

    Raises
    ------
    InvalidParameterError
        `estimator` is none, `features` or `classes` is a string, empty, or names one twice, or classes are named of
        one that is no classifier.

    Examples
    --------
    >>> from attributary_explainers import IncrementalPFI
    >>> from sklearn.linear_model import LinearRegression
    >>> estimator = LinearRegression().fit([[0, 0], [1, 0], [0, 1]], [0.0, 3.0, 0.0])
    >>> pfi = IncrementalPFI(SklearnModel(estimator, features=["a", "b"]), n_samples=5, seed=1)
    >>> for i in range(20):
    ...     importance = pfi.explain_one({"b": i, "a": i % 2}, 3.0 * (i % 2))
    >>> importance["a"] > 0.1, abs(importance["b"]) < 1e-9
    (True, True)
    """

    classes: tuple[Any, ...] | None = None

    def __init__(
        self, estimator: Any, features: Iterable[Any] | None = None, classes: Iterable[Any] | None = None
    ) -> None:
        if not is_estimator(estimator):
            raise InvalidParameterError("estimator", "an estimator with fit and get_params", estimator)
        self.estimator = estimator
        self.features = None if features is None else check_names("features", features)
        if classes is not None:
            if estimator_kind(estimator) != "classifier":
                raise InvalidParameterError("classes", "None: it is no classifier", list(classes))
            self.classes = check_names("classes", classes)

    @property
    def labels(self) -> dict[Any, Any]:
        """The fitted estimator's classes, in order, to the names given to them.

        Raises
        ------
        ModelError
            It has no list of them, or as many as are named.
        """
        own = _classes(self.estimator)
        if self.classes is not None and len(self.classes) != len(own):
            raise ModelError(
                f"{type(self.estimator).__name__} has {len(own)} classes, and classes names {len(self.classes)}: name "
                "each, in the order of classes_"
            )
        return dict(zip(own, own if self.classes is None else self.classes, strict=True))

    def __repr__(self) -> str:
        named = {"features": self.features, "classes": self.classes}
        said = "".join(f", {name}={list(found)!r}" for name, found in named.items() if found is not None)
        return f"SklearnModel({self.estimator!r}{said})"


def is_estimator(model: Any) -> bool:
    """Return whether a model is a scikit-learn-like estimator, not River's."""
    if isinstance(model, SklearnModel):
        return True
    return hasattr(model, "fit") and hasattr(model, "get_params") and not isinstance(model, (type, base.Base))


def estimator_kind(estimator: Any) -> Kind | None:
    """Return an estimator's declared kind; None if it cannot be explained."""
    return _KINDS.get(_estimator_type(_bare(estimator)))


def estimator_has_probabilities(classifier: Any) -> bool:
    """Return whether a classifier, as configured, has `predict_proba`."""
    return hasattr(_bare(classifier), "predict_proba")


def estimator_refusal(estimator: Any) -> str:
    """Return why an estimator of no kind is unexplainable, with the remedy."""
    if _estimator_type(_bare(estimator)) == "clusterer":
        return "no loss says how good a cluster is: give a callable that returns a number, such as a distance"
    return (
        "it does not say that it is a classifier, regressor or outlier detector: give "
        "as_batch(estimator.predict, features=[...])"
    )


def sklearn_function(model: Any, output: Output) -> BatchFunction:
    """Return an estimator's batch function for the output a loss reads.

    Raises
    ------
    ModelError
        The estimator lacks the method for it.
    """
    wrapped = model if isinstance(model, SklearnModel) else SklearnModel(model)
    estimator, columns = wrapped.estimator, _Columns(wrapped)
    if output == "probabilities":
        method = "predict_proba"
    else:
        method = "score_samples" if estimator_kind(estimator) == "anomaly_detector" else "predict"
    if not hasattr(estimator, method):
        advice = "LocalOutlierFactor needs novelty=True" if method == "score_samples" else "fit it, or give a callable"
        raise ModelError(f"{type(estimator).__name__} has no {method}: {advice}")

    ask = by_one_thread(estimator, method)

    def predict_many(rows: Sequence[Features]) -> list[Any]:
        try:
            found = columns.call(ask, rows)
        except Exception as error:
            if is_not_fitted(error) or not _is_fitted(estimator):
                return [None] * len(rows)
            if library_of(estimator) == "xgboost" and "\n" in str(error):  # its stack, address by address
                raise ModelError(f"{type(estimator).__name__} fails: {first_line(error)}") from error
            raise
        classes = list(wrapped.labels.values()) if method == "predict_proba" else None
        predictions = per_row(found, len(rows), classes)
        if wrapped.classes is not None and method == "predict":
            labels = wrapped.labels
            return [labels[one] for one in predictions]
        return [-score for score in predictions] if method == "score_samples" else predictions

    return EstimatorFunction(predict_many, output, columns.see, (wrapped, method, columns))


class EstimatorFunction(BatchFunction):
    """A `BatchFunction` of an estimator that also mixes rows by column."""

    def __init__(self, predict_many: Any, output: Output, see: Any, parts: tuple[SklearnModel, str, _Columns]) -> None:
        super().__init__(predict_many, output, see)
        self._model, self._method, self._columns = parts
        self._is_label = output == "label"

    def mixing(self, rows: Sequence[Features]) -> Mixing | None:
        """Return the predictor of rows mixed from these; None for labels."""
        if self._is_label:
            return None
        labels = tuple(self._model.labels.values()) if self._method == "predict_proba" else None
        X = self._columns.call(lambda X: X, rows)
        names = self._columns.names()
        of_frame = None if isinstance(X, np.ndarray) else pandas_or_none()
        given = [X[name].array for name in X.columns] if of_frame is not None else [X]
        sign = -1.0 if self._method == "score_samples" else 1.0
        ask = by_one_thread(self._model.estimator, self._method)

        def predict(idx: Any) -> Any:
            if of_frame is None:
                made: Any = given[0][idx, np.arange(len(names))]
            else:
                made = of_frame.DataFrame(
                    {name: c.take(idx[:, j]) for j, (name, c) in enumerate(zip(X.columns, given, strict=True))}
                )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                found = np.asarray(ask(made), dtype=np.float64)
            return sign * found.reshape(len(idx), 1 if labels is None else len(labels))

        return Mixing(names, labels, predict)


def estimator_input(model: Any, rows: Sequence[Features]) -> tuple[Any, list[Any]]:
    """Return the estimator's input for rows, and the names of its columns.

    The first of the rows gives the order where nothing else does.

    Raises
    ------
    ModelError
        The first row has more or fewer features than the estimator was fitted with.
    """
    columns = _Columns(model if isinstance(model, SklearnModel) else SklearnModel(model))
    return columns.call(lambda X: X, rows), columns.names()


def is_not_fitted(error: Exception) -> bool:
    """Return whether an error is scikit-learn's NotFittedError, by its name."""
    return any(kind.__name__ == "NotFittedError" for kind in type(error).__mro__)


class _Columns:
    """Conversion of rows into the input of the estimator."""

    def __init__(self, model: SklearnModel) -> None:
        self._estimator, self._given = model.estimator, model.features
        self._seen: tuple[Any, ...] | None = None
        self._in_rows: Sequence[Any] = ()
        self._frames: tuple[Any, Frames] | None = None

    def see(self, x: Features) -> None:
        """Take the order of features from this row where nothing else gives it."""
        if self._given is not None or self._names() is not None:
            return
        expected = getattr(self._estimator, "n_features_in_", None)
        # Taken again where it was taken before the estimator was fitted, from a row that lacked something.
        if self._seen is not None and expected in (None, len(self._seen)):
            return
        if expected is not None and expected != len(x):
            raise ModelError(
                f"{type(self._estimator).__name__} was fitted with {expected} features, the first row has {len(x)}: "
                "name them in order, SklearnModel(estimator, features=[...])"
            )
        self._seen = tuple(x)

    def call(self, method: Callable[[Any], Any], rows: Sequence[Features]) -> Any:
        """Convert the rows, and return the result of `method` for them."""
        names = self._names()
        if names is None:
            self.see(rows[0])
            self._in_rows = self._given or self._seen or ()
            return method(_array(table(rows, self._in_rows), has_text_columns(self._estimator)))
        is_light = library_of(self._estimator) == "lightgbm"
        if self._given is not None and set(as_written(self._given) if is_light else self._given) != set(names):
            raise ModelError(
                f"{type(self._estimator).__name__} was fitted with the columns {names}, but features are "
                f"{list(self._given)}: leave features out, or fit the estimator with these names"
            )
        self._in_rows = as_in_rows(names, rows) if is_light else names
        values = table(rows, self._in_rows)
        if (frames := self._made()) is not None:
            return method(frames.make(values, names))
        with warnings.catch_warnings():
            # Without pandas the names cannot be handed over; the order is theirs all the same.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return method(_array(values))

    def _made(self) -> Frames | None:
        """Return the `Frames` of the estimator's current fit; None without pandas."""
        if (pandas := pandas_or_none()) is None:
            return None
        fitted = getattr(self._estimator, "_Booster", None)
        if self._frames is None or self._frames[0] is not fitted:
            library = library_of(self._estimator)
            categorical = categorical_of(self._estimator) if library in ("xgboost", "lightgbm") else ()
            a_category = partial(a_category_of, self._estimator) if library == "xgboost" else None
            self._frames = fitted, Frames(pandas, categorical, a_category)
        return self._frames[1]

    def names(self) -> list[Any]:
        """Return the names of the columns as the rows of the last call have them."""
        return list(self._in_rows)

    def _names(self) -> list[Any] | None:
        if library_of(self._estimator) in ("lightgbm", "catboost"):
            return _names_of_booster(self._estimator)
        names = getattr(self._estimator, "feature_names_in_", None)
        return None if names is None else np.asarray(names).tolist()


def _names_of_booster(estimator: Any) -> list[Any] | None:
    # LightGBM also calls columns names that had none; CatBoost has another attribute than scikit-learn.
    try:
        return columns_of(estimator)
    except AttributeError:  # LightGBM's, which is not fitted yet
        return None
    except Exception:
        if _is_fitted(estimator):
            raise
        return None


def _is_fitted(estimator: Any) -> bool:
    # CatBoost's error of what is not fitted is that of everything.
    return bool(estimator.is_fitted()) if library_of(estimator) == "catboost" else True


def _bare(model: Any) -> Any:
    return model.estimator if isinstance(model, SklearnModel) else model


def _estimator_type(estimator: Any) -> Any:
    # Tags since scikit-learn 1.6; the attribute before, and in libraries that follow it.
    try:
        found = getattr(estimator.__sklearn_tags__(), "estimator_type", None)
    except (AttributeError, TypeError):
        found = None
    found = found or getattr(estimator, "_estimator_type", None)
    if found is None and hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_"):
        return "classifier"
    return found


def _array(values: list[list[Any]], has_text: bool = False) -> Any:
    if has_text:
        return object_array(values)
    # Never np.array(values) of mixed kinds: it would turn numbers into strings.
    if is_numeric(values):
        return np.array(values, dtype=np.float64)
    found = np.empty((len(values), len(values[0])), dtype=object)
    for i, row in enumerate(values):
        found[i] = row
    return found


def _classes(estimator: Any) -> list[Any]:
    classes = getattr(estimator, "classes_", None)
    if classes is None or any(isinstance(label, (list, np.ndarray)) for label in classes):
        raise ModelError(
            f"{type(estimator).__name__} has no list of labels in classes_: give "
            "as_batch(estimator.predict_proba, features=[...], classes=[...])"
        )
    return [label.item() if isinstance(label, np.generic) else label for label in classes]


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
