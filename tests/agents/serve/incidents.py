"""Makes incident events for tests of the page, as the topic has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

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
    ValueFigures,
    encode_json,
)

BEFORE = ValueFigures(5_997, 0.0, [17.0, 19.0, 22.0, 28.0, 37.0, 48.0, 58.0, 70.0, 90.0], {}, 0)
AFTER = ValueFigures(50, 0.0, [204.0, 228.0, 264.0, 336.0, 444.0, 576.0, 696.0, 840.0, 1080.0], {}, 0)


def compared(names: Iterable[str], significant: int = 1) -> ImportanceComparison:
    """Return importances before and after, of which the first so many moved beyond noise."""
    features = {
        name: FeatureChange(0.1, 0.3, 0.2, 0.02, 0.02, 0.03, 2, 1, 0.001 if i < significant else 0.5, i < significant)
        for i, name in enumerate(names)
    }
    return ImportanceComparison("brier", "squared probability", 2.0, 500, 0.1, 0.9, 0.3, 0.5, features)


def explanation(names: Iterable[str] = ("age", "salary"), significant: int = 1, **more: Any) -> ChangeDetails:
    """Return what an incident has of the comparison of a model with its reference."""
    names = list(names)
    given: dict[str, Any] = {
        "route": "detector",
        "detector": DetectorSpec("adwin", {"delta": 0.1}, "zero_one"),
        "losses": ChangeLosses(
            "brier", "squared probability", 2.0, LossEstimate(0.31, 0.29, 0.33, 200),
            LossEstimate(0.62, 0.58, 0.66, 50), LossEstimate(0.44, 0.4, 0.48, 25),
            LossDifference(0.31, 0.26, 0.36), LossDifference(0.18, 0.14, 0.22),
        ),
        "importances": {"pfi": compared(names, significant)},
    }  # fmt: skip
    return ChangeDetails(
        model_version_before="1", model_version="1", verdict="harder",
        observation=5_300, detected_at=5_046, reference_at=1_000, onset=None, pattern=None, window=250,
        discrepancy=0.4, threshold=0.25, n_discrepancy=250, distance="probability", scale="relative",
        **{**given, **more},
    )  # fmt: skip


def feature(delta: float | None = 0.1, said: str = "", values: bool = False) -> IncidentFeature:
    """Return what an incident says of a feature."""
    before = None if delta is None else 0.3
    after = None if delta is None else 0.3 + delta
    figures = (BEFORE, AFTER) if values or said else (None, None)
    return IncidentFeature(before, after, delta, None if delta is None else 0.02, delta is not None, bool(said), said,
                           *figures)  # fmt: skip


def incident_event(
    incident_id: str = "bank:t:0:5046:0",
    revision: int = 1,
    *,
    model_id: str = "bank",
    what: str = "worse",
    life: str = "confirmed",
    severity: str = "critical",
    observation: int = 5_300,
    since: int = 5_002,
    low: int | None = 4_996,
    time: str | None = None,
    features: Iterable[str] | Mapping[str, IncidentFeature] = ("age",),
    **more: Any,
) -> dict[str, Any]:
    """Return a revision of an incident; by default that of a model that is worse."""
    named = features if isinstance(features, Mapping) else {one: feature() for one in features}
    given: dict[str, Any] = {
        "number": 1,
        "model_version": "1",
        "reason": life,
        "effects": [
            IncidentEffect("loss", MeanEstimate(0.27, 0.02), MeanEstimate(0.63, 0.11), MeanEstimate(0.6, 0.06)),
            IncidentEffect("error rate", MeanEstimate(0.2, 0.02), MeanEstimate(0.32, 0.06), MeanEstimate(0.3, 0.03)),
        ],
        "loss": "brier",
        "loss_unit": "squared probability",
        "advice": "retrain",
        "intercept": None,
        "again": 0,
        "evidence": [IncidentEvidence("loss", "worse", observation, life in ("suspected", "confirmed"))],
        "headline": f"{model_id} is {what}",
        "action": "Act now: train it again.",
        "sentence": f"{model_id} is {what}. Act now: train it again. It began at observation {since}.",
        "explanation": None,
    }
    event = IncidentEvent(
        id=incident_id,
        revision=revision,
        model_id=model_id,
        what=what,
        life=life,
        severity=severity,
        observation=observation,
        since=IncidentOnset(since, low, since + 6, time),
        features=dict(named),
        **{**given, **more},
    )
    made: dict[str, Any] = json.loads(encode_json(event))
    return made
