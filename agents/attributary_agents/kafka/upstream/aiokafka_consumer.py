"""Additions to `aiokafka.AIOKafkaConsumer`.

- It has no public way to its client, which can ask brokers for what it does not ask itself: ids of topics, records at
  an offset without moving.
- It tells the committed offset of a group, and not the note that was committed beside it.

True for aiokafka 0.14.0; `test_aiokafka_consumer.py` says when it is mended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import AIOKafkaClient


def client_of(consumer: AIOKafkaConsumer) -> AIOKafkaClient:
    """Return the client of a consumer, which sends requests to brokers."""
    return consumer._client


async def committed_with_notes(
    consumer: AIOKafkaConsumer, places: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, str]]:
    """Return the group's committed offsets with the notes beside them."""
    answers: dict[TopicPartition, Any] = await consumer._coordinator.fetch_committed_offsets(list(places))
    return {
        place: (answer.offset, str(answer.metadata or "")) for place, answer in answers.items() if answer.offset >= 0
    }
