"""Sends observations of one model at a steady rate, for so many seconds."""

from __future__ import annotations

import time

from confluent_kafka import Producer

from benchmarks.scale.records import MODEL_ID, values
from benchmarks.scale.subjects.common import settings


def main() -> None:
    """Send, and end."""
    given = settings()
    producer = Producer({"bootstrap.servers": given["brokers"], "linger.ms": 1})
    pool = values(given["features"])
    key, sent, began = MODEL_ID.encode(), 0, time.monotonic()
    while (elapsed := time.monotonic() - began) < given["seconds"]:
        due = int(elapsed * given["per_s"])
        for _ in range(due - sent):
            producer.produce(given["topic"], pool[sent % len(pool)], key, 0)
            sent += 1
        producer.poll(0)
        time.sleep(0.002)
    producer.flush(30)


if __name__ == "__main__":
    main()
