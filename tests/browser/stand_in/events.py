"""Makes the changes of the stand-in's models: events as the topic has them, and the rows and views of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import erfc, sqrt
from typing import Any

import numpy as np
from attributary_agents.serve.answers.changes import ChangeRow, ChangeView

from attributary_explainers.wording import show_count, show_number
from attributary_topics.changes import (
    AlarmEvent,
    ChangeEvent,
    ChangeLosses,
    DetectorSpec,
    ExplanationEvent,
    FeatureChange,
    ImportanceComparison,
    ImportanceShiftEvent,
    ImportanceShiftReleasedEvent,
    LossDifference,
    LossEstimate,
    NotConfirmedEvent,
    RecoveredEvent,
    ShiftSize,
)
from attributary_topics.codec import encode_json
from attributary_topics.events import OnsetEstimate, Source
from attributary_topics.loss_shifts import (
    FigureMoved,
    LevelMoved,
    LossShiftEvent,
    LossShiftExplainedEvent,
    LossShiftReleasedEvent,
    LossSuspect,
)

from .specs import LONG_ID, SPECS, Spec
from .walks import Walk, walk

MINUTE = 60_000
ADWIN = DetectorSpec("adwin", {"delta": 0.025}, "zero_one")
VERDICTS = {
    "followed": "the data changed (loss of the old model {then} -> {now}), and the model has followed ({model})",
    "harder": "the data changed (loss of the old model {then} -> {now}), and the model has not gained on it ({model})",
    "matured": "the data are as they were ({then}, {now}), and the model has learnt more ({model})",
    "degraded": "it is worse ({model}) than the model of 1 001 ({now}) on the same observations",
}


@dataclass
class Told:
    """Holds an event with its id, its time, the id of what it belongs to, and whether it is open."""

    id: str
    event: ChangeEvent
    time_ms: int
    chain: str
    is_open: bool = False
    row: ChangeRow = field(init=False)

    def __post_init__(self) -> None:
        raw = self.raw
        self.row = ChangeRow(
            id=self.id,
            event=raw["event"],
            model_id=raw["model_id"],
            model_version=raw["model_version"],
            model_version_before=raw.get("model_version_before"),
            route=raw.get("route"),
            verdict=raw.get("verdict") or raw.get("kind"),
            feature=raw.get("feature"),
            time_ms=self.time_ms,
            observation=raw["observation"],
            sentence=raw["sentence"],
            is_open=self.is_open,
            mode=raw.get("mode"),
        )

    @property
    def raw(self) -> dict[str, Any]:
        """The event as the topic has it."""
        raw: dict[str, Any] = json.loads(encode_json(self.event))
        return raw


class Story:
    """Tells the changes of one model, each at the observation that its walk has at a time."""

    def __init__(self, spec: Spec, now_ms: int) -> None:
        self.spec, self.now_ms = spec, now_ms
        self.walk: Walk = walk(spec, "pfi", now_ms)
        self.told: list[Told] = []

    def _at(self, minutes_ago: float) -> tuple[int, int]:
        """Return time and observation of a moment."""
        time_ms = round(self.now_ms - minutes_ago * MINUTE)
        return time_ms, int(np.interp(time_ms, self.walk.time_ms, self.walk.observation))

    def _add(self, event: ChangeEvent, time_ms: int, chain: str | None = None, is_open: bool = False) -> str:
        source: Source = event.source
        id_ = f"{self.spec.model_id}:{source.topic}:{source.partition}:{source.offset}:{len(self.told)}"
        self.told.append(Told(id_, event, time_ms, chain or id_, is_open))
        return id_

    def _common(self, observation: int) -> dict[str, Any]:
        mode = None if self.spec.mode == "labelled" else self.spec.mode
        return {
            "model_id": self.spec.model_id,
            "model_version": self.spec.version or "1",
            "observation": observation,
            "source": Source("attributary.observations.v1", 0, observation - 1),
            "mode": mode,
        }

    def alarm(self, minutes_ago: float, route: str = "detector", is_open: bool = False, before: str = "") -> str:
        """Tell an alarm, and return its id."""
        time_ms, observation = self._at(minutes_ago)
        name, version = self.spec.model_id, self.spec.version or "1"
        raised = {"detector": "its loss rose", "discrepancy": "it has moved away from its reference"}.get(route, "")
        at, due = show_count(observation), show_count(observation + 1000)
        sentence = (
            f"{name} {before} -> {version} at {at}: the two are compared on what neither has learnt, until {due}"
            if route == "version"
            else f"{name} may have changed at {at} ({raised}): it is examined until {due}"
        )
        event = AlarmEvent(
            model_version_before=before or version, route=route, reference_at=max(observation - 4000, 1),
            due_at=observation + 1000, detector=ADWIN, discrepancy=0.65, threshold=0.2, n_discrepancy=1000,
            distance="probability", scale="relative", sentence=sentence, **self._common(observation),
        )  # fmt: skip
        return self._add(event, time_ms, is_open=is_open)

    def later(self, minutes_ago: float, n: int = 1000) -> float:
        """Return how many minutes ago the n-th observation after a moment came."""
        return minutes_ago - n / (self.spec.per_second or 1.0) / 60.0

    def explanation(
        self, minutes_ago: float, verdict: str | None, change_id: str | None, route: str = "detector",
        pattern: str | None = None, before: str = "", both: bool = True,
    ) -> str:  # fmt: skip
        """Tell what came of an alarm."""
        time_ms, observation = self._at(minutes_ago)
        spec = self.spec
        loss, largest = spec.model_loss, spec.loss.largest
        factor = 1.0 if verdict == "matured" else 2.3
        then, now, model = loss * 0.97, loss * 0.98 * factor, loss * (1.07 if verdict != "degraded" else 1.4)
        if verdict in ("matured", "degraded"):
            then, now, model = loss * 1.2, loss * 1.21, loss * (1.0 if verdict == "matured" else 1.6)
        if verdict == "harder":
            model = now * 0.99
        is_version = route == "version"
        losses = ChangeLosses(
            loss=spec.loss.name, loss_unit=spec.loss.unit, loss_largest=largest,
            reference_then=None if is_version else _estimate(then, 0.03, 3_696),
            reference_now=_estimate(now, 0.06, 1_000), model_now=_estimate(model, 0.09, 1_000),
            worsened=None if is_version else _difference(now - then, 0.06 * now),
            gain=_difference(now - model, 0.1 * now),
        )  # fmt: skip
        importances = {"pfi": self._compared("pfi")} | ({"sage": self._compared("sage")} if both else {})
        features = importances["pfi"].features
        significant = [(name, one) for name, one in features.items() if one.significant]
        moved = ", ".join(
            f"{name} {'gained' if one.delta > 0 else 'lost'} {show_number(abs(one.delta))}" for name, one in significant
        )
        onset = observation - 1100
        since = f"at {show_count(onset)} ({show_count(onset - 14)} to {show_count(onset + 22)})"
        what = "" if verdict is None else ": " + VERDICTS[verdict].format(
            then=show_number(then), now=show_number(now), model=show_number(model))  # fmt: skip
        head = {"matured": "has matured since 1 001", "degraded": f"has become worse {since}"}.get(
            verdict or "", f"changed {since}"
        )
        if is_version:
            head = f"{before} -> {spec.version} at {show_count(observation - 1000)} (discrepancy 0.31)"
            what = f": its loss is lower ({show_number(now)} -> {show_number(model)})"
        told = {"recurring": "; the data go back to what they were: this is told once"}.get(pattern or "", "")
        quiet = [name for name in features if not features[name].significant]
        rest = f"; {', '.join(quiet[:3])} and {len(quiet) - 3} more within noise" if len(quiet) > 3 else ""
        event = ExplanationEvent(
            change_id=change_id, model_version_before=before or spec.version, verdict=verdict, route=route,
            detected_at=observation - 1000, reference_at=max(observation - 5000, 1),
            onset=None if verdict in ("matured", None) else OnsetEstimate(onset, onset - 14, onset + 22),
            pattern=pattern, detector=ADWIN, window=1000, discrepancy=0.49 if verdict != "matured" else 0.27,
            threshold=0.2, n_discrepancy=1000, distance="probability", scale="relative", losses=losses,
            importances=importances,
            sentence=f"{spec.model_id} {head}{what}{told}; {moved or 'no feature moved'}{rest}",
            **self._common(observation),
        )  # fmt: skip
        return self._add(event, time_ms, change_id)

    def not_confirmed(self, minutes_ago: float, change_id: str) -> str:
        """Tell that an alarm was nothing."""
        time_ms, observation = self._at(minutes_ago)
        loss = self.spec.model_loss
        losses = ChangeLosses(
            loss=self.spec.loss.name, loss_unit=self.spec.loss.unit, loss_largest=self.spec.loss.largest,
            reference_then=_estimate(loss, 0.04, 3_696), reference_now=_estimate(loss * 1.02, 0.06, 1_000),
            model_now=_estimate(loss * 0.99, 0.06, 1_000), worsened=_difference(0.02 * loss, 0.06 * loss),
            gain=_difference(0.03 * loss, 0.07 * loss),
        )  # fmt: skip
        at = show_count(observation - 1000)
        event = NotConfirmedEvent(
            change_id=change_id, model_version_before=self.spec.version, verdict="equal", route="detector",
            detected_at=observation - 1000, reference_at=max(observation - 5000, 1), detector=ADWIN, window=1000,
            discrepancy=0.11, threshold=0.2, n_discrepancy=1000, distance="probability", scale="relative",
            losses=losses, **self._common(observation),
            sentence=f"the alarm of {self.spec.model_id} at {at} is not confirmed: "
            "since then nothing has changed beyond noise",
        )  # fmt: skip
        return self._add(event, time_ms, change_id)

    def shift(self, minutes_ago: float, feature: str, released: float | None = None) -> str:
        """Tell a shift of importance, and its release where it is over."""
        time_ms, observation = self._at(minutes_ago)
        column = self.spec.features.index(feature)
        before, after = (float(one[column]) for one in self.walk.before_and_after())
        fell = after < before
        size, half = after - before, 0.11 * abs(after - before)
        onset = observation - 700
        word = "less" if fell else "more"
        moved = f"pfi {show_number(before)} -> {show_number(after)}"
        shared = {
            "explainer": "pfi", "feature": feature, "direction": "fell" if fell else "rose",
            "onset": OnsetEstimate(onset, None, observation), "reference_at": max(observation - 3000, 1),
            "before": before, "after": after, "size": ShiftSize(size, size - half, size + half),
            "least": abs(size) * 0.1, "loss": self.spec.loss.name, "loss_unit": self.spec.loss.unit,
            "loss_largest": self.spec.loss.largest, "detected_at": observation,
        }  # fmt: skip
        name = f"{self.spec.model_id}"
        event = ImportanceShiftEvent(
            sentence=f"{name} relies {word} on {feature} since about {show_count(onset)}: {moved}",
            **shared, **self._common(observation),
        )  # fmt: skip
        id_ = self._add(event, time_ms, is_open=released is None)
        if released is not None:
            time_ms, observation = self._at(released)
            end = ImportanceShiftReleasedEvent(
                change_id=id_, reason="returned", **shared, **self._common(observation),
                sentence=f"{name} relied {word} on {feature} since about {show_count(onset)}, and relies on it as "
                f"before: pfi {show_number(after)} -> {show_number(before)}",
            )  # fmt: skip
            self._add(end, time_ms, id_)
        return id_

    def loss_shift(self, minutes_ago: float, kind: str = "worse", explained: float | None = None,
                   released: float | None = None) -> str:  # fmt: skip
        """Tell a shift of the loss, what it has to do with, and its end."""
        time_ms, observation = self._at(minutes_ago)
        onset = OnsetEstimate(observation - 63, observation - 95, observation)
        level = [LevelMoved("yes", 0.281, 0.402, 0.54)] if kind == "level" else []
        shared: dict[str, Any] = {
            "kind": kind, "signal": "level" if kind == "level" else "excess", "detected_at": observation,
            "onset": onset, "model_loss": FigureMoved(0.284, 0.547, 0.104, 0.421, 3.25),
            "excess": FigureMoved(-0.0171, 0.271, 0.165, 0.411, 4.59),
            "slope": FigureMoved(-0.0233, 0.382, 0.287, 0.524, 6.72), "level": level, "n_reference": 4_672,
            "n_window": 64, "has_split": False, "loss": "zero_one", "loss_unit": "share of observations",
            "loss_largest": 1.0,
        }  # fmt: skip
        said = {"worse": "has become worse: it is wronger than it was, given what it predicts",
                "level": "is off its level: the order of observations is as good as before"}[kind]  # fmt: skip
        name = self.spec.model_id
        since = f"since {show_count(onset.observation)} (noticed at {show_count(observation)})"
        figures = "wrong predictions 28.4 % -> 54.7 %"
        head = f"{name} {said}, {since}; {figures}"
        id_ = self._add(
            LossShiftEvent(due_at=observation + 936, sentence=head, **shared, **self._common(observation)),
            time_ms, is_open=released is None,
        )  # fmt: skip
        if explained is not None:
            time_ms, observation = self._at(explained)
            event = LossShiftExplainedEvent(
                change_id=id_, features=self._suspects(), importance_loss=self.spec.loss.name, n_before=1_000,
                n_after=936, expected=None, **shared, **self._common(observation),
                sentence=f"explained: {head}; look first at {self.spec.features[0]} (its importance moved)",
            )  # fmt: skip
            self._add(event, time_ms, id_)
        if released is not None:
            time_ms, observation = self._at(released)
            end = LossShiftReleasedEvent(
                change_id=id_, reason="returned", **shared, **self._common(observation),
                sentence=f"the shift of the loss of {name} is over: the model is as right as it says again, the loss "
                "is 29.1 % now, and was 28.4 % before it",
            )  # fmt: skip
            self._add(end, time_ms, id_)
        return id_

    def recovered(self, minutes_ago: float) -> str:
        """Tell that the model went back to its last good state."""
        time_ms, observation = self._at(minutes_ago)
        event = RecoveredEvent(
            back_to=observation - 31, n_forgotten=31, n_failed=3, stage="learn", error="TypeError",
            sentence=f"{self.spec.model_id} failed on 3 observations in a row, at last to learn (TypeError), and on "
            f"others that it could handle before. It went back to its state after observation "
            f"{show_count(observation - 31)}, and forgets the 31 that it had learnt since.",
            **self._common(observation),
        )  # fmt: skip
        return self._add(event, time_ms)

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

    def _suspects(self) -> dict[str, LossSuspect]:
        return {
            name: LossSuspect(
                abs(one.delta), one.before, one.after, one.delta, one.delta_std_error, one.p_value,
                0.31 if i == 0 else 0.0, one.significant and i < 2,
            )
            for i, (name, one) in enumerate(list(self._compared("pfi").features.items())[:9])
        }  # fmt: skip


def _estimate(loss: float, share: float, n: int) -> LossEstimate:
    return LossEstimate(loss, loss * (1.0 - share), loss * (1.0 + share), n)


def _difference(value: float, half: float) -> LossDifference:
    return LossDifference(value, value - half, value + half)


def tell_all(now_ms: int, specs: tuple[Spec, ...] = SPECS) -> list[Told]:
    """Return all changes of the stand-in's models, the newest first."""
    told: list[Told] = []
    for spec in specs:
        story = Story(spec, now_ms)
        _TELL.get(spec.model_id, lambda _: None)(story)
        told += story.told
    return sorted(told, key=lambda one: -one.time_ms)


