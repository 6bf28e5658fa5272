"""The example of a web service, as it is started by uvicorn and asked over HTTP."""

from __future__ import annotations

import csv
import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.kafka import create_topics, read_all
from support.waiting import wait_for

from attributary_agents.demo.local_broker import free_port

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "benchmarks" / "data" / "bank_marketing.csv.gz"


def customers(n: int) -> list[tuple[dict[str, Any], str]]:
    with gzip.open(DATA, "rt") as file:
        rows = [row for row, _ in zip(csv.DictReader(file), range(n), strict=False)]
    found = []
    for row in rows:
        y = row.pop("y")
        found.append(
            ({name: float(v) if v.lstrip("-").replace(".", "").isdigit() else v for name, v in row.items()}, y)
        )
    return found


@contextmanager
def served(ended_by: signal.Signals = signal.SIGTERM, **environment: str) -> Iterator[httpx.Client]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "examples.service.app:app",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment})
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

            def answers() -> bool:
                assert process.poll() is None, "the service has ended"
                try:
                    return client.get("/metrics").status_code == 200
                except httpx.TransportError:
                    return False

            wait_for("the service answers", answers, 120)
            yield client
    finally:
        process.send_signal(ended_by)
        assert process.wait(120) in (0, -ended_by)


def figure(client: httpx.Client, name: str, **labels: str) -> float:
    said = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    lines = client.get("/metrics").text.splitlines()
    return next(
        (float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"attributary_{name}{{{said}}}")), -1
    )


def ask(client: httpx.Client, rows: list[tuple[dict[str, Any], str]], begin: int, lag: int) -> None:
    """Ask of every customer, and say `lag` customers later what each has said."""
    for n in range(begin, len(rows)):
        answer = client.post("/predict", json={"id": str(n), "x": rows[n][0]})
        assert answer.status_code == 200, answer.text
        assert answer.json()["id"] == str(n)
        if n >= lag:
            assert client.post("/label", json={"id": str(n - lag), "y": rows[n - lag][1]}).status_code == 202


@pytest.mark.long
@pytest.mark.kafka
def test_it_answers_learns_and_shows_and_goes_on_where_it_was_killed_or_stopped_and_then_on_kafka(
    kafka_broker: Any, tmp_path: Path
) -> None:
    rows, snapshot, bootstrap = customers(520), str(tmp_path / "monitor.pickle"), kafka_broker.bootstrap

    def n_kept() -> int:
        """Observations in the snapshot that the service has written last, of itself."""
        path = Path(snapshot)
        kept = (
            pickle.loads(path.read_bytes())
            if path.exists()
            else {"models": {"bank": {"state": {"n_observations": -1}}}}
        )
        return int(kept["models"]["bank"]["state"]["n_observations"])

    with served(signal.SIGKILL, MONITOR_SNAPSHOT=snapshot, MONITOR_SNAPSHOT_S="0.2") as client:
        ask(client, rows[:150], 0, 20)
        wait_for("130 observations in a snapshot", lambda: n_kept() == 130, 120)
    with served(MONITOR_SNAPSHOT=snapshot) as client:
        assert figure(client, "model_observations_total", model_id="bank") == 130
        assert figure(client, "observations_waiting", model_id="bank") == 20
        ask(client, rows[:300], 150, 20)
        wait_for("280 observations", lambda: figure(client, "model_observations_total", model_id="bank") == 280, 120)
        assert figure(client, "observations_waiting", model_id="bank") == 20
        assert set(client.get("/importances").json()["pfi"]) == set(rows[0][0])
        assert figure(client, "labels_total", model_id="bank", outcome="joined") == 280
        assert client.post("/predict", json={"id": "wrong", "x": {"age": [1]}}).status_code == 422
    create_topics(bootstrap, {"service.importances.v1": 1, "service.incidents.v1": 1})
    with served(MONITOR_SNAPSHOT=snapshot, MONITOR_KAFKA=bootstrap, MONITOR_PREFIX="service") as client:
        assert figure(client, "model_observations_total", model_id="bank") == 280
        ask(client, rows, 300, 20)
        wait_for("500 observations", lambda: figure(client, "model_observations_total", model_id="bank") == 500, 120)
        assert figure(client, "monitor_failures_total", model_id="bank", reason="model_failed") == 0
        assert figure(client, "feature_importance", model_id="bank", explainer="pfi", feature="job") != -1
    records = read_all(bootstrap, "service.importances.v1")
    events = [json.loads(record.value) for record in records]
    assert [event["observation"] for event in events][-1] == 500
    for record, event in zip(records, events, strict=True):
        headers = dict(record.headers)
        assert record.key == b"bank"
        assert headers["ce_id"].startswith(b"bank:1:%d:" % event["observation"])
        assert "source" not in event
