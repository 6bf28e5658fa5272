"""The sensor network on Kafka: a worker ranks the faulty sensor first, as the same partition without Kafka does."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.sensor_network.experiment import judge
from examples.sensor_network.network import make_network
from examples.sensor_network.running import OnKafka, without_kafka

from attributary_agents.demo.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def test_each_of_five_faulty_sensors_is_first_while_its_fault_lasts(kafka_broker: Broker, tmp_path: Path) -> None:
    network = make_network(1, 29)
    events = OnKafka(kafka_broker, tmp_path, 1).run(network)
    verdicts = judge(events, network)
    assert [(one.explainer, one.fault.kind) for one in verdicts if one.rank > 1] == []
    assert len(verdicts) == 10
    assert {event["mode"] for event in events} == {"anomaly"}
    # To the last digit what a replay gives, as long as it lasts.
    first = make_network(1, 29)
    first.readings.resize((1000, 29), refcheck=False)
    replayed = without_kafka(first)
    both = [(event["explainer"], event["observation"], event["features"]) for event in replayed]
    assert both == [(e["explainer"], e["observation"], e["features"]) for e in events][: len(both)]
