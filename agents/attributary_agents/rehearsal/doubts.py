"""Reasons why a model cannot work with its rows, and doubts about them.

No sentence holds a value of a row, but a label or a feature's name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, pvariance
from typing import Any

from attributary_explainers import Loss, TrainedModel, model_kind
from attributary_explainers.loss_shift.holdout import FEWEST, are_apart, labels_apart, names_apart
from attributary_explainers.losses.labels import check_positive
from attributary_explainers.losses.losses import costs_without_positive
from attributary_explainers.models.known import classes_of
from attributary_explainers.models.sklearn import is_estimator
from attributary_explainers.ordering import sort_key
from attributary_explainers.predictions import is_usable, predict_rows
from attributary_explainers.quality.names import has_positive
from attributary_explainers.typing import Prediction
from attributary_explainers.wording import did_you_mean, show_count, show_names
from attributary_topics import Observation

from ..config.models import ModelConfig
from ..config.steps import FileConfig
from ..models.guards.limits import LABELLED, features_of_model
from ..models.guards.ranges import ALL_OTHERS
from ..models.guards.vocabulary import OTHER
from ..models.model_state import ModelState

_SHOWN = 5

_MANY = 0.5
"""Share of the rows from which on different numbers are too many to be classes."""

_WORSE = 5.0
"""Times the loss of a constant from which on a model is said to lose more."""

_BY_HEART = 0.5
"""A hold-out looks learnt by heart below this share of the other rows' loss."""


def encode_text(model: Any, names: Sequence[str]) -> str:
    """Say that the model takes numbers only, and how to encode the text."""
    if isinstance(model, TrainedModel):
        how = "train it with an encoder before it, in one pipeline, and save both together"
    elif is_estimator(model):
        how = (
            "fit a pipeline that encodes it, as make_pipeline(make_column_transformer((OneHotEncoder(handle_unknown="
            f'"ignore"), {list(names[:_SHOWN])}), remainder="passthrough"), estimator)'
        )
    else:
        how = (
            "let a factory put an encoder before the model, ((compose.SelectType(str) | preprocessing.OneHotEncoder()) "
            "+ compose.SelectType(numbers.Number)) | model"
        )
    return (
        f"the model takes numbers only, and there is text in {show_names(names, _SHOWN)}: {how}; or leave the text out"
    )


def wrong_labels(config: ModelConfig, model: Any) -> str:
    """Say that labels have the wrong type for the model, with a remedy."""
    said = (
        "the labels are not of the type that the model reads: a regressor takes numbers, for labels take a classifier; "
        "to a classifier give labels as the model's classes are written"
    )
    file = config.model
    if model_kind(model) != "classifier" or not isinstance(file, FileConfig) or file.classes is not None:
        return said
    return f"{said}, or name those in the order of its numbers: model: {{file: {file.file}, …, classes: [LABEL, …]}}"


def no_prediction(model: Any) -> str:
    """Say that a model that does not learn predicts nothing."""
    fitted = "fit it before, in the function that `factory` names" if is_estimator(model) else "teach it before"
    return (
        f"{type(model).__name__} predicts nothing, on none of the rows, and does not learn (`learn: false`), so "
        f"nothing would ever be explained: {fitted}, or let it learn"
    )


def nothing_explained(skipped: Mapping[str, Mapping[str, int]], n_used: int) -> str:
    """Say that no row was explained, and why."""
    reasons = "; ".join(f"{name}: {counts_by_reason(counts)}" for name, counts in skipped.items())
    how = "see that the model predicts a finite number or probabilities for such rows"
    if "missing" in reasons:
        how = "where values are missing, the key `missing` says what to make of them"
    return f"none of the {n_used} rows used was explained, skipped {reasons or 'without a reason'}: {how}"


def counts_by_reason(counts: Mapping[str, int]) -> str:
    """Return counts with their reasons: `3 (nothing stored), 1 (missing)`."""
    return ", ".join(f"{n} ({reason.replace('_', ' ')})" for reason, n in counts.items())


