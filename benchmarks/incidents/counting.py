"""Runs a stream through a `Monitor` as installed, and counts what a person is told of it."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from attributary_explainers import Monitor
from benchmarks.incidents.streams import CASES, Case

BAD = ("worse", "inputs")
_EARLY = 100


@dataclass
class Story:
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
    named
        Observations until a feature that it is about was first named, each time.
    onset
        How far off the onset was, as it was said last; 0 where its interval holds the truth.
    most
        Words about one incident, at most, but for those that it lasts.
    """

    confirmed: int = 0
    revisions: int = 0
    false: int = 0
    withdrawn: int = 0
    contradictions: int = 0
    suspected: list[int] = field(default_factory=list)
    sure: list[int] = field(default_factory=list)
    named: list[int] = field(default_factory=list)
    onset: list[int] = field(default_factory=list)
    what: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    most: int = 0


def run(name: str, seed: int) -> Story:
    """Run the stream of this name; return what was told."""
    case = next(case for case in CASES if case.name == name)
    return summed(case, told_of(case, seed))


def told_of(case: Case, seed: int) -> list[dict[str, Any]]:
    """Run the stream; return all revisions of incidents."""
    model, rows = case.make(seed)
    told: list[dict[str, Any]] = []

    def publish(topic: str, _key: bytes, value: bytes, _headers: list[tuple[str, bytes]]) -> None:
        if topic.endswith("incidents.v1"):
            told.append(json.loads(value))

    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            monitor = Monitor(in_background=False)
            monitor.add("model", model, learn=case.learns, loss=case.loss)
            monitor.publish_to(publish)
            for i, (x, y) in enumerate(islice(rows, case.n)):
                if i in case.at and case.then is not None:
                    monitor.replace("model", case.then, "2")
                monitor.observe("model", x, y)
    finally:
        logging.disable(logging.NOTSET)
    return told


def summed(case: Case, told: list[dict[str, Any]]) -> Story:
    """Return what a person has read."""
    found = Story()
    for number in sorted({one["number"] for one in told}):
        words = [one for one in told if one["number"] == number]
        first, last = words[0], words[-1]
        sure = [one["observation"] for one in words if one["life"] == "confirmed"]
        # An alarm by chance, just before, becomes the incident of what then happens.
        about = [start for start in case.at if start - _EARLY < first["observation"]]
        if not about:
            found.false += bool(sure)
            found.withdrawn += not sure
            continue
        at = about[-1]
        n = sum(one["reason"] != "lasts" for one in words)
        found.revisions, found.most = found.revisions + n, max(found.most, n)
        found.suspected.append(first["observation"] - at)
        if sure:
            found.confirmed += 1
            found.sure.append(sure[0] - at)
            found.what.append(last["what"])
            found.advice.append(last["advice"])
            found.features += list(last["features"])[:1]
            since = last["since"]
            is_within = since["low"] is not None and since["low"] <= at + 1 <= since["high"]
            found.onset.append(0 if is_within else abs(since["observation"] - at - 1))
        for one, following in pairwise(words):
            is_close = following["observation"] - one["observation"] <= 1000
            found.contradictions += (
                is_close and one["life"] == "confirmed" and one["what"] in BAD and following["what"] not in BAD
            )
    for at, name in zip(case.at, case.features, strict=False):
        named = [one["observation"] - at for one in told if one["observation"] > at and name in one["features"]]
        found.named += named[:1]
    return found
