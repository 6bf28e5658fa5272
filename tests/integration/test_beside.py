"""Mean decrease in impurity and partial dependence of a worker on Apache Kafka that is killed: the same to the byte."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from support.kafka import produce, read_all
from support.undisturbed import check_equal
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.local_broker import free_port
from tests.integration.configs import created
from tests.integration.serve.process import ServeProcess

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 2400
CITIES = ("Köln", "Łódź", "São Paulo", "Zürich")
EXPLAINERS: dict[str, Any] = {
    "pfi": {"n_samples": 1},
    "mdi": {},
    "pdp": {"max_features": 2, "window": 100, "grid_size": 5, "every": 400},
}


def shop(i: int) -> bytes:
    """Return a record with a text, a number that may be null, and a label of three that these decide."""
    rng = random.Random(i)
    city, age = rng.choice(CITIES), None if rng.random() < 0.1 else rng.randint(18, 90)
    bought = "nothing" if city in CITIES[:2] else "much" if (age or 0) > 50 else "little"
    return json.dumps({"x": {"city": city, "age": age, "noise": rng.random()}, "y": bought}).encode()


def test_a_killed_worker_leaves_the_same_trees_and_curves_and_page_metrics_and_command_show_them(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    tree = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50, "delta": 0.01}}
    shared = {"alpha": 0.005, "change": {"window": 200}, "publish": {"every": 100}}
    models = {
        "shop": {"model": tree, **shared, "explainers": EXPLAINERS},
        "quiet": {"model": tree, **shared, "explainers": {"pdp": {**EXPLAINERS["pdp"], "publish_values": False}}},
    }
    raw, config = created(kafka_broker, models=("shop", "quiet"))
    raw["models"] = models
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    config = type(config)(**raw)
    records = [(b"quiet" if i % 4 == 0 else b"shop", shop(i), []) for i in range(N)]
    topics = config.kafka.topics
    produce(kafka_broker.bootstrap, topics.observations, records, partition=0)
    worker = WorkerProcess(raw, tmp_path)
    for n in (N // 5, N // 2, 4 * N // 5):
        with worker:
            worker.wait_consumed(n, timeout_s=120)
            worker.kill()
    with worker:
        worker.wait_consumed(N, timeout_s=120)
        metrics = worker.metrics()
        assert worker.stop() == 0
    check_equal(kafka_broker.bootstrap, config)  # events by their ids, bytes and headers; and the states

    events = [json.loads(record.value) for record in read_all(kafka_broker.bootstrap, topics.importances)]
    curves = [event for event in events if event.get("event") == "dependence"]
    last = {event["feature"]: event for event in curves if event["model_id"] == "shop"}
    assert set(last) >= {"city", "age"}
    assert set(last["city"]["values"]) == set(CITIES)
    assert last["city"]["label"] in ("nothing", "much", "little")
    assert {event["kind"] for event in curves if event["model_id"] == "quiet"} == {"number"}
    told = [event for event in events if event["explainer"] == "mdi"]
    assert {event["model_id"] for event in told} == {"shop"}
    assert told[-1]["features"].keys() >= {"city"}

    labelled = [
        (name.removeprefix("attributary_"), dict(labels)) for name, found in metrics.items() for labels in found
    ]
    of_mdi = [(name, labels.get("feature")) for name, labels in labelled if labels.get("explainer") == "mdi"]
    assert ("feature_importance", "city") in of_mdi
    assert {name for name, _ in of_mdi} == {
        "feature_importance",
        "feature_importance_share_ratio",
        "explainer_observations",
    }, "no intervals, no shifts; a reference only after 2000 observations"
    assert not [name for name, labels in labelled if labels.get("explainer") == "pdp"]

    command = [sys.executable, "-m", "attributary_agents.cli", "importance", "shop", "--config", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "pfi (interventional)" in shown
    assert "\tmdi\t" in shown, "without removal"

    serve = ServeProcess(path, tmp_path, free_port())
    try:
        serve.wait_until_it_answers()
        of_model = httpx.get(f"{serve.address}/api/v1/models/shop").json()
        assert [one["name"] for one in of_model["explainers"]] == ["pfi", "mdi"]
        assert set(of_model["dependences"]) >= {"city", "age"}
        answer = httpx.get(f"{serve.address}/api/v1/models/shop/dependences", params={"feature": "city"}).json()
        newest = {one["label"]: one for one in answer["dependences"]}[last["city"]["label"]]
        assert dict(zip(newest["values"], newest["mean"], strict=True)) == pytest.approx(
            dict(zip(last["city"]["values"], last["city"]["mean"], strict=True)), rel=1e-6
        )
        assert httpx.get(f"{serve.address}/api/v1/models/quiet").json()["explainers"] == []
        latest = httpx.get(f"{serve.address}/api/v1/models/shop/importances", params={"explainer": "mdi"}).json()
        features = {one["feature"]: one for one in latest["features"]}
        assert features["city"]["latest"] == pytest.approx(told[-1]["features"]["city"]["importance"], rel=1e-4)
        assert features["city"]["latest_half_width"] is None
    finally:
        assert serve.stop() == 0
