"""Compaction within seconds, where Kafka's defaults take days."""

from __future__ import annotations

import asyncio

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from attributary_agents.kafka.topics import topic_specs
from benchmarks.chaos.lab.fleet import Fleet

SEGMENT_BYTES = 1_048_576
"""The smallest that Kafka allows."""

SETTINGS = {
    "segment.bytes": str(SEGMENT_BYTES),
    "segment.ms": "5000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "5000",
    "delete.retention.ms": "1000",
    "file.delete.delay.ms": "1000",
}


def compact_soon(fleet: Fleet) -> None:
    """Let the changelog be compacted every few seconds."""
    asyncio.run(_alter(fleet))


async def _alter(fleet: Fleet) -> None:
    name = fleet.config.kafka.changelog
    settings = next(spec.settings for spec in topic_specs(fleet.config) if spec.name == name)
    admin = AIOKafkaAdminClient(bootstrap_servers=fleet.bootstrap)
    await admin.start()
    try:  # this request replaces all settings of the topic
        resource = ConfigResource(ConfigResourceType.TOPIC, name, configs={**settings, **SETTINGS})
        for response in await admin.alter_configs({resource: resource}):
            if any(code for code, *_ in response.resources):
                raise RuntimeError(f"{name}: {response.resources}")
    finally:
        await admin.close()