def _bank(story: Story) -> None:
    version = story.alarm(1_500.0, "version", before="1")
    story.explanation(story.later(1_500.0), None, version, "version", before="1")
    story.shift(600.0, "commission", released=420.0)
    story.loss_shift(13.1, explained=story.later(13.1, 936), released=12.3)
    alarm = story.alarm(12.5)
    story.shift(12.2, "salary")
    story.explanation(story.later(12.5), "followed", alarm)


def _bikes(story: Story) -> None:
    alarm = story.alarm(300.0)
    story.not_confirmed(story.later(300.0), alarm)
    alarm = story.alarm(1_400.0)
    story.explanation(story.later(1_400.0), "harder", alarm, pattern="recurring")


_TELL = {
    "bank": _bank,
    "bikes": _bikes,
    "wide": lambda story: story.explanation(
        story.later(55.0), "degraded", story.alarm(55.0, "discrepancy"), "discrepancy", both=False
    ),
    "fraud-a": lambda story: story.alarm(2.0, "discrepancy", is_open=True),
    "clicks": lambda story: story.shift(700.0, "device", released=90.0),
    "letters": lambda story: story.explanation(240.0, "matured", None, "check", both=False),
    LONG_ID: lambda story: (story.recovered(180.0), story.loss_shift(150.0, kind="level")),
    "<img src=x onerror=alert(1)>": lambda story: story.shift(5.0, "<script>alert(2)</script>"),
}


def view_of(told: list[Told], id_: str) -> ChangeView | None:
    """Return the view of a change, or None where there is none of that id."""
    found = next((one for one in told if one.id == id_), None)
    if found is None:
        return None
    chain = sorted((one for one in told if one.chain == found.chain), key=lambda one: one.time_ms)
    return ChangeView(row=found.row, event=found.raw, chain=[one.row for one in chain])
