"""Makes the incidents of the stand-in's models: events as the topic has them, and the rows and views of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import erfc, sqrt
from typing import Any

import numpy as np

from attributary_agents.serve.answers import IncidentRow, IncidentView, PairOfMoments
from attributary_agents.serve.store.rows import StoredIncident
from attributary_agents.serve.views.incidents import row_of
from attributary_explainers.wording import show_count
from attributary_topics import (
    ChangeDetails,
    ChangeLosses,
    DetectorSpec,
    FeatureChange,
    ImportanceComparison,
    IncidentEffect,
    IncidentEvent,
    IncidentEvidence,
    IncidentFeature,
    IncidentOnset,
    LossDifference,
    LossEstimate,
    MeanEstimate,
    OnsetEstimate,
    ValueFigures,
    encode_json,
    event_time,
)

from .specs import HOSTILE_ID, LONG_ID, N_TOGETHER, SPECS, Spec, store
from .walks import Walk, walk

MINUTE = 60_000
ADWIN = DetectorSpec("adwin", {"delta": 0.025}, "zero_one")
EVERYDAY = ValueFigures(
    5_997, 0.0, [11_200.0, 20_900.0, 33_800.0, 52_100.0, 81_400.0, 114_000.0, 137_000.0, 148_000.0, 150_000.0], {}, 0
)
MONTHLY = ValueFigures(
    50, 0.02, [980.0, 1_740.0, 2_820.0, 4_340.0, 6_780.0, 9_500.0, 11_400.0, 12_300.0, 12_500.0], {}, 0
)
WORDS = ValueFigures(5_997, 0.01, [], {"phone": 0.61, "desktop": 0.28, "tablet": 0.1}, 3)
NEW_WORDS = ValueFigures(50, 0.3, [], {"Phone": 0.44, "Desktop": 0.2, "tablet": 0.06}, 3)


@dataclass
class Told:
    """Holds the newest revision of an incident and when it was told."""

    event: dict[str, Any]
    time_ms: int
    begun_ms: int
    row: IncidentRow = field(init=False)

    def __post_init__(self) -> None:
        is_open = self.event["life"] in ("suspected", "confirmed")
        of = self.event["id"], self.event["model_id"], self.time_ms, self.begun_ms, self.event["observation"]
        self.row = row_of(StoredIncident(*of, is_open, self.event))

    @property
    def id(self) -> str:
        """The incident's id."""
        return self.row.id


