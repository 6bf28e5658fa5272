"""A worker without Kafka whose model is served, beside the same model in the worker's own process."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson
from support.models.served_models import ServedModels

from attributary_agents.app import create_app  # noqa: F401 - the parts of Faust that the worker imports
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.worker.assigned import Assigned
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_agents.worker.worker import Worker
from attributary_explainers import as_batch
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.test_assigned import Broker, Running, fetch

FEATURES = ("a", "b", "c")
CHANGE = {"window": 60, "detector": "page_hinkley", "detector_params": {"min_instances": 30, "threshold": 3.0}}
SETTINGS: dict[str, Any] = {
    "features": dict.fromkeys(FEATURES, "number"),
    "alpha": 0.02,
    "learn": False,
    "explainers": {
        "pfi": {"n_samples": 3},
        "sage": {"n_samples": 2},
        "pdp": {"window": 20, "grid_size": 3, "every": 25, "max_features": 2},
    },
    "change": CHANGE,
    "publish": {"every": 20, "min_observations": 10},
}
QUICK = {"timeout": 0.5}


def probabilities(rows: list[dict[str, Any]]) -> list[list[float]]:
    """Predict by a rule of three features, row by row: the same bits whatever rows come together."""
    found = []
    for row in rows:
        a, b, c = (float(row.get(name, row.get(f"f{k}"))) for k, name in enumerate(FEATURES))  # type: ignore[arg-type]
        yes = min(max(0.5 + 0.4 * a + 0.07 * b * c, 0.01), 0.99)
        found.append([1.0 - yes, yes])
    return found


def as_dicts(rows: Any) -> list[dict[bool, float]]:
    return [dict(zip((False, True), one, strict=True)) for one in probabilities(list(rows))]


def own_model() -> Any:
    """Return the same model in this process: the factory of a configuration."""
    return as_batch(as_dicts, classes=[False, True])


FACTORY = "tests.agents.worker.lookahead.served:own_model"


def served_model(server: ServedModels, **given: Any) -> dict[str, Any]:
    return {"served": server.address("rule"), "output": "predictions", "classes": [False, True], **QUICK, **given}


def config_of(models: dict[str, Any], **given: Any) -> Config:
    return parse_config({"models": {name: {**SETTINGS, "model": model} for name, model in models.items()}, **given})


def values(n: int, flip_at: int, seed: int = 3) -> list[bytes]:
    """Observations of which `a` decides the label up to `flip_at`, and its opposite from then on."""
    rng = random.Random(seed)
    made = []
    for i in range(n):
        x = {name: rng.uniform(-1, 1) for name in FEATURES}
        made.append(orjson.dumps({"x": x, "y": (x["a"] > 0) != (i >= flip_at)}))
    return made


class Sent(Broker):
    """A broker that keeps what is sent to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[bytes, bytes]] = []
        self.headers: list[dict[str, bytes | None]] = []

    def send_soon(self, **record: Any) -> asyncio.Future[None]:
        self.sent.append((record["key"], record["value"]))
        self.headers.append(dict(record["headers"]))
        return super().send_soon(**record)


class Serving(Running):
    """A worker whose models are configured as given."""

    def __init__(self, config: Config, broker: Sent | None = None) -> None:
        self.broker: Sent = broker or Sent()
        topics = config.kafka.topics
        outputs = dict.fromkeys((topics.importances, topics.incidents, topics.dead_letters), self.broker)
        app: Any = self.broker
        self.worker = Worker(app, config, self.broker, outputs)

    async def take(self, records: list[Any]) -> None:
        await self.worker.take(fetch(records, 1))

    async def settle(self, within_s: float = 60.0) -> None:
        """Wait until all is handled."""
        async with asyncio.timeout(within_s):
            for _ in range(2):
                await self.worker.under_way.settle()
                self.worker.under_way.check()

    def unforeseen(self) -> int:
        """Return how many dead letters say that rows had not been foreseen."""
        messages = [headers.get("attributary-dlq-message") or b"" for headers in self.broker.headers]
        return sum(b"not been foreseen" in message for message in messages)


def in_process(models: dict[str, Any], records: list[Any], **given: Any) -> tuple[Partition, list[tuple[bytes, bytes]]]:
    """Handle the records one after another, by models of this process; return the partition, and what it sends."""
    partition = Partition(TOPIC, 0, config_of(models, **given), lambda _key: None)
    sent: list[Outgoing] = []
    for one in records:
        sent += partition.handle(Record(TOPIC, 0, one.offset, one.timestamp, one.key, one.value))
    return partition, [(one.key or b"", one.value or b"") for one in sent]


def state_of(assigned: Assigned | Partition, model_id: str = "m") -> Any:
    """Return what is stored of a model, but for the pickles of the model itself and for how it is made."""
    partition = assigned.partition if isinstance(assigned, Assigned) else assigned
    found = partition.models[model_id].snapshot()
    kept = {name: value for name, value in found.items() if name not in ("current", "configured", "good")}
    return _without_models(kept)


def _without_models(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_models(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_models(one) for one in value]
    return b"" if isinstance(value, bytes) and b"Model" in value else value
