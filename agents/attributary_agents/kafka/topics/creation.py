"""Creation of missing topics, until every broker knows them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    InvalidReplicationFactorError,
    KafkaError,
    NoError,
    NotControllerError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from ...config.settings import Config, KafkaConfig
from ...errors import PreflightError
from ..admin import with_admin
from ..upstream.aiokafka_admin import client_of_admin
from .answers import Answer, ask_until, has_controller, nodes
from .checks import AGAIN, Seen, check_topics, no_controller, partition_faults, see
from .specs import MOST_REPLICAS, TopicSpec, topic_specs, wanted_min_insync

CREATED_WITHIN_S = 30.0
"""Longest wait, in seconds, for a controller that takes requests."""

KNOWN_WITHIN_S = 30.0
"""Longest wait, in seconds, until every broker knows what has been created."""

_OTHERWISE_S = 60.0
"""Longest time, in seconds, for the connection and for what brokers are asked beside these waits."""

_NOT_NOW = (NotControllerError.errno, RequestTimedOutError.errno, 89)  # THROTTLING_QUOTA_EXCEEDED


@dataclass(frozen=True)
class Replication:
    """Number of replicas of a partition, and how many a write needs.

    A record counts as written once that many replicas have it.
    """

    replicas: int
    min_insync: int


def create_topics(config: Config) -> list[tuple[TopicSpec, bool]]:
    """Create missing topics; return every topic with whether it is new.

    At the return every broker that is up knows all of them, with their leaders and settings. Nothing is created where a
    topic that is there has the wrong number of partitions.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse, a topic that is there cannot be used, or a broker does not know what
        has been created after KNOWN_WITHIN_S.
    """

    async def work(admin: AIOKafkaAdminClient) -> list[tuple[TopicSpec, bool]]:
        specs, seen = topic_specs(config), await see(admin, config)
        if seen.silent and not await has_controller(admin, seen.answers):
            raise PreflightError(f"{no_controller(seen)}; run it again then")
        if wrong := [
            fault for spec in specs if spec.name in seen.found for fault in partition_faults(config, spec.name, seen)
        ]:
            raise PreflightError("; ".join(wrong))
        possible = list(_possible(config.kafka))
        made: dict[str, dict[str, str]] = {}
        for spec in specs:
            if spec.name in seen.missing and (settings := await _create(admin, config, spec, possible)) is not None:
                made[spec.name] = settings
        await _wait_until_known(admin, specs, made)
        return [(spec, spec.name in made) for spec in specs]

    # As long as all of it may take, so that each wait ends with what it has waited for.
    within_s = CREATED_WITHIN_S * len(topic_specs(config)) + KNOWN_WITHIN_S + _OTHERWISE_S
    created = with_admin(config.kafka, work, within_s=within_s)
    check_topics(config)
    return created


def few_replicas(config: Config, replicas: int) -> str:
    """Return a remark on new topics with few replicas, or empty text.

    In a cluster that starts, the controller counts the brokers that have registered so far.
    """
    if config.kafka.replication_factor or replicas >= MOST_REPLICAS:
        return ""
    brokers, have = ("1 broker", "1 replica") if replicas == 1 else (f"{replicas} brokers", f"{replicas} replicas")
    return (
        f"the cluster has {brokers} now, so each partition has {have}; where more brokers will come, set "
        f"kafka.replication_factor: {MOST_REPLICAS}: topics are created then when there are so many"
    )


def _possible(kafka: KafkaConfig) -> Iterator[Replication]:
    """Yield the replications that the configuration allows, largest first.

    The controller knows how many there can be: it counts brokers that are away for a moment, and metadata do not.
    """
    numbers = [kafka.replication_factor] if kafka.replication_factor else range(MOST_REPLICAS, 0, -1)
    for replicas in numbers:
        how = Replication(replicas, wanted_min_insync(kafka, replicas))
        if how.min_insync <= how.replicas:
            yield how


async def _create(
    admin: AIOKafkaAdminClient, config: Config, spec: TopicSpec, possible: list[Replication]
) -> dict[str, str] | None:
    """Create a topic with as many replicas as the cluster allows.

    Its settings are returned; None where it is there already. What the cluster does not allow is taken out of
    `possible`.
    """
    while possible:
        how = possible[0]
        settings = {**spec.settings, "min.insync.replicas": str(how.min_insync)}
        topic = NewTopic(spec.name, spec.partitions, how.replicas, topic_configs=settings)
        code, message = await _request(admin, topic)
        if code == NoError.errno:
            return settings
        if code == TopicAlreadyExistsError.errno:
            return None
        if code != InvalidReplicationFactorError.errno:
            raise PreflightError(f"the broker refused to create {spec.name}: {message or code}")
        if len(possible) == 1:
            raise PreflightError(f"{spec.name} cannot be created: {_too_few(config.kafka, how)} ({message or code})")
        possible.pop(0)
    raise AssertionError("the configuration allows at least one number of replicas")


def _too_few(kafka: KafkaConfig, how: Replication) -> str:
    if kafka.replication_factor:
        return (
            f"the cluster has fewer brokers than kafka.replication_factor, {how.replicas}: start what is missing, "
            "set it to the number of brokers, or leave it out to take as many replicas as there can be, at most 3"
        )
    return (
        f"the cluster has fewer brokers than kafka.min_insync_replicas, {how.min_insync}, needs: start what is "
        "missing, or set it to the number of brokers or less"
    )


async def _request(admin: AIOKafkaAdminClient, topic: NewTopic) -> tuple[int, str | None]:
    """Ask the controller to create a topic; return its code and message."""
    now = asyncio.get_running_loop().time
    deadline, code, message = now() + CREATED_WITHIN_S, 0, None
    is_repeated = False
    while True:
        await nodes(admin)  # who is the controller now
        client = client_of_admin(admin)
        controller = client.cluster.controller
        if controller is not None and await client.ready(controller.nodeId):
            try:
                answer = await admin.create_topics([topic])
            except (KafkaError, OSError, TimeoutError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                code, message = RequestTimedOutError.errno, "the controller did not answer"
            else:
                code, *rest = answer.topic_errors[0][1:]
                message = rest[0] if rest else None
            if code == TopicAlreadyExistsError.errno and is_repeated:
                return NoError.errno, None  # the request before this one has created it after all
            if code not in _NOT_NOW:
                return code, message
            is_repeated = True
        if now() > deadline:
            raise PreflightError(
                f"{topic.name} cannot be created, the cluster has had no controller for {CREATED_WITHIN_S:.0f} s"
                f"{f' ({message})' if message else ''}: more than half of its controllers must be up; run it again then"
            )
        await asyncio.sleep(0.2)


async def _wait_until_known(
    admin: AIOKafkaAdminClient, specs: list[TopicSpec], made: dict[str, dict[str, str]]
) -> None:
    names = {spec.name for spec in specs}

    def lacks(answer: Answer) -> dict[str, str]:
        """Return the topics that a broker does not tell in full, and why."""
        lacking = {name: answer.untold.get(name, _NOT_TOLD) for name in names - answer.found.keys() - answer.hidden}
        for name, topic in answer.found.items():
            if topic.leaderless:
                lacking[name] = f"{len(topic.leaderless)} partitions without a leader"
            wanted = made.get(name, {})
            if any(topic.settings.get(key, value) != value for key, value in wanted.items()):
                lacking[name] = "other settings"
        return lacking

    def is_known(answers: list[Answer]) -> bool:
        return not any(answer.fault or lacks(answer) for answer in answers)

    answers = await ask_until(admin, names, is_known, KNOWN_WITHIN_S)
    if not is_known(answers):
        untold = [Answer(answer.node, untold=lacks(answer), fault=answer.fault) for answer in answers]
        made_now = f"created {', '.join(sorted(made))}; " if made else ""
        raise PreflightError(
            f"{made_now}not every broker tells all topics after {KNOWN_WITHIN_S:.0f} s: "
            f"{'; '.join(Seen(untold).not_told(names))}. Nothing has to be undone: {AGAIN}"
        )


_NOT_TOLD = str(UnknownTopicOrPartitionError.message)