class Story:
    """Tells the incidents of one model, each at the observation that its walk has at a time."""

    def __init__(self, spec: Spec, now_ms: int) -> None:
        self.spec, self.now_ms = spec, now_ms
        self.walk: Walk = walk(spec, "pfi", now_ms)
        self.told: list[Told] = []

    def _at(self, minutes_ago: float) -> tuple[int, int]:
        """Return time and observation of a moment."""
        time_ms = round(self.now_ms - minutes_ago * MINUTE)
        return time_ms, int(np.interp(time_ms, self.walk.time_ms, self.walk.observation))

    def incident(
        self,
        minutes_ago: float,
        what: str,
        severity: str,
        headline: str,
        *,
        told: float,
        life: str = "confirmed",
        features: tuple[str, ...] = (),
        values: dict[str, tuple[str, ValueFigures, ValueFigures]] | None = None,
        rate: tuple[float, float, float] | None = None,
        explained: bool = False,
        **more: Any,
    ) -> None:
        """Tell an incident that began so many minutes ago, and whose last revision was `told` minutes ago."""
        begun_ms, since = self._at(minutes_ago)
        time_ms, observation = self._at(told)
        observation = max(observation, since + 60)
        spec, at = self.spec, show_count(since)
        named = dict.fromkeys((*(values or {}), *features))
        effects = [self._effect("loss", spec.model_loss, (1.02 if life == "over" else 1.9) * spec.model_loss)]
        if rate is not None:
            effects.append(IncidentEffect("error rate", *(MeanEstimate(one, 0.02) for one in rate)))
        number = len(self.told) + 1
        given: dict[str, Any] = {
            "advice": "retrain",
            "intercept": None,
            "again": 0,
            "reason": life,
            "action": "Nothing to do." if life in ("over", "withdrawn") else "Can wait until morning: train it again.",
            "explanation": self._explanation(since, observation) if explained else None,
        }
        given.update(more)
        given.setdefault("sentence", f"{headline}. {given['action']} It began at observation {at}.")
        event = IncidentEvent(
            id=f"{spec.model_id}:attributary.observations.v1:0:{since + 46}:0", number=number,
            revision={"suspected": 1, "confirmed": 2}.get(life, 3), model_id=spec.model_id,
            model_version=spec.version or "1", what=what, life=life, severity=severity, observation=observation,
            since=IncidentOnset(since, since - 14, since + 22, event_time(begun_ms)), effects=effects,
            loss=spec.loss.name, loss_unit=spec.loss.unit,
            features={name: self._feature(name, (values or {}).get(name)) for name in named},
            evidence=[
                IncidentEvidence("loss", "worse", since + 80, life != "over"),
                IncidentEvidence("importance", "moved", since + 900, life != "over"),
            ],
            headline=headline, mode=None if spec.mode == "labelled" else spec.mode, **given,
        )  # fmt: skip
        self.told.append(Told(json.loads(encode_json(event)), time_ms, begun_ms))

    @staticmethod
    def _effect(name: str, before: float, after: float) -> IncidentEffect:
        return IncidentEffect(
            name, MeanEstimate(before, 0.06 * before), MeanEstimate(after, 0.1 * after),
            MeanEstimate(0.97 * after, 0.06 * after),
        )  # fmt: skip

    def _feature(self, name: str, values: tuple[str, ValueFigures, ValueFigures] | None) -> IncidentFeature:
        said, before, after = values or ("", None, None)
        if name not in self.spec.features:
            return IncidentFeature(None, None, None, None, False, bool(said), said, before, after)
        found = self._compared("pfi").features[name]
        half = 1.96 * found.delta_std_error
        of = found.before, found.after, found.delta, half, found.significant
        return IncidentFeature(*of, bool(said), said, before, after)

    def _explanation(self, since: int, observation: int) -> ChangeDetails:
        spec = self.spec
        loss = spec.model_loss
        losses = ChangeLosses(
            loss=spec.loss.name, loss_unit=spec.loss.unit, loss_largest=spec.loss.largest,
            reference_then=_estimate(0.97 * loss, 0.03, 3_696), reference_now=_estimate(2.2 * loss, 0.06, 1_000),
            model_now=_estimate(1.07 * loss, 0.09, 1_000), worsened=_difference(1.23 * loss, 0.13 * loss),
            gain=_difference(1.13 * loss, 0.2 * loss),
        )  # fmt: skip
        return ChangeDetails(
            model_version_before=spec.version,
            model_version=spec.version or "1", verdict="followed", route="detector", observation=observation,
            detected_at=since + 100,
            reference_at=max(since - 4_000, 1), onset=OnsetEstimate(since, since - 14, since + 22), pattern=None,
            detector=ADWIN, window=1000, discrepancy=0.49, threshold=0.2, n_discrepancy=1000, distance="probability",
            scale="relative", losses=losses,
            importances={name: self._compared(name) for name in ("pfi", "sage") if name in spec.explainers},
        )  # fmt: skip

    def _compared(self, explainer: str) -> ImportanceComparison:
        numbers = walk(self.spec, explainer, self.now_ms)
        before, after = numbers.before_and_after()
        scale = float(max(before.max(), after.max()))
        ranks = [(-one).argsort().argsort() + 1 for one in (before, after)]
        found = []
        for i, name in enumerate(self.spec.features):
            errors = [0.012 * scale + 0.05 * abs(float(one[i])) for one in (before, after)]
            delta = float(after[i] - before[i])
            error = sqrt(sum(one**2 for one in errors))
            p = min(erfc(abs(delta) / error / sqrt(2.0)) * len(self.spec.features), 1.0)
            change = FeatureChange(
                float(before[i]), float(after[i]), delta, errors[0], errors[1], error,
                int(ranks[0][i]), int(ranks[1][i]), p, p <= 0.05,
            )  # fmt: skip
            found.append((abs(delta), name, change))
        found.sort(key=lambda one: -one[0])
        loss = self.spec.loss
        return ImportanceComparison(
            loss.name, loss.unit, loss.largest, 500, 0.387, 0.821, self.spec.model_loss, self.spec.model_loss * 1.07,
            {name: change for _, name, change in found},
        )  # fmt: skip


def _estimate(loss: float, share: float, n: int) -> LossEstimate:
    return LossEstimate(loss, loss * (1.0 - share), loss * (1.0 + share), n)


def _difference(value: float, half: float) -> LossDifference:
    return LossDifference(value, value - half, value + half)


