"""Five minutes that give every panel something to show: two workers, three models, and what happens to them.

`credit` learns Agrawal's data, whose rule changes; `loans` the same data with a rule that stays; `energy` is a
regression that is replaced by a new version. Some records are bad. At the end one of the two workers is stopped, and
the other takes over its partition. Prometheus scrapes both and evaluates the shipped rules.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from river.datasets import synth
from support.monitoring import Prometheus
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import broker
from attributary_agents.kafka.deployments import send_deployment
from attributary_agents.kafka.observations import encode_value, produce
from attributary_agents.kafka.topics import create_topics
from attributary_agents.models.deployments import decode
from attributary_topics import encode_json

SCRAPE_S = 2
RATE = 25.0
"""Observations per second of each model."""
DRIFT_AT = 3000
"""Observation of `credit` from which Agrawal's function 2 decides instead of function 1."""
NEW_VERSION_AFTER_S = 150
WORKER_STOPS_AFTER_S = 250
ENDS_AFTER_S = 290
RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus" / "rules"


def settings(bootstrap: str) -> dict[str, Any]:
    """The workers' configuration."""
    change = {"window": 500}
    forest = {"class": "river.forest.ARFClassifier", "params": {"n_models": 10, "seed": 1}}
    classifier = {"model": forest, "version": "1", "change": change}
    return {
        "kafka": {"brokers": [bootstrap], "group": "pictures", "topic_prefix": "pictures", "partitions": 2},
        "defaults": {
            "alpha": 0.004,
            "explainers": {"pfi": {"n_samples": 2}},
            "publish": {"every": 100, "reference_after": 1000},
        },
        "models": {
            "credit": {**classifier, "explain": {"budget": 0.5}},
            "loans": classifier,
            "energy": {
                "model": [
                    {"class": "river.preprocessing.StandardScaler"},
                    {"class": "river.linear_model.LinearRegression"},
                ],
                "version": "1",
                "change": change,
            },
        },
        "checkpoint": {"interval_s": 10},
    }


def _credit() -> Iterator[bytes]:
    first = synth.Agrawal(classification_function=1, seed=1).take(DRIFT_AT)
    for n, (x, y) in enumerate(chain(first, synth.Agrawal(classification_function=2, seed=2))):
        if n % 900 == 500:
            yield b"{poison"
        yield encode_value({"x": x} if n % 700 == 300 else {"x": x, "y": y})


def _loans() -> Iterator[bytes]:
    for x, y in synth.Agrawal(classification_function=3, seed=3):
        yield encode_value({"x": x, "y": y})


def _energy() -> Iterator[bytes]:
    for x, y in synth.Friedman(seed=4):
        yield encode_value({"x": {f"sensor_{name}": value for name, value in x.items()}, "y": y})


async def _send(config: Config, began: float) -> None:
    async def until(values: Iterator[bytes], model_id: str) -> None:
        n = int((began + ENDS_AFTER_S - time.time()) * RATE)
        await produce(config, model_id, (value for value, _ in zip(values, range(n), strict=False)), rate=RATE)

    async def deploy() -> None:
        await asyncio.sleep(began + NEW_VERSION_AFTER_S - time.time())
        value = encode_json({"version": "2", "model": {"class": "river.tree.HoeffdingTreeRegressor"}})
        decode(config, b"energy", value)  # else it would become a dead letter
        await send_deployment(config, "energy", value)

    streams = {"credit": _credit(), "loans": _loans(), "energy": _energy()}
    await asyncio.gather(deploy(), *(until(values, model_id) for model_id, values in streams.items()))


def run(folder: Path, broker_spec: str) -> None:
    """Run it, and leave Prometheus' data in `folder`, with the time range in `range.json`."""
    with broker(broker_spec) as running:
        raw = settings(running.bootstrap)
        config = parse_config(raw)
        create_topics(config)
        with WorkerProcess(raw, folder) as first, WorkerProcess(raw, folder) as second:
            scraped = {
                "job_name": "attributary",
                "static_configs": [{"targets": [f"127.0.0.1:{worker.port}" for worker in (first, second)]}],
            }
            scraping = {
                "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
                "rule_files": [str(RULES / "*.yml")],
                "scrape_configs": [scraped],
            }
            while not (first.is_ready() and second.is_ready()):
                time.sleep(0.2)
            with Prometheus(folder, scraping) as prometheus:
                began = time.time()
                sending = threading.Thread(target=lambda: asyncio.run(_send(config, began)))
                sending.start()
                while (now := time.time() - began) < ENDS_AFTER_S:
                    if now > WORKER_STOPS_AFTER_S and second.exit_code is None:
                        second.stop()
                    time.sleep(0.5)
                sending.join()
                (folder / "range.json").write_text(
                    json.dumps({"start": began, "end": time.time(), "data": str(prometheus.data)})
                )
