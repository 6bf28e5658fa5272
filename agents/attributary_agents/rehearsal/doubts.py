"""Doubts about a rehearsed model's predictions and configured names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean, pvariance
from typing import Any

from attributary_explainers.loss_shift.holdout import FEWEST, are_apart, labels_apart, names_apart
from attributary_explainers.losses.losses import costs_without_positive
from attributary_explainers.ordering import sort_key
from attributary_explainers.predictions import is_usable, predict_rows
from attributary_explainers.quality.names import has_positive
from attributary_explainers.typing import Prediction
from attributary_explainers.wording import did_you_mean, show_count
from attributary_topics import Observation

from ..config.models import ModelConfig
from ..models.guards.limits import LABELLED, features_of_model
from ..models.guards.ranges import ALL_OTHERS
from ..models.guards.vocabulary import OTHER
from ..models.model_state import ModelState

_WORSE = 5.0
"""Times the loss of a constant from which on a model is said to lose more."""
_BY_HEART = 0.5
"""A hold-out looks learnt by heart below this share of the other rows' loss."""


def doubts_of_predictions(state: ModelState, ys: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[str]:
    """Yield doubts about predictions, in sentences without a row's values.

    Parameters
    ----------
    ys
        Labels of the rows; empty where they have none.
    predictions
        What the model predicts for the rows after it has learnt them; None where it predicts nothing.
    """
    known = [prediction for prediction in predictions if prediction is not None]
    may_differ = not ys or len(set(map(repr, ys))) > 1
    if len(known) >= FEWEST and may_differ and all(prediction == known[0] for prediction in known):
        if state.loss.is_score:
            yield (
                "all scores are the same, so no feature adds anything to them yet: many detectors begin to score after "
                f"so many observations (HalfSpaceTrees after window_size of them), and here are {len(known)}; "
                "`attributary replay FILE` takes all rows of a file"
            )
        else:
            yield "all predictions are the same, so no feature can be of importance yet"
    constant = _loss_of_a_constant(state, ys)
    loss = state.model_loss.value
    if constant and loss is not None and loss > _WORSE * constant:
        yield (
            f"the model loses more than a constant would: {loss:.4g} on average, and {constant:.4g} by always "
            "predicting the mean, or the shares, of the labels of these rows"
        )


def doubts_of_names(config: ModelConfig, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield the configured features that no row has, with likely corrections."""
    there = dict.fromkeys(name for observation in observations for name in observation.x)
    if not there:
        return
    missing = config.missing if isinstance(config.missing, Mapping) else {}
    named = {
        "missing": list(missing),
        "bounds": [name for name in config.bounds if name != ALL_OTHERS],
        "groups": [name for members in config.groups.values() for name in members],
    }
    for key, names in named.items():
        for name in names:
            if name not in there:
                yield f"`{key}` names {name!r}, which no row has{did_you_mean(name, there)}"


def doubts_of_types(config: ModelConfig, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield the undeclared features that mix numbers and texts.

    A column with an "NA" in it does, for example.
    """
    if config.features is not None:
        return
    n_numbers: Counter[Any] = Counter()
    n_texts: Counter[Any] = Counter()
    for observation in observations:
        for name, value in observation.x.items():
            (n_texts if isinstance(value, str) else n_numbers)[name] += value is not None
    for name in n_numbers:
        if n_numbers[name] and n_texts[name]:
            yield (
                f"feature {name!r} has {n_numbers[name]} numbers and {n_texts[name]} texts in these rows, and many "
                "models fail on one of the two, also on later rows: send null for what is missing, or declare it below "
                "features (number or category; then all features are declared)"
            )


def doubts_of_bounds(state: ModelState, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield the features with too many categories, and too many labels."""
    config = state.config
    if not config.learn:
        return
    rows = f"{show_count(len(observations))} rows"
    texts: dict[str, set[str]] = {}
    for observation in observations:
        for name, value in observation.x.items():
            if isinstance(value, str):
                texts.setdefault(name, set()).add(value)
    for name, found in texts.items():
        if config.max_categories is not None and len(found) > config.max_categories:
            yield (
                f"feature {name!r} has {len(found)} different texts in {rows}, and beyond {config.max_categories} "
                f"the model sees {OTHER}: raise max_categories where it learns from each, as target encoders do, if "
                "its time per observation allows"
            )
    n_labels = len({observation.y for observation in observations})
    if state.loss.output in LABELLED and config.max_labels is not None and n_labels > config.max_labels:
        yield (
            f"there are {n_labels} different labels in {rows}, and those beyond {config.max_labels} are dead "
            "letters: raise max_labels if all are classes"
        )


def doubts_of_holdout(state: ModelState, observations: Sequence[Observation]) -> Iterator[str]:
    """Yield how the sample differs from the model's hold-out."""
    holdout = state.settings.holdout
    if holdout is None or not observations:
        return
    names = dict.fromkeys(name for x, _ in holdout.rows for name in x)
    yield from names_apart(names, dict.fromkeys(name for one in observations for name in one.x))
    missing = state.config.missing
    losses: list[list[float]] = []
    labels: list[list[Any]] = []
    for rows in (holdout.rows, [(one.x, one.y) for one in observations]):
        labelled = [(x, y) for x, y in rows if y is not None]
        predictions = predict_rows(state.together.function, [features_of_model(x, missing) for x, _ in labelled])
        pairs = [(y, y_pred) for (_, y), y_pred in zip(labelled, predictions, strict=True) if is_usable(y_pred)]
        losses.append([state.loss(y, y_pred) for y, y_pred in pairs])
        labels.append([y for _, y in labelled])
    of_holdout, of_sample = map(Counter, labels)
    if state.loss.output != "number" and (told := labels_apart(of_holdout, of_sample, "these rows")):
        yield told
    (loss, *_), (loss_here, *_) = moments = [_moments(of) for of in losses]
    if are_apart(*moments) and loss < _BY_HEART * loss_here:
        yield (
            f"the model loses {loss:.4g} on the hold-out, and {loss_here:.4g} on these rows: give rows "
            "that it has not learnt, or it has become worse already"
        )


def assumed_positive(state: ModelState, classes: Collection[Any]) -> str | None:
    """Return a line on the class that counts as positive by default.

    None where the configuration names it, where it is True or 1, or where neither a metric nor the loss reads it.
    """
    positive = max(classes, key=sort_key, default=1)
    if len(classes) != 2 or state.config.positive is not None or positive == 1:
        return None
    read = [name for name in (() if state.quality is None else state.quality.metrics) if has_positive(name)]
    read += ["the loss"] if costs_without_positive(state.settings.loss) else []
    if not read:
        return None
    first, last = sorted(classes, key=sort_key)
    return (
        f"{last!r} counts as positive in {', '.join(read)}, as the greater one of {first!r} and {last!r}: the key "
        "`positive` of the model names the right one"
    )


def _moments(of: Sequence[float]) -> tuple[float, float, int]:
    """Return the mean, the variance and the count."""
    return (fmean(of), pvariance(of), len(of)) if of else (0.0, 0.0, 0)


def _loss_of_a_constant(state: ModelState, ys: Sequence[Any]) -> float | None:
    """Return the mean loss of a constant prediction; None if there is none.

    The constant is the mean of the labels, or their shares.
    """
    if len(ys) < FEWEST or not state.loss.is_named or state.loss.is_score:
        return None
    constant: Any
    try:
        if state.loss.output == "number":
            constant = fmean(map(float, ys))
        elif state.loss.output == "probabilities":
            constant = {label: n / len(ys) for label, n in Counter(ys).items()}
        else:
            return None
        loss = fmean(state.loss(y, constant) for y in ys)
    except (TypeError, ValueError, OverflowError):
        return None
    return loss if math.isfinite(loss) else None