def many_numbers(loss: Loss, ys: Sequence[Any]) -> str | None:
    """Say that a classifier's labels are many numbers; None if they are not.

    They are where all of at least ten are numbers, and more than half of them different.
    """
    numbers = [y for y in ys if isinstance(y, (int, float)) and not isinstance(y, bool)]
    n = len(set(numbers))
    if loss.output not in LABELLED or len(numbers) < max(len(ys), 10) or n <= _MANY * len(ys):
        return None
    return f"the labels are {n} different numbers in {len(ys)} rows, and to a classifier each is a class of its own"


def positive_class(state: ModelState, rows: Sequence[Observation], prediction: Prediction) -> str | None:
    """Return a line on the class that counts as positive by default.

    None where the configuration names it, where it is True or 1, or where neither a metric nor the loss reads it.

    Raises
    ------
    InvalidParameterError
        The configuration names none of the classes.
    """
    holdout = state.settings.holdout
    labels = {row.y for row in rows} | {y for _, y in (() if holdout is None else holdout.rows)}
    known = {*(prediction if isinstance(prediction, dict) else ()), *classes_of(state.model)}
    classes = sorted((labels | known) - {None}, key=sort_key)
    check_positive(state.config.positive, classes)
    if len(classes) != 2 or state.config.positive is not None or classes[1] == 1:
        return None
    readers = [name for name in (() if state.quality is None else state.quality.metrics) if has_positive(name)]
    readers += ["the loss"] if costs_without_positive(state.settings.loss) else []
    if not readers:
        return None
    first, last = classes
    return (
        f"{last!r} counts as positive in {', '.join(readers)}, as the greater one of {first!r} and {last!r}: the key "
        "`positive` of the model names the right one"
    )


def doubts(
    state: ModelState, rows: Sequence[Observation], ys: Sequence[Any], predictions: Sequence[Prediction]
) -> Iterator[str]:
    """Yield the doubts about a model that works.

    Parameters
    ----------
    rows
        All that were decoded.
    ys, predictions
        Labels of the rows that the model has learnt, empty where they have none, and what it predicts for these rows
        afterwards; None where it predicts nothing.
    """
    yield from _names_that_no_row_has(state.config, rows)
    yield from _numbers_and_texts(state.config, rows)
    yield from _beyond_bounds(state, rows)
    yield from _of_predictions(state, ys, [prediction for prediction in predictions if prediction is not None])
    yield from _of_holdout(state, rows)


def _names_that_no_row_has(config: ModelConfig, rows: Sequence[Observation]) -> Iterator[str]:
    there = dict.fromkeys(name for row in rows for name in row.x)
    named = {
        "missing": config.missing if isinstance(config.missing, Mapping) else (),
        "bounds": [name for name in config.bounds if name != ALL_OTHERS],
        "groups": [name for members in config.groups.values() for name in members],
    }
    for key, names in named.items():
        for name in names:
            if there and name not in there:
                yield f"`{key}` names {name!r}, which no row has{did_you_mean(name, there)}"


def _numbers_and_texts(config: ModelConfig, rows: Sequence[Observation]) -> Iterator[str]:
    n_numbers, n_texts = Counter[Any](), Counter[Any]()
    for name, value in (item for row in rows for item in row.x.items()):
        (n_texts if isinstance(value, str) else n_numbers)[name] += value is not None
    for name, n in n_numbers.items():
        if n and n_texts[name] and config.features is None:
            yield (
                f"feature {name!r} has {n} numbers and {n_texts[name]} texts in these rows, and many models fail on "
                "one of the two, also on later rows: send null for what is missing, or declare it below features "
                "(number or category; then all features are declared)"
            )


