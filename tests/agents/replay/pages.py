"""Events of a replay, and the data of the page that is made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attributary_agents.config.settings import Config
from attributary_agents.replay.page import ReplayPage
from attributary_agents.worker.records import Outgoing
from attributary_topics import DeadLetter, Source, encode_json, event_headers

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(html: str) -> Any:
    """The object that a page of one file holds."""
    (found,) = _DATA.findall(html)
    return json.loads(found)


def made_page(
    path: Path,
    config: Config,
    importances: Iterable[dict[str, Any]],
    changes: Iterable[dict[str, Any]] = (),
    reasons: Iterable[str] = (),
    model_id: str = "credit",
) -> str:
    """Write the page of these events, as a replay sends them, and return its HTML."""
    topics = config.kafka.topics
    page = ReplayPage(model_id, config)
    for topic, kind, events in (
        (topics.importances, "importance", importances),
        (topics.changes, "change", changes),
    ):
        for n, event in enumerate(events):
            headers = event_headers(kind, model_id, Source(topics.observations, 0, event["observation"]), 0, n)
            if kind == "change":
                event = {"change_id": None, **event}
            page.take(Outgoing(topic, model_id.encode(), encode_json(event), headers))
    for n, reason in enumerate(reasons):
        source = Source(topics.observations, 0, n)
        letter = DeadLetter(model_id.encode(), b"{}", [], source, 0, "decode", reason, "InvalidRecordError", "why")
        page.take(Outgoing(topics.dead_letters, letter.key, letter.value, letter.all_headers()))
    page.write(path, None)
    page.close()
    return path.read_text(encoding="utf-8")


def importance(observation: int, features: dict[str, float], **more: Any) -> dict[str, Any]:
    ranked = sorted(features, key=lambda name: -features[name])
    return {
        "model_id": "credit",
        "model_version": "1",
        "explainer": "pfi",
        "removal": "interventional",
        "loss": "brier",
        "loss_unit": "squared probability",
        "loss_largest": 2.0,
        "alpha": 0.01,
        "observation": observation,
        "n_observations": observation,
        "model_loss": 0.4,
        "baseline_loss": 0.7,
        "quality": {},
        "discrepancy": 0.1,
        "features": {
            name: {
                "importance": value,
                "std_error": 0.01,
                "half_width": 0.02,
                "share": 0.5,
                "rank": ranked.index(name) + 1,
            }
            for name, value in features.items()
        },
        **more,
    }


def compared(names: list[str], significant: int = 1) -> dict[str, Any]:
    """What a change is by one method."""
    values = {"before": 0.1, "after": 0.3, "delta": 0.2}
    return {
        "loss": "zero_one",
        "loss_unit": "share of observations",
        "loss_largest": 1.0,
        "shift": 0.1,
        "ndcg": 0.9,
        "before_loss": 0.1,
        "after_loss": 0.2,
        "features": {
            name: {
                **values,
                **{f"{key}_std_error": 0.02 for key in values},
                "before_rank": i + 1,
                "after_rank": 1,
                "p_value": 0.001 if i < significant else 0.5,
                "significant": i < significant,
            }
            for i, name in enumerate(names)
        },
    }


LOSSES: dict[str, Any] = {
    "loss": "brier",
    "loss_unit": "squared probability",
    "loss_largest": 2.0,
    "reference_then": {"loss": 0.31, "low": 0.29, "high": 0.33, "n": 200},
    "reference_now": {"loss": 0.62, "low": 0.58, "high": 0.66, "n": 50},
    "model_now": {"loss": 0.44, "low": 0.4, "high": 0.48, "n": 25},
    "worsened": {"loss": 0.31, "low": 0.26, "high": 0.36},
    "gain": {"loss": 0.18, "low": 0.14, "high": 0.22},
}


def change(observation: int, names: list[str], significant: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "event": "explanation",
        "change_id": f"credit:topic:0:{observation - 51}:0",
        "model_id": "credit",
        "model_version_before": "1",
        "model_version": "1",
        "verdict": "followed",
        "route": "detector",
        "observation": observation,
        "detected_at": observation - 50,
        "reference_at": 50,
        "onset": {"observation": observation - 55, "low": observation - 57, "high": observation - 51},
        "pattern": None,
        "detector": {"name": "adwin", "params": {"delta": 0.1}, "signal": "zero_one"},
        "window": 50,
        "discrepancy": 0.4,
        "threshold": 0.3,
        "losses": LOSSES,
        "importances": {"pfi": compared(names, significant)},
        "sentence": f"credit changed at {observation}: {', '.join(names[:significant])} gained",
        **more,
    }


def of_loss(event: str, observation: int, change_id: str | None, **more: Any) -> dict[str, Any]:
    """An event of a shift of the loss that was told at 400."""
    return {
        "event": event,
        "change_id": change_id,
        "model_id": "credit",
        "model_version": "1",
        "kind": "worse",
        "signal": "excess",
        "observation": observation,
        "detected_at": 400,
        "onset": {"observation": 380, "low": None, "high": 390},
        "model_loss": {"before": 0.35, "after": 0.52, "low": 0.12, "high": 0.22, "z": 6.5},
        "excess": {"before": 0.01, "after": 0.18, "low": 0.13, "high": 0.21, "z": 7.5},
        "slope": None,
        "level": [],
        "has_split": False,
        "importance_loss": "log_loss",
        "n_reference": 7808,
        "n_window": 128,
        "loss": "log_loss",
        "loss_unit": "nats",
        "loss_largest": 6.9,
        "sentence": f"{event} of <credit>",
        **more,
    }


def suspect(*, significant: bool = True) -> dict[str, Any]:
    """A feature that may have to do with a shift of the loss."""
    return {
        "score": 8.0 if significant else 0.5,
        "importance_before": 0.3,
        "importance_after": 0.1,
        "delta": -0.2,
        "delta_std_error": 0.02,
        "p_value": 0.001 if significant else 0.6,
        "moved": 0.4,
        "significant": significant,
    }
