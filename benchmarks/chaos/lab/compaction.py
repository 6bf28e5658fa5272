"""Compaction within seconds, where Kafka's defaults take days."""

from __future__ import annotations

from support.kafka import alter_topic

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
    name = fleet.config.kafka.changelog
    settings = next(spec.settings for spec in topic_specs(fleet.config) if spec.name == name)
    alter_topic(fleet.bootstrap, name, {**settings, **SETTINGS})
