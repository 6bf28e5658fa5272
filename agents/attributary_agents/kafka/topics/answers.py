"""Answers of each broker about the topics that it knows.

They are asked one by one: a broker that has not heard of a topic yet tells nothing of it. The controller creates a
topic; each broker hears of it on its own, a moment later, and a broker that was away later still. Until then it answers
UNKNOWN_TOPIC_OR_PARTITION, or tells partitions that have no leader yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    NodeNotReadyError,
    NoError,
    NotControllerError,
    ReplicaNotAvailableError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.admin import CreateTopicsRequest, DescribeConfigsRequest
from aiokafka.protocol.metadata import MetadataRequest

from ..upstream.aiokafka_admin import client_of_admin

ANSWER_WITHIN_S = 5.0
"""Longest wait for one broker's answer."""

_MOST_PAUSE_S = 0.5


@dataclass(frozen=True, order=True)
class Node:
    """A broker of the cluster."""

    number: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.number} ({self.host}:{self.port})"


@dataclass(frozen=True)
class FoundTopic:
    """A topic as a broker tells it; settings only where they may be read."""

    replicas: dict[int, tuple[int, ...]]
    """Numbers of the brokers that have a replica, by partition; the first is preferred as the leader."""
    in_sync: dict[int, tuple[int, ...]]
    """Those of them that are in sync."""
    leaderless: tuple[int, ...] = ()
    """Partitions that have no leader: they can neither be read nor written."""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self.replicas)

    @property
    def least_replicas(self) -> int:
        """Fewest replicas of a partition."""
        return min(map(len, self.replicas.values()))

    @property
    def least_in_sync(self) -> int:
        """Fewest replicas of a partition that are in sync."""
        return min(map(len, self.in_sync.values()))

    @property
    def min_insync(self) -> int | None:
        """Number of replicas that a write needs; None where it is not told."""
        value = self.settings.get("min.insync.replicas")
        return None if value is None else int(value)


@dataclass(frozen=True)
class Answer:
    """Answer of a broker about the topics that it was asked about."""

    node: Node
    found: dict[str, FoundTopic] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)
    """Why it told nothing, by topic, in Kafka's words."""
    hidden: frozenset[str] = frozenset()
    """Topics of which this user may not hear."""
    fault: str = ""
    """Why it did not answer at all."""

    @property
    def unknown(self) -> set[str]:
        """Topics of which this broker has not heard."""
        return {name for name, why in self.untold.items() if why == _says(UnknownTopicOrPartitionError.errno)}

    def settled(self) -> Any:
        """Return the part of the answer that must be equal at all brokers.

        That is which topics there are, with their numbers of partitions and settings, and why others are not told.
        """
        return (
            {name: (topic.partitions, topic.settings) for name, topic in self.found.items()},
            self.untold,
            self.hidden,
            self.fault,
        )


async def nodes(admin: AIOKafkaAdminClient) -> list[Node]:
    """Return the brokers that are up; the broker that tells them is first.

    It is the broker that answers first.

    Raises
    ------
    NodeNotReadyError
        None of them answers.
    """
    cluster = client_of_admin(admin).cluster
    waiting = {asyncio.ensure_future(_metadata(admin, broker.nodeId)) for broker in cluster.brokers()}
    try:
        while waiting:  # until the first answers: one that hangs holds nothing up
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            answers = {number: answer for number, answer in (task.result() for task in done) if answer is not None}
            if answers:
                first = min(answers)
                cluster.update_metadata(answers[first])
                found = [Node(broker.nodeId, broker.host, broker.port) for broker in cluster.brokers()]
                return sorted(found, key=lambda node: (node.number != first, node))
    finally:
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    raise NodeNotReadyError("no broker of the cluster answers")


