"""What a revision of an incident has of the change explanation, whenever that came."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from attributary_explainers import Onset
from attributary_explainers.monitor.incident_events import incident_events
from attributary_explainers.monitor.incident_watch import IncidentWatch
from attributary_explainers.monitor.state import ModelCounts
from attributary_topics import ChangeDetails, Source
from tests.explainers.incidents.made import alarm, explanation, loss_shift

DETAILS = ChangeDetails(**{field.name: None for field in fields(ChangeDetails)})  # type: ignore[arg-type]


class Told:
    """The watch of a model's incidents, and what is published of it."""

    def __init__(self) -> None:
        self.watch = IncidentWatch(
            learns=True, loss="brier", measure="error rate", watches_inputs=False, window=100, alpha=0.01
        )
        self.state: Any = SimpleNamespace(
            model_id="m",
            version="1",
            n_observations=0,
            incident_watch=self.watch,
            loss=SimpleNamespace(name="brier", unit="squared probability"),
            counts=ModelCounts(),
        )

    def update(self, n: int = 1) -> list[Any]:
        events: list[Any] = []
        for _ in range(n):
            self.state.n_observations += 1
            at = self.state.n_observations
            source = Source("t", 0, at)
            events += incident_events(self.state, {}, True, {True: 0.9}, (0.02, 0.5), source, at, 0)
        return events


@pytest.mark.parametrize("is_restored", [False, True])
def test_an_explanation_that_makes_no_revision_is_in_the_next_one(is_restored: bool) -> None:
    told = Told()
    told.update(500)
    told.watch.note(alarm(500))
    told.watch.note(loss_shift(500, "worse", 490))
    (first,) = told.update()
    assert (first.life, first.explanation) == ("suspected", None)
    told.update(100)
    told.watch.note(explanation(601, "followed", 500, Onset(490, 485, 495)), DETAILS)
    assert told.update() == [], "the watch of the loss has still to say what it is"
    if is_restored:
        told.state.incident_watch = told.watch = IncidentWatch.from_snapshot(told.watch.snapshot())
    (second,) = told.update(1000)[:1]
    assert (second.id, second.revision, second.life) == (first.id, 2, "confirmed")
    assert second.explanation is not None


def test_an_explanation_without_an_incident_is_in_no_later_one() -> None:
    told = Told()
    told.update(500)
    told.watch.explained = {"verdict": "followed"}
    assert told.update() == []
    told.watch.note(alarm(501))
    (first,) = told.update()
    assert first.explanation is None
