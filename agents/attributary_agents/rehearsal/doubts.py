"""Says what is doubtful in the predictions of a rehearsed model, and in the names of its configuration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from attributary_explainers.typing import Prediction
from attributary_explainers.wording import did_you_mean, show_count
from attributary_topics import Observation

from ..config.models import ModelConfig
from ..models.guards.limits import LABELLED
from ..models.guards.ranges import ALL_OTHERS
from ..models.guards.vocabulary import OTHER
from ..models.model_state import ModelState

_TOLERANCE = 1e-6
_WORSE = 5.0
"""Times the loss of a constant from which on a model is said to lose more."""
_FEWEST = 10
"""Rows from which on equal predictions, or a large loss, say something."""


def doubts_of_predictions(state: ModelState, ys: Sequence[Any], predictions: Sequence[Prediction]) -> Iterator[str]:
    """Yield what is doubtful, in sentences without a value of a row.

    Parameters
    ----------
    ys
        Labels of the rows; empty where they have none.
    predictions
        What the model predicts for the rows after it has learnt them; None where it predicts nothing.
    """
    known = [prediction for prediction in predictions if prediction is not None]
    if state.loss.output == "probabilities":
        yield from _no_probabilities(known)
    may_differ = not ys or len(set(map(repr, ys))) > 1
    if len(known) >= _FEWEST and may_differ and all(prediction == known[0] for prediction in known):
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
    """Yield which features the configuration names and no row has, with what may have been meant."""
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
    """Yield which features that are not declared have both numbers and texts, as a column with an "NA" in it has."""
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
    """Yield which features have more categories than the model is given, and that there are too many labels."""
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


def _no_probabilities(predictions: Sequence[Any]) -> Iterator[str]:
    for prediction in predictions:
        total = sum(prediction.values())
        if abs(total - 1.0) > _TOLERANCE:
            yield f"probabilities sum to {total:.4g}, and not to 1: losses and importances are not what they say"
            return
        if not all(-_TOLERANCE <= p <= 1.0 + _TOLERANCE for p in prediction.values()):
            yield "probabilities are below 0 or above 1: losses and importances are not what they say"
            return


def _loss_of_a_constant(state: ModelState, ys: Sequence[Any]) -> float | None:
    """Return the mean loss of the mean or the shares of the labels; None where there is no such constant."""
    if len(ys) < _FEWEST or not state.loss.is_named or state.loss.is_score:
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