def tell_all(now_ms: int, specs: tuple[Spec, ...] = SPECS, *, with_stores: bool = True) -> list[Told]:
    """Return all incidents of the stand-in's models, those first that began last."""
    told: list[Told] = []
    for spec in specs:
        story = Story(spec, now_ms)
        _TELL.get(spec.model_id, lambda _: None)(story)
        told += story.told
    for i in range(N_TOGETHER if with_stores and specs else 0):
        story = Story(store(i), now_ms)
        _store(story, 40.0 + 0.5 * i)
        told += story.told
    return sorted(told, key=lambda one: -one.begun_ms)


def _bank(story: Story) -> None:
    story.incident(1_500.0, "version", "info", "The new version of bank is as good as the old one", told=1_476.0,
                   life="over", advice="nothing", features=("age",))  # fmt: skip
    story.incident(600.0, "relies_differently", "info", "bank uses its features differently, and is as good as before",
                   told=420.0, life="over", advice="nothing", features=("commission",))  # fmt: skip
    story.incident(
        12.5, "inputs", "critical", "salary of bank is broken", told=1.0, features=("age", "elevel", "commission"),
        values={"salary": ("is 1 740 to 12 300, and was 20 900 to 148 000 before (divided by 12)",
                           EVERYDAY, MONTHLY)},
        rate=(0.204, 0.371, 0.362), explained=True, advice="look_at_inputs",
        action="Act now: check the source of salary.",
        sentence="salary of bank is broken. Act now: check the source of salary. salary is 1 740 to 12 300, and was "
        "20 900 to 148 000 before (divided by 12). Since observation 4 172 800, errors are 36.2 %, and were 20.4 % "
        "before.",
    )  # fmt: skip


def _long(story: Story) -> None:
    good = f"{LONG_ID} is as good as before it failed and was reset"
    story.incident(180.0, "recovered", "critical", good, told=170.0, life="over", advice="nothing")
    story.incident(150.0, "level", "warning", f"The base rate of {LONG_ID} has moved", told=120.0,
                   rate=(0.284, 0.331, 0.329), advice="shift_intercept", intercept=0.54,
                   action="Can wait until morning: add 0.54 to the logit of its predictions.")  # fmt: skip


def _bikes(story: Story) -> None:
    story.incident(1_400.0, "harder", "info", "The data of bikes are as easy to predict as before", told=1_100.0,
                   life="over", features=("hr",), advice="nothing")  # fmt: skip
    story.incident(300.0, "worse", "warning", "bikes has not changed after all", told=297.0, life="withdrawn",
                   reason="noise", advice="nothing")  # fmt: skip


def _store(story: Story, minutes_ago: float) -> None:
    name = story.spec.model_id
    story.incident(minutes_ago, "changed", "warning", f"The data of {name} have changed, and it is adapting",
                   told=minutes_ago - 10.0, features=("price", "weekday"),
                   action="Nothing to do unless it stays worse.")  # fmt: skip


_TELL = {
    "bank": _bank,
    "bikes": _bikes,
    "wide": lambda story: story.incident(
        55.0, "worse", "warning", "wide is worse", told=30.0, features=("x001", "x002", "x003"), explained=True,
        rate=(0.31, 0.35, 0.352),
    ),
    "fraud-a": lambda story: story.incident(
        2.0, "worse", "warning", "fraud-a may be worse", told=1.5, life="suspected", advice="nothing",
        action="Nothing to do yet: it is not confirmed.",
    ),
    "clicks": lambda story: story.incident(
        700.0, "relies_differently", "info", "clicks uses its features differently", told=90.0,
        values={"device": ("has 2 values never seen before, and 30 % are missing", WORDS, NEW_WORDS)},
        features=("position",), advice="look_at_inputs", action="Can wait until morning: check the source of device.",
    ),
    LONG_ID: _long,
    HOSTILE_ID: lambda story: story.incident(
        5.0, "inputs", "critical", f"<script>alert(2)</script> of {HOSTILE_ID} is broken", told=4.0,
        values={"<script>alert(2)</script>": ("is <b>gone</b>", EVERYDAY, MONTHLY)}, explained=True,
    ),
}  # fmt: skip


def view_of(told: list[Told], id_: str, until: int) -> IncidentView | None:
    """Return the view of an incident, or None where there is none of that id."""
    found = next((one for one in told if one.id == id_), None)
    if found is None:
        return None
    row = found.row
    moments = (max((row.since.low or row.since.observation) - 1, 1), row.observation)
    a, b = (f"{row.model_id}@#{at}" for at in moments)
    end = row.observation if row.standing == "over" else max(until, row.observation)
    others = (one.row for one in told if one.row.model_id == row.model_id and one.id != id_)
    other = next((one for one in others if one.standing != "over"), None)
    return IncidentView(row=row, event=found.event, until=end, compare=PairOfMoments(a=a, b=b), other=other)
