"""Values are watched when they come, and not when their label does."""

from __future__ import annotations

import json
import random
from typing import Any

from river import linear_model

from attributary_explainers import Monitor


def broken_and_labelled(lag: int, *, restores_at: int | None = None) -> list[dict[str, Any]]:
    """Return the incidents of a stream whose `age` is in months from 1000 on, and whose labels come so much later."""
    told: list[dict[str, Any]] = []

    def begun() -> Monitor:
        monitor = Monitor(in_background=False)
        monitor.add("bank", linear_model.LogisticRegression(), change=None)
        monitor.publish_to(publish)
        return monitor

    def publish(topic: str, _key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        if topic.endswith("incidents.v1"):
            told.append({**json.loads(value), "ce_id": dict(headers)["ce_id"].decode()})

    monitor, rng = begun(), random.Random(1)
    for i in range(1200):
        if i == restores_at:
            snapshot, monitor = monitor.snapshot(), begun()
            monitor.restore(snapshot)
        x = {"age": rng.randint(17, 90) * (12 if i >= 1000 else 1), "b": rng.gauss(0, 1)}
        monitor.predict("bank", x, id=i, time_ms=1000 * i)
        if i >= lag:
            monitor.label("bank", i - lag, rng.random() < 0.5, time_ms=1000 * i)
    return told


def test_a_break_is_told_though_the_labels_come_much_later() -> None:
    first, *_ = broken_and_labelled(900)
    assert (first["what"], first["life"], list(first["features"])) == ("inputs", "confirmed", ["age"])
    assert first["since"]["time"] == "1970-01-01T00:16:40.000Z", "1000 s: the first in months"
    assert first["observation"] < 200, "labels so far"
    assert "12 times what it was" in first["sentence"]


def test_each_value_counts_once_however_late_its_label_is() -> None:
    n = [
        one["features"]["age"]["values_before"]["n"]
        for one in (*broken_and_labelled(900)[:1], *broken_and_labelled(0)[:1])
    ]
    assert n[0] == n[1] == 1000 - 5, "all before the break but those that the latest 50 still hold"


def test_a_restart_before_the_break_changes_nothing() -> None:
    assert broken_and_labelled(900, restores_at=1010) == broken_and_labelled(900)
