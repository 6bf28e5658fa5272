"""The sensor network on Kafka: a worker ranks the faulty sensor first, as the same partition without Kafka does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from examples.sensor_network.experiment import MODEL, judge
from examples.sensor_network.network import make_network
from examples.sensor_network.running import OnKafka, without_kafka

from attributary_agents.demo.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.kafka]


QUICK = {
    **MODEL,
    "model": {**MODEL["model"], "params": {"learning_rate": 0.01}},
    "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 5}},
}
"""A third of the experiment's observations, so it learns twice as fast, and half the samples."""


def test_each_of_five_faulty_sensors_is_first_while_its_fault_lasts(kafka_broker: Broker, tmp_path: Path) -> None:
    network = make_network(1, 29, warm_up=1500, length=200, between=200)
    events = OnKafka(kafka_broker, tmp_path, 1, model=QUICK).run(network)
    verdicts = judge(events, network)
    assert [(one.explainer, one.fault.kind) for one in verdicts if one.rank > 1] == []
    assert len(verdicts) == 10
    assert {event["mode"] for event in events} == {"anomaly"}
    # To the last digit what a replay gives, as long as it lasts.
    replayed = without_kafka(replace(network, readings=network.readings[:300]), model=QUICK)
    both = [(event["explainer"], event["observation"], event["features"]) for event in replayed]
    assert [n for _, n, _ in both] == sorted([*range(60, 301, 20)] * 2), "of two explainers, from the first score on"
    assert both == [(e["explainer"], e["observation"], e["features"]) for e in events][: len(both)]
