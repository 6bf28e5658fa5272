"""Runs a stream through the watches and the reducer of incidents, and counts what a person is told of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from attributary_explainers import ChangeExplainer, InputMonitor, LossMonitor, SmoothedPrediction, resolve_loss
from attributary_explainers.incidents.incident import Incident
from attributary_explainers.incidents.reducer import Incidents
from benchmarks.incidents.streams import CASES, Case

BAD = ("worse", "inputs")
_EARLY = 100


@dataclass
class Reduced:
    """What was told of one stream.

    Attributes
    ----------
    confirmed, revisions
        Incidents about what happened that were confirmed, and words about them but for those that one lasts.
    false, withdrawn
        Incidents about nothing: confirmed ones, and those that were only suspected.
    contradictions
        How often a word said that the model is worse and the next one, within 1000 observations, that it is not.
    suspected, sure
        Observations until the first word, and until it was confirmed.
    onset
        How far off the onset was, as it was said last; 0 where its interval holds the truth.
    """

    confirmed: int = 0
    revisions: int = 0
    false: int = 0
    withdrawn: int = 0
    contradictions: int = 0
    suspected: list[int] = field(default_factory=list)
    sure: list[int] = field(default_factory=list)
    onset: list[int] = field(default_factory=list)
    what: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)


def told_of(case: Case, seed: int) -> list[Incident]:
    """Run the stream; return all revisions."""
    model, rows = case.make(seed)
    is_number = case.loss == "squared" or (hasattr(model, "predict_one") and not hasattr(model, "predict_proba_one"))
    predict: Callable[[Any], Any] = getattr(model, "predict_one" if is_number else "predict_proba_one", model)
    loss, marginal = resolve_loss(model, case.loss), SmoothedPrediction(0.001)
    change = ChangeExplainer(model, loss=case.loss, seed=seed)
    output: Any = "number" if is_number else "probabilities"
    losses, inputs = LossMonitor(model, learns=case.learns, output=output), InputMonitor()
    incidents = Incidents(learns=case.learns, measure="mean absolute error" if is_number else "error rate")
    told: list[Incident] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, y in islice(rows, case.n):
            x = {name: value for name, value in row.items() if value == value}
            y_pred = predict(x)
            events: list[Any] = [*inputs.update(x)]
            if case.learns:
                model.learn_one(x, y)
            if y_pred in (None, {}):
                told += incidents.update(events)
                continue
            measured = abs(y - y_pred) if is_number else float(max(y_pred, key=y_pred.get) != y)
            events += [*losses.update(x, y, y_pred), *change.update(x, y, y_pred)]
            mean = marginal.update(y_pred)
            constant = abs(y - mean) if is_number else loss(y, mean)
            told += incidents.update(events, loss=loss(y, y_pred), measured=measured, constant=constant)
    return told


def run(name: str, seed: int) -> Reduced:
    """Run the stream of this name; return what was told."""
    case = next(case for case in CASES if case.name == name)
    return summed(case, told_of(case, seed))


def summed(case: Case, told: list[Incident]) -> Reduced:
    """Return what a person has read."""
    found = Reduced()
    for number in sorted({one.number for one in told}):
        words = [one for one in told if one.number == number]
        # An alarm by chance, just before, becomes the incident of what then happens.
        about = [start for start in case.at if start - _EARLY < words[0].observation]
        if not about:
            is_confirmed = any(one.life == "confirmed" for one in words)
            found.false += is_confirmed
            found.withdrawn += not is_confirmed
            continue
        at = about[-1]
        found.revisions += sum(one.reason != "lasts" for one in words)
        found.suspected.append(words[0].observation - at)
        sure = [one.observation - at for one in words if one.life == "confirmed"]
        if sure:
            found.confirmed += 1
            found.sure.append(sure[0])
            found.what.append(words[-1].what)
            found.features += [str(one.name) for one in words[-1].features[:1]]
            since = words[-1].since
            is_within = since.low is not None and since.low <= at + 1 <= since.high
            found.onset.append(0 if is_within else abs(since.observation - at - 1))
        for one, following in pairwise(words):
            is_close = following.observation - one.observation <= 1000
            found.contradictions += (
                is_close and one.life == "confirmed" and (one.what in BAD and following.what not in BAD)
            )
    return found
