"""Lists, creates and checks the topics that a worker needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError

from ..config.settings import Config
from ..errors import PreflightError
from .admin import with_admin

DAY_MS = 86_400_000

RECORD_BYTES = 1_000_000
"""Longest record of the changelog, generously, with key and head; brokers take 1 048 588 by default."""

KNOWN_WITHIN_S = 20.0
"""Longest wait for a created topic to be listed; less than `with_admin` allows in all."""


@dataclass(frozen=True)
class TopicSpec:
    """One topic as it should be."""

    name: str
    partitions: int
    settings: dict[str, str]
    purpose: str


def topic_specs(config: Config) -> list[TopicSpec]:
    """Return every topic that the configuration needs, with the settings that it needs."""
    kafka, topics = config.kafka, config.kafka.topics
    # A dead letter carries the original record, which may be as large as its topic allows. An event has every feature:
    # of thousands it is larger than Kafka's default of 1 MB, and refused it stops the worker.
    large = {"max.message.bytes": str(kafka.max_record_bytes)}
    # Only closed segments are compacted, and a restart reads all that is left: small ones, cleaned early.
    compacted = {
        "cleanup.policy": "compact",
        "segment.bytes": str(64 * 1024 * 1024),
        "min.cleanable.dirty.ratio": "0.2",
    }
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
        (topics.changes, {**large, **year}, "out: explained model changes"),
        (topics.dead_letters, {**large, **month}, "out: records that could not be used"),
        (kafka.changelog, compacted, "state of every model"),
    ]
    return [TopicSpec(name, kafka.partitions, settings, purpose) for name, settings, purpose in wanted]


def create_topics(config: Config) -> list[tuple[TopicSpec, bool]]:
    """Create what is missing; return every topic with whether it was created now.

    Raises
    ------
    PreflightError
        The broker cannot be reached or refuses, or a topic that exists has the wrong number of partitions.
    """

    async def work(admin: AIOKafkaAdminClient) -> list[tuple[TopicSpec, bool]]:
        created = []
        for spec in topic_specs(config):
            topic = NewTopic(spec.name, spec.partitions, config.kafka.replication_factor, topic_configs=spec.settings)
            response = await admin.create_topics([topic])
            code, *rest = response.topic_errors[0][1:]
            if code not in (0, TopicAlreadyExistsError.errno):
                raise PreflightError(f"the broker refused to create {spec.name}: {rest[0] if rest else code}")
            created.append((spec, code == 0))
        await _wait_until_known(admin, {spec.name for spec, _ in created})
        return created

    created = with_admin(config.kafka, work)
    check_topics(config)
    return created


async def _wait_until_known(admin: AIOKafkaAdminClient, names: set[str]) -> None:
    # The controller creates a topic; the brokers that are asked about it hear of it a moment later.
    deadline = asyncio.get_running_loop().time() + KNOWN_WITHIN_S
    while unknown := names - set(await admin.list_topics()):
        if asyncio.get_running_loop().time() > deadline:
            raise PreflightError(f"the broker does not list {', '.join(sorted(unknown))}, which it says it created")
        await asyncio.sleep(0.05)


@dataclass(frozen=True)
class FoundTopic:
    """One topic as it is; no settings where the broker did not tell them."""

    partitions: int
    settings: dict[str, str]


def found_topics(config: Config) -> dict[str, FoundTopic]:
    """Ask the brokers which of the needed topics exist; return them by name, as they are."""

    async def work(admin: AIOKafkaAdminClient) -> dict[str, FoundTopic]:
        # Asked for by name a broker may create them; the whole list it only lists.
        there = set(await admin.list_topics())
        names = [spec.name for spec in topic_specs(config) if spec.name in there]
        if not names:
            return {}
        counts = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics(names)}
        asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        (answer,) = await admin.describe_configs(asked)
        settings = {
            name: {entry[0]: entry[1] for entry in entries}
            for _code, _message, _type, name, entries in answer.resources
        }
        return {name: FoundTopic(counts[name], settings[name]) for name in names}

    return with_admin(config.kafka, work)


def check_topics(config: Config, only: str | None = None) -> None:
    """Raise PreflightError, naming every fault, unless the topics exist and can hold what they must.

    Parameters
    ----------
    only
        Name of the one topic to check; None checks all.
    """
    found = found_topics(config)
    specs = [spec for spec in topic_specs(config) if only in (None, spec.name)]
    missing = [spec.name for spec in specs if spec.name not in found]
    # Kafka shows a user only the topics that it may describe.
    hint = "" if config.kafka.security.protocol == "PLAINTEXT" else ", or let this user describe them"
    make = f"(make them with `attributary topics create`{hint})"
    faults = [f"missing topics: {', '.join(missing)} {make}"] if missing else []
    for spec in specs:
        if spec.name in found:
            faults += _faults(config, spec, found[spec.name])
    if faults:
        raise PreflightError("; ".join(faults))


def _faults(config: Config, spec: TopicSpec, found: FoundTopic) -> Iterator[str]:
    observations, changelog = config.kafka.topics.observations, config.kafka.changelog
    wrong = f"{spec.name} has {found.partitions} partitions, kafka.partitions is {config.kafka.partitions}"
    if spec.name == observations and found.partitions != spec.partitions:
        yield f"{wrong}: set kafka.partitions to {found.partitions}"
    if spec.name == config.kafka.topics.models and found.partitions != spec.partitions:
        yield (f"{wrong}: it must have as many as {observations}; delete it and run `attributary topics create`")
    if spec.name == changelog and found.partitions != spec.partitions:
        yield (
            f"{wrong}: it must have as many as {observations}; delete it (the state in it is lost) and run "
            "`attributary topics create`"
        )
    if spec.name == changelog and "compact" not in found.settings.get("cleanup.policy", "compact"):
        yield f"{spec.name} is not compacted, so it would lose states: set its cleanup.policy to compact"
    # A record above the topic's limit is refused when it is written, which stops the worker then.
    limit = found.settings.get("max.message.bytes")
    needed = spec.settings.get("max.message.bytes")
    if spec.name != observations and limit and needed and int(limit) < int(needed):
        yield (
            f"{spec.name} takes records of {limit} bytes, kafka.max_record_bytes is {needed}: set its "
            f"max.message.bytes to {needed}, or kafka.max_record_bytes to {limit}"
        )
    if spec.name == changelog and limit and int(limit) < RECORD_BYTES:
        yield f"{spec.name} takes records of {limit} bytes: set its max.message.bytes to {RECORD_BYTES} or more"
