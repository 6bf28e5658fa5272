"""The changes topic as the command line sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from attributary_topics import decode_json

from .config import Config
from .kafka_clients import client_fault, client_options


async def read_changes(
    config: Config, model_id: str | None = None, last: int | None = None, *, follow: bool = False
) -> AsyncGenerator[dict[str, Any], None]:
    """Change events, in the order of their times as far as they are there, then as they come.

    Each once, though the topic may have one twice after a crash; with `id` and `time` of its headers.

    Parameters
    ----------
    model_id
        Only of this model.
    last
        Only so many of those that are there.
    follow
        Go on with those that come, for ever.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    topic = config.kafka.topics.changes
    consumer = AIOKafkaConsumer(
        topic,
        **client_options(config.kafka),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    seen: set[str] = set()
    try:
        await consumer.start()  # without a group it assigns itself every partition
        ends = await consumer.end_offsets(list(consumer.assignment()))
        found: list[Any] = []
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                found += [record for record in batch if model_id in (None, _key(record))]
        found.sort(key=lambda record: (record.partition, record.offset))
        events = _events(found, seen)
        events.sort(key=lambda event: event["time"] or "")  # the observations' own
        for event in deque(events, maxlen=last):
            yield event
        while follow:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                for event in _events([record for record in batch if model_id in (None, _key(record))], seen):
                    yield event
    except KafkaError as error:
        raise await client_fault(config.kafka, error, topic) from None
    finally:
        await consumer.stop()


def _key(record: Any) -> str:
    return (record.key or b"").decode(errors="replace")


def _events(records: list[Any], seen: set[str]) -> list[dict[str, Any]]:
    events = []
    for record in records:
        headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        if (event_id := headers.get("ce_id", f"{record.topic}:{record.partition}:{record.offset}")) not in seen:
            seen.add(event_id)
            ours = {"id": event_id, "time": headers.get("ce_time")}
            events.append({**ours, **decode_json(record.value), **ours})
    return events
