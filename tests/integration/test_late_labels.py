"""Labels that come later, on our topic: a worker is killed twice, and neither events nor accounts tell of it."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.kafka import Record, produce
from support.undisturbed import check_equal
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_topics import RECORD_HEADER
from tests.integration.configs import created

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N, TTL_S, CAP = 4000, 60, 45


def test_a_worker_that_is_killed_twice_leaves_the_events_and_the_accounts_of_an_undisturbed_run(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, config = created(
        kafka_broker,
        sources={"rentals": {"topic": "rentals", "id": "id", "y_pred": "score", "model": "credit"}},
        labels={
            "counts": {
                "topic": "counts",
                "id": "id",
                "y": "y",
                "model": "credit",
                "ttl": f"{TTL_S}s",
                "max_waiting": CAP,
                "unlabelled": "explain",
            }
        },
        run={"mapper": False},
        checkpoint={"interval_s": 0.5, "max_observations": 200},
    )
    stream = _stream()
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, stream)
    sent = [dict(headers)[RECORD_HEADER] for _, _, headers, _ in stream]
    worker = WorkerProcess(raw, tmp_path)
    for share in (0.3, 0.6):
        with worker:
            worker.wait_consumed(round(share * len(stream)), timeout_s=120)
            worker.kill()
    with worker:
        worker.wait_consumed(len(stream), timeout_s=120)
        found = worker.metrics()
        assert worker.stop() == 0

    check_equal(kafka_broker.bootstrap, config)

    def of(name: str, label: str = "") -> Counter[str]:
        summed = Counter[str]()
        for labels, value in found[f"attributary_{name}"].items():
            summed[dict(labels).get(label, "")] += int(value)
        return summed

    labels, expired = of("labels_total", "outcome"), of("observations_expired_total", "reason")
    letters = {reason: n for reason, n in of("dead_letters_total", "reason").items() if n}
    (observed,), (waiting,), (early,) = (
        of(name).values() for name in ("observations_observed_total", "observations_waiting", "labels_early")
    )
    joined = labels["joined"] + labels["joined_old_version"]
    assert letters.keys() == {"duplicate_id"}
    assert observed + letters["duplicate_id"] == sent.count(b"observation")
    assert observed == joined + waiting + sum(expired.values()) == N
    assert sum(labels.values()) + early == sent.count(b"label")
    assert sum(of("model_observations_total").values()) == joined
    # Each of these is in the stream, so that each is put to the proof.
    assert min(labels[one] for one in ("joined", "orphaned", "duplicate", "changed", "late")) > 0
    assert min(waiting, expired["ttl"], expired["cap"]) > 0


def _stream() -> list[Record]:
    """Observations a second apart with labels up to half a minute later; some first, twice, changed, late, or never."""
    rng = random.Random(6)
    start_ms = round(1000 * (time.time() - N))  # no longer ago: the topic's retention would delete them
    parts: list[tuple[float, bytes, int, dict[str, Any]]] = []
    for i in range(N):
        a, b, c = ((i * k % 101) / 50 - 1 for k in (37, 53, 71))
        y = (b if i > N // 2 else a) > 0
        at = start_ms + 1000.0 * i
        x = {"a": a, "b": b, "c": c}
        observation = (
            {"x": x, "id": i, "time": round(at), "y_pred": y if i % 10 else not y} if i % 2 else {"x": x, "id": i}
        )
        parts.append((at, b"observation", i, observation))
        # Through a long silence of the labels' producer too many wait.
        delay_s = rng.choice([-2, 1, 5, 30]) if not 2000 < i < 2100 else 55
        if rng.random() < 0.93:
            parts.append((at + 1000 * delay_s, b"label", i, {"id": str(i), "y": y}))
        if rng.random() < 0.02:
            parts.append((at + 40_000, b"label", i, {"id": i, "y": not y}))
        if rng.random() < 0.02:
            parts.append((at + 42_000, b"label", i, {"id": i, "y": y}))
        if rng.random() < 0.02:
            parts.append((at + 1000 * (TTL_S + 20), b"label", i, {"id": i, "y": y}))
        if rng.random() < 0.02:
            parts.append((at, b"label", i, {"id": f"nobody's {i}", "y": y}))
        if rng.random() < 0.02:
            parts.append((at + 10_000, b"observation", i, observation))
    parts.sort(key=lambda part: part[0])
    end = start_ms + 1000 * N  # some wait at the end, for labels that are not there yet
    return [
        (b"credit", json.dumps({"time": round(at), **value}).encode(), [(RECORD_HEADER, kind)], round(at))
        for at, kind, _, value in parts
        if at < end
    ]
