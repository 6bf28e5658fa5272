"""The attacks of `make hostile` are held off, on a real Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.hostile import attacks
from benchmarks.hostile.lab import ATTACKS, Lab

from attributary_agents.demo.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.kafka]

assert attacks.__all__ is not None  # importing it lists the attacks
ALIKE = ("bomb-snappy", "bomb-lz4", "label-any")
"""Attacks that differ from another by the codec or a setting alone: `make hostile` has them."""


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ALIKE])
def test_the_attack_is_held_off(name: str, kafka_broker: Broker, tmp_path: Path) -> None:
    found = ATTACKS[name].run(Lab(kafka_broker, tmp_path, short=True))
    assert found.held, found.figure