def _beyond_bounds(state: ModelState, rows: Sequence[Observation]) -> Iterator[str]:
    """Yield the features with too many categories, and too many labels."""
    config, of = state.config, f"in {show_count(len(rows))} rows"
    if not config.learn:
        return
    texts: dict[str, set[str]] = {}
    for name, value in (item for row in rows for item in row.x.items()):
        if isinstance(value, str):
            texts.setdefault(name, set()).add(value)
    for name, values in texts.items():
        if config.max_categories is not None and len(values) > config.max_categories:
            yield (
                f"feature {name!r} has {len(values)} different texts {of}, and beyond {config.max_categories} the "
                f"model sees {OTHER}: raise max_categories where it learns from each, as target encoders do, if its "
                "time per observation allows"
            )
    n_labels = len({row.y for row in rows})
    if state.loss.output in LABELLED and config.max_labels is not None and n_labels > config.max_labels:
        yield (
            f"there are {n_labels} different labels {of}, and those beyond {config.max_labels} are dead letters: raise "
            "max_labels if all are classes"
        )


def _of_predictions(state: ModelState, ys: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[str]:
    may_differ = not ys or len(set(map(repr, ys))) > 1
    if len(predictions) >= FEWEST and may_differ and all(prediction == predictions[0] for prediction in predictions):
        if state.loss.is_score:
            yield (
                "all scores are the same, so no feature adds anything to them yet: many detectors begin to score after "
                f"so many observations (HalfSpaceTrees after window_size of them), and here are {len(predictions)}; "
                "`attributary replay FILE` takes all rows of a file"
            )
        else:
            yield "all predictions are the same, so no feature can be of importance yet"
    constant, loss = _loss_of_a_constant(state, ys), state.model_loss.value
    if constant and loss is not None and loss > _WORSE * constant:
        yield (
            f"the model loses more than a constant would: {loss:.4g} on average, and {constant:.4g} by always "
            "predicting the mean, or the shares, of the labels of these rows"
        )


def _loss_of_a_constant(state: ModelState, ys: Sequence[Any]) -> float | None:
    """Return the mean loss of always predicting the mean, or the shares."""
    if len(ys) < FEWEST or not state.loss.is_named or state.loss.is_score:
        return None
    try:
        if state.loss.output == "number":
            constant: Any = fmean(map(float, ys))
        elif state.loss.output == "probabilities":
            constant = {label: n / len(ys) for label, n in Counter(ys).items()}
        else:
            return None
        loss = fmean(state.loss(y, constant) for y in ys)
    except (TypeError, ValueError, OverflowError):
        return None
    return loss if math.isfinite(loss) else None


def _of_holdout(state: ModelState, rows: Sequence[Observation]) -> Iterator[str]:
    """Yield how the sample differs from the model's hold-out."""
    holdout = state.settings.holdout
    if holdout is None:
        return
    yield from names_apart((name for x, _ in holdout.rows for name in x), (name for row in rows for name in row.x))
    moments: list[tuple[float, float, int]] = []
    labels: list[Counter[Any]] = []
    for of in (holdout.rows, [(row.x, row.y) for row in rows]):
        labelled = [(features_of_model(x, state.config.missing), y) for x, y in of if y is not None]
        predictions = predict_rows(state.together.function, [x for x, _ in labelled])
        losses = [state.loss(y, p) for (_, y), p in zip(labelled, predictions, strict=True) if is_usable(p)]
        moments.append((fmean(losses), pvariance(losses), len(losses)) if losses else (0.0, 0.0, 0))
        labels.append(Counter(y for _, y in labelled))
    if state.loss.output != "number" and (told := labels_apart(labels[0], labels[1], "these rows")):
        yield told
    (loss, *_), (loss_here, *_) = moments
    if are_apart(*moments) and loss < _BY_HEART * loss_here:
        yield (
            f"the model loses {loss:.4g} on the hold-out, and {loss_here:.4g} on these rows: give rows "
            "that it has not learnt, or it has become worse already"
        )
