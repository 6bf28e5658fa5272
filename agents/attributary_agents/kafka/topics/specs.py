"""Says which topics a worker needs, with which settings."""

from __future__ import annotations

from dataclasses import dataclass

from ...config.settings import Config, KafkaConfig

DAY_MS = 86_400_000

MOST_REPLICAS = 3
"""Replicas of a partition where the configuration names no number and there are brokers enough."""

# Only closed segments are compacted, and a restart reads all that is left. So segments are closed after 20 s, which
# keeps a small state's changelog small, or when they are full, which keeps a large one's; of a large one they are
# still large enough for few files. The ratio is how much may be left of older states before it is all copied anew.
CHANGELOG_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    "segment.ms": "20000",
    "min.cleanable.dirty.ratio": "0.3",
}


MAPPERS = 8
"""Partitions of the sources topic: as many processes can map sources at a time."""


@dataclass(frozen=True)
class TopicSpec:
    """Name, partitions and settings that a topic should have."""

    name: str
    partitions: int
    settings: dict[str, str]
    purpose: str
    is_needed: bool = True
    """Whether a worker needs it; without the others it goes on, and says so."""


def topic_specs(config: Config) -> list[TopicSpec]:
    """Return every topic that the configuration needs, with its settings."""
    kafka, topics = config.kafka, config.kafka.topics
    # A dead letter carries the original record, which may be as large as its topic allows. An event has every feature:
    # of thousands it is larger than Kafka's default of 1 MB, and refused it stops the worker.
    large = {"max.message.bytes": str(kafka.max_record_bytes)}
    month, year = {"retention.ms": str(30 * DAY_MS)}, {"retention.ms": str(365 * DAY_MS)}
    # Importances are not compacted: several explainers share a model id, and compaction would keep one of them.
    wanted = [
        (topics.observations, {"max.message.bytes": "4194304"}, "in: observations with labels"),
        (
            topics.models,
            {"cleanup.policy": "compact"},
            "in: new versions; who may write here may replace models",
        ),
        (topics.importances, {**large, **month}, "out: importance"),
        (topics.incidents, {**large, **year}, "out: incidents, one story per change of a model"),
        (topics.dead_letters, {**large, **month}, "out: records that could not be used"),
        (kafka.changelog, CHANGELOG_SETTINGS, "state of every model"),
    ]
    if config.sharded:
        week = {"retention.ms": str(7 * DAY_MS)}
        wanted.append((kafka.shards, {**large, **week}, "internal: importance of the shards of sharded models"))
    # Few and small: a segment is closed after an hour, and of each model the last record is left.
    status = {"cleanup.policy": "compact", "segment.ms": "3600000"}
    specs = [
        *(TopicSpec(name, kafka.partitions, settings, purpose) for name, settings, purpose in wanted),
        TopicSpec(topics.status, kafka.partitions, status, "out: how each model is doing", is_needed=False),
    ]
    if config.direct is not None:  # that topic is not ours
        return [spec for spec in specs if spec.name != topics.observations]
    if config.sources:
        specs.append(TopicSpec(topics.sources, MAPPERS, {}, "internal: which process maps which source"))
    return specs


def wanted_replicas(kafka: KafkaConfig, n_brokers: int) -> int:
    """Return how many replicas a partition should have among brokers."""
    return kafka.replication_factor or min(MOST_REPLICAS, n_brokers)


def wanted_min_insync(kafka: KafkaConfig, replicas: int) -> int:
    """Return how many of the replicas must have a record that is written.

    The record counts as written only then. Two of three: with one, what has been acknowledged is lost with one disk;
    with three, one broker that is away stops every write.
    """
    return kafka.min_insync_replicas or (2 if replicas >= MOST_REPLICAS else 1)
