"""Runs the network's observations through a worker on Kafka, or through a partition without one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from support.kafka import produce, read_all
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.page import Page
from attributary_agents.kafka.observations import encode_value
from attributary_agents.kafka.topics import create_topics
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import decode_json

from .experiment import MODEL, MODEL_ID
from .network import Network

Progress = Callable[[int], None]
"""Called with the number of observations that have been handled."""

_SLOWEST_S = 0.5
"""Seconds that an observation may take on a busy machine before the run is given up."""


def values_of(network: Network) -> Iterator[bytes]:
    """Yield the records' values: an observation is `{"x": {…}}`, without a label."""
    return (encode_value({"x": x}) for x in network.rows())


def without_kafka(
    network: Network, progress: Progress = lambda _n: None, model: dict[str, Any] = MODEL
) -> list[dict[str, Any]]:
    """Return the importance events of a run as a replay makes them: the same as the worker's, to the last digit."""
    config = parse_config({"models": {MODEL_ID: model}})
    topics = config.kafka.topics
    partition = Partition(topics.observations, 0, config, load=lambda _key: None)
    events = []
    for n, value in enumerate(values_of(network)):
        for sent in partition.handle(Record(topics.observations, 0, n, 0, MODEL_ID.encode(), value)):
            if sent.topic == topics.dead_letters:
                raise RuntimeError(f"observation {n} became a dead letter: {dict(sent.headers)}")
            if sent.topic == topics.importances and sent.value is not None:
                events.append(decode_json(sent.value))
        progress(n + 1)
    return events


class OnKafka:
    """Runs a worker beside a broker, and the page where it is wanted.

    Parameters
    ----------
    broker
        It runs already.
    folder
        For configurations, logs and the page's store.
    seed
        Part of the names of group and topics: each run has its own.
    """

    def __init__(
        self, broker: Broker, folder: Path, seed: int, page: Page | None = None, model: dict[str, Any] = MODEL
    ) -> None:
        name = f"sensors-{seed}-{secrets.token_hex(3)}"
        key = folder / f"{name}.key"
        key.write_text(secrets.token_hex(32))
        self._raw: dict[str, Any] = {
            "kafka": {
                "brokers": [broker.bootstrap],
                "group": name,
                "topic_prefix": name,
                "partitions": 1,
                "instance_id": "sensors",  # the embedded broker holds static members only
            },
            "models": {MODEL_ID: model},
            "state": {"key_file": str(key)},
            **({} if page is None else {"serve": page.settings(folder)}),
        }
        self._config = parse_config(self._raw)
        self._broker, self._folder, self._page = broker, folder, page

    def run(self, network: Network, progress: Progress = lambda _n: None) -> list[dict[str, Any]]:
        """Send the observations, wait until the worker has handled them all, and return the importance events.

        Raises
        ------
        RuntimeError
            The worker ended by itself, or an observation became a dead letter.
        """
        topics, bootstrap = self._config.kafka.topics, self._broker.bootstrap
        create_topics(self._config)
        if self._page is not None:
            path = self._folder / "serve.yaml"
            path.write_text(yaml.safe_dump(self._raw))
            self._page.start(path)
        records = [(MODEL_ID.encode(), value) for value in values_of(network)]
        produce(bootstrap, topics.observations, [(key, value, []) for key, value in records])
        with WorkerProcess(self._raw, self._folder) as worker:
            worker.wait_consumed(len(records), timeout_s=60 + _SLOWEST_S * len(records), progress=progress)
            if worker.stop() != 0:
                raise RuntimeError(f"the worker did not end well:\n{worker.log_tail}")
        if refused := read_all(bootstrap, topics.dead_letters):
            raise RuntimeError(f"{len(refused)} observations became dead letters, the first: {refused[0].headers}")
        return [decode_json(record.value) for record in read_all(bootstrap, topics.importances)]
