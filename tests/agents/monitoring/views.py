"""Hand-made views of a worker, and what a scrape reads of them."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_agents.worker.view import PartitionView, WorkerView
from tests.agents.stand_ins import EAGER, FACTORY, TOPIC, observations

PREFIX = "attributary_"
MODEL: dict[str, Any] = {
    "factory": FACTORY,
    "version": "v3",
    "alpha": 0.05,
    "explainers": {"pfi": {"n_samples": 1}, "sage": {"n_samples": 1}},
    "change": {"window": 20, **EAGER},
    "publish": {"reference_after": 10},
}


def config_of(*model_ids: str, metrics: dict[str, int] | None = None, **model: Any) -> Config:
    return parse_config({"models": {name: {**MODEL, **model} for name in model_ids}, "metrics": metrics or {}})


def filled(
    config: Config, partitions: dict[int, list[str]], n: int = 60, flip_at: int = 25, sent: list[Outgoing] | None = None
) -> WorkerView:
    """A view of a worker that has explained `n` observations of each model and met one bad record per partition.

    What it has sent of the observations is added to `sent`.
    """
    sent = [] if sent is None else sent
    view = WorkerView(found := {})
    for number, model_ids in partitions.items():
        partition = Partition(TOPIC, number, config, lambda _key: None)
        offset = 0
        for model_id in model_ids:
            for observation in observations(n, flip_at=flip_at):
                value = encode_value({"x": observation.x, "y": observation.y})
                sent += partition.handle(Record(TOPIC, number, offset, 1_700_000_000_500, model_id.encode(), value))
                view.observation_times.observe(0.002)
                offset += 1
        partition.handle(Record(TOPIC, number, offset, 0, b"m", b"{poison"))
        own = found[number] = PartitionView(partition)
        own.state_bytes = dict.fromkeys(model_ids, 1000 + number)
        own.explain_shares = dict.fromkeys(model_ids, 0.25)
        own.lag.note(5 * (number + 1), time.monotonic())
    view.record_checkpoint(0.02)
    view.brokers.answer("kafka:9092")
    return view


def scraped(
    config: Config, partitions: dict[int, list[str]], **of_view: Any
) -> tuple[AttributaryCollector, WorkerView]:
    """What is scraped of a filled view, and the view."""
    view = filled(config, partitions, **of_view)
    return AttributaryCollector(config, view), view


def samples(collector: AttributaryCollector) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """As a scrape reads them."""
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    return {
        (sample.name.removeprefix(PREFIX), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: dict[Any, float], name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]
