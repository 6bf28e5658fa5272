"""Runs a stream through a `Monitor` as installed, and keeps what it publishes."""

from __future__ import annotations

import json
import logging
import warnings
from itertools import islice
from typing import Any

from attributary_explainers import Monitor
from attributary_topics import Topics
from benchmarks.incidents import counting, reduced
from benchmarks.incidents.streams import CASES, Case

Told = list[dict[str, Any]]


def told_of(case: Case, seed: int) -> tuple[Told, Told]:
    """Run the stream; return the events of changes, and all revisions of incidents."""
    model, rows = case.make(seed)
    topics, told = Topics("attributary"), dict[str, Told]()

    def publish(topic: str, _key: bytes, value: bytes, _headers: list[tuple[str, bytes]]) -> None:
        told.setdefault(topic, []).append(json.loads(value))

    logging.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = Monitor(in_background=False)
        monitor.add("model", model, learn=case.learns, loss=case.loss)
        monitor.publish_to(publish)
        for x, y in islice(rows, case.n):
            monitor.observe("model", x, y)
    return told.get(topics.changes, []), told.get(topics.incidents, [])


def run(name: str, seed: int) -> tuple[counting.Story, reduced.Reduced]:
    """Run the stream of this name; return what was told, in both ways."""
    case = next(case for case in CASES if case.name == name)
    changes, incidents = told_of(case, seed)
    return counting.summed(case, changes), reduced.summed(case, incidents)
