"""Somebody who has the credentials of one of the users in docs/security.md, and does what that user may not do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from support.secure_kafka import SecureKafka, documented_acls

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.clients import client_log_muted, client_options
from attributary_agents.kafka.topics import create_topics, topic_specs
from benchmarks.hostile.lab import Found, attack

from ..lab import LOGISTIC, Lab

Try = Callable[[dict[str, Any], str], Awaitable[None]]

TIMEOUT_S = 10.0
AT_ONCE = 12
HOSTILE = ("producer", "deployer", "reader", "worker", "creator", "nobody")


@contextlib.asynccontextmanager
async def _started(client: Any) -> AsyncIterator[Any]:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await client.start()
            yield client
    finally:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())


async def _write(options: dict[str, Any], topic: str) -> None:
    async with _started(AIOKafkaProducer(**options)) as producer:
        await producer.send_and_wait(topic, b"{}", b"credit", 0)


async def _delete_record(options: dict[str, Any], topic: str) -> None:
    async with _started(AIOKafkaProducer(**options)) as producer:
        await producer.send_and_wait(topic, None, b"credit", 0)


async def _read(options: dict[str, Any], topic: str) -> None:
    consumer = AIOKafkaConsumer(**options, enable_auto_commit=False, auto_offset_reset="earliest")
    async with _started(consumer):
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.getone()


async def _open_transaction(options: dict[str, Any], topic: str) -> None:
    async with _started(AIOKafkaProducer(**options, transactional_id="hostile")) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"{}", b"credit", 0)


async def _delete_topic(options: dict[str, Any], topic: str) -> None:
    async with _started(AIOKafkaAdminClient(**options)) as admin:
        answer = await admin.delete_topics([topic])
        for _, code, *_rest in answer.topic_error_codes:
            if code:
                raise PermissionError(code)


WAYS: dict[str, Try] = {
    "write": _write,
    "delete a record of": _delete_record,
    "read": _read,
    "open a transaction on": _open_transaction,
    "delete": _delete_topic,
}

ALLOWED_BY = {"write": "Write", "delete a record of": "Write", "read": "Read"}
"""What the table grants; transactions and deletions it grants to nobody."""


@attack("principals", "credentials of each user, used for all that the user may not do")
def every_user_does_what_is_granted_and_nothing_else(lab: Lab) -> Found:
    """Try every way with every user and topic, on a broker with the documented ACLs."""
    with SecureKafka(lab.folder) as broker:
        config, users = _configure(broker)
        attempts = asyncio.run(_attempt_all(config, users))
    granted = {
        (acl.user, operation, acl.name)
        for acl in documented_acls(config.kafka.group)
        if acl.resource == "topic"
        for operation in acl.operations
    }
    wrong = [
        f"{user} could {'' if done else 'not '}{way} {topic}"
        for user, way, topic, done in attempts
        if done != ((user, ALLOWED_BY.get(way), topic) in granted)
    ]
    beyond = sum((user, ALLOWED_BY.get(way), topic) not in granted for user, way, topic, _ in attempts)
    figure = f"{beyond} attempts beyond what is granted, of {len(attempts)}; {len(wrong)} other than documented"
    return Found(f"{figure}: {'; '.join(wrong)}"[:300] if wrong else figure, held=beyond > 0 and not wrong)


def _configure(broker: SecureKafka) -> tuple[Config, dict[str, dict[str, Any]]]:
    raw: dict[str, Any] = {
        "kafka": {"brokers": [broker.at("PLAINTEXT")], "group": "hostile", "topic_prefix": "hostile", "partitions": 1},
        "models": {"credit": LOGISTIC},
    }
    config = parse_config(raw)
    create_topics(config)
    broker.allow(documented_acls("hostile"))
    at = {"brokers": [broker.at("SASL_SSL")]}
    users = {
        user: client_options(parse_config({**raw, "kafka": raw["kafka"] | at | {"security": broker.sasl(user)}}).kafka)
        for user in HOSTILE
    }
    return config, users


async def _attempt_all(config: Config, users: dict[str, dict[str, Any]]) -> list[tuple[str, str, str, bool]]:
    topics = [spec.name for spec in topic_specs(config)]
    trusted = {"bootstrap_servers": config.kafka.brokers}
    for topic in topics:
        await _write(trusted, topic)  # so that there is something to read
    few = asyncio.Semaphore(AT_ONCE)

    async def attempt(way: str, user: str, topic: str) -> tuple[str, str, str, bool]:
        async with few:
            return user, way, topic, await _is_done(WAYS[way], users[user], topic)

    found: list[tuple[str, str, str, bool]] = []
    with client_log_muted():
        for way in WAYS:  # deleting comes last: nothing else could be tried afterwards
            found += await asyncio.gather(*(attempt(way, user, topic) for user in HOSTILE for topic in topics))
    return found


async def _is_done(way: Try, options: dict[str, Any], topic: str) -> bool:
    try:
        await way(options, topic)
    except (KafkaError, TimeoutError, PermissionError):
        return False
    return True
