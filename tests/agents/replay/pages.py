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
from tests.agents.serve.incidents import incident_event

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(html: str) -> Any:
    """The object that a page of one file holds."""
    (found,) = _DATA.findall(html)
    return json.loads(found)


def made_page(
    path: Path,
    config: Config,
    importances: Iterable[dict[str, Any]],
    incidents: Iterable[dict[str, Any]] = (),
    reasons: Iterable[str] = (),
    model_id: str = "credit",
) -> str:
    """Write the page of these events, as a replay sends them, and return its HTML."""
    topics = config.kafka.topics
    page = ReplayPage(model_id, config)
    for topic, kind, events in (
        (topics.importances, "importance", importances),
        (topics.incidents, "incident", incidents),
    ):
        for n, event in enumerate(events):
            headers = event_headers(kind, model_id, Source(topics.observations, 0, event["observation"]), 0, n)
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


def incident(observation: int, names: list[str], **more: Any) -> dict[str, Any]:
    """A revision of an incident that began a little before that observation; by default the only one."""
    given = {
        "since": observation - 50,
        "low": observation - 57,
        "headline": f"Credit is worse at {observation}",
        **more,
    }
    return incident_event(f"credit:{observation}", model_id="credit", observation=observation, features=names, **given)
