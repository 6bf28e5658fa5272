"""Consumes by aiokafka, the client that the worker reads with, predicts and learns: what of a worker is not its own."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer

from benchmarks.scale.subjects.common import Steps, Window, settings

AT_ONCE = 500


async def run() -> None:
    """Handle records without end."""
    given = settings()
    window, steps = Window(given["first"], given["last"]), Steps(given["model"], given["n_samples"])
    consumer = AIOKafkaConsumer(
        given["topic"], bootstrap_servers=given["brokers"], group_id=given["group"], auto_offset_reset="earliest"
    )
    async with consumer:
        while True:
            for records in (await consumer.getmany(timeout_ms=50, max_records=AT_ONCE)).values():
                for record in records:
                    assert record.key is not None
                    assert record.value is not None
                    steps(record.key, record.value)
                    window.note()


def main() -> None:
    """Run until it is ended."""
    asyncio.run(run())


if __name__ == "__main__":
    main()