async def _metadata(admin: AIOKafkaAdminClient, number: int) -> tuple[int, Any]:
    """Return a broker's number and metadata; None as metadata if silent."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return number, await client_of_admin(admin).send(number, MetadataRequest([]))
    except (KafkaError, OSError, TimeoutError):
        return number, None


async def has_controller(admin: AIOKafkaAdminClient, answers: Sequence[Answer]) -> bool:
    """Return whether the cluster has a controller.

    It alone knows who is up and which replicas are in sync. A broker that has lost it goes on telling what it heard
    last, so something is asked that the controller answers: a topic that is checked and not created. To be refused is
    an answer, too.
    """
    up = [answer.node.number for answer in answers if not answer.fault]
    if not up:
        return False
    named = client_of_admin(admin).cluster.controller
    number = named.nodeId if named is not None and named.nodeId in up else up[0]
    request = CreateTopicsRequest(
        [("attributary", 1, 1, [], [])], timeout=int(ANSWER_WITHIN_S * 1000), validate_only=True
    )
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            answer = await client_of_admin(admin).send(number, request)
    except IncompatibleBrokerVersion:  # an old broker, which cannot be asked this
        return True
    except (KafkaError, OSError, TimeoutError):
        return False
    code = answer.topic_errors[0][1]
    return code not in (NotControllerError.errno, RequestTimedOutError.errno)


async def ask(admin: AIOKafkaAdminClient, node: Node, names: Collection[str]) -> Answer:
    """Ask a broker about topics; failures are part of the answer."""
    client = client_of_admin(admin)
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            # By name, and so that it creates none of them.
            request = MetadataRequest(list(names), allow_auto_topic_creation=False)
            metadata = (await client.send(node.number, request)).to_object()
            asked = [(ConfigResourceType.TOPIC, name, None) for name in names]
            settings = await client.send(node.number, DescribeConfigsRequest(asked))
    except (KafkaError, OSError, TimeoutError) as error:
        return Answer(node, fault=_reason(error))
    resources = {name: (code, entries) for code, _said, _type, name, entries in settings.resources}
    found: dict[str, FoundTopic] = {}
    untold: dict[str, str] = {}
    hidden = set()
    for topic in metadata["topics"]:
        name, code = topic["topic"], topic["error_code"]
        configs_code, entries = resources.get(name, (UnknownTopicOrPartitionError.errno, []))
        if code == TopicAuthorizationFailedError.errno:
            hidden.add(name)
        elif code or not topic["partitions"]:
            untold[name] = _says(code or UnknownTopicOrPartitionError.errno)
        elif configs_code not in (NoError.errno, TopicAuthorizationFailedError.errno):
            untold[name] = _says(configs_code)
        else:
            found[name] = _found(topic["partitions"], {entry[0]: entry[1] for entry in entries})
    for name in set(names) - found.keys() - untold.keys() - hidden:
        untold[name] = _says(UnknownTopicOrPartitionError.errno)
    return Answer(node, found, untold, frozenset(hidden))


def _found(partitions: Iterable[dict[str, Any]], settings: dict[str, str]) -> FoundTopic:
    by_number = {part["partition"]: part for part in partitions}
    fine = (NoError.errno, ReplicaNotAvailableError.errno)
    return FoundTopic(
        {number: tuple(part["replicas"]) for number, part in sorted(by_number.items())},
        {number: tuple(part["isr"]) for number, part in sorted(by_number.items())},
        tuple(
            number for number, part in sorted(by_number.items()) if part["leader"] < 0 or part["error_code"] not in fine
        ),
        settings,
    )


def _says(code: int) -> str:
    error = for_code(code)
    return str(error.message) if error.errno == code else f"error {code}"


def _reason(error: BaseException) -> str:
    return "it does not answer" if isinstance(error, TimeoutError | NodeNotReadyError) else type(error).__name__


async def ask_every(admin: AIOKafkaAdminClient, names: Collection[str]) -> list[Answer]:
    """Ask every broker that is up about topics, in the order of their numbers."""
    return list(await asyncio.gather(*(ask(admin, node, names) for node in sorted(await nodes(admin)))))


async def ask_until(
    admin: AIOKafkaAdminClient, names: Collection[str], is_done: Callable[[list[Answer]], bool], within_s: float
) -> list[Answer]:
    """Ask every broker until all is done; return the last answers."""
    now = asyncio.get_running_loop().time
    deadline, pause = now() + within_s, 0.05
    while True:
        answers = await ask_every(admin, names)
        if is_done(answers) or now() + pause > deadline:
            return answers
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MOST_PAUSE_S)


def agree(answers: list[Answer]) -> bool:
    """Return whether all brokers have answered, and tell the same."""
    first, *others = (answer.settled() for answer in answers)
    return not any(answer.fault for answer in answers) and all(other == first for other in others)
