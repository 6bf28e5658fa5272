"""Work by an admin client, and questions about consumer groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaError,
    NotCoordinatorForGroupError,
    for_code,
)

from ..config.settings import Config, KafkaConfig
from ..errors import BrokersAwayError
from .clients import client_fault, client_log_muted, client_options, first_to_answer

T = TypeVar("T")

COORDINATOR_WITHIN_S = 15.0
"""Longest wait for the coordinator of a group."""

_NOT_YET = (GroupCoordinatorNotAvailableError, GroupLoadInProgressError, NotCoordinatorForGroupError)


def with_admin(kafka: KafkaConfig, work: Callable[[AIOKafkaAdminClient], Awaitable[T]], *, within_s: float = 30.0) -> T:
    """Run `work` with an admin client.

    Parameters
    ----------
    within_s
        Longest time, in seconds, for the connection and the work; to find out what is wrong may take 10 s more.

    Raises
    ------
    ConfigError
        A file of kafka.security cannot be used.
    PreflightError
        No broker answers, or it refuses, or the time is over.
    """

    async def run() -> T:
        # One that hangs would be waited for before the next one is asked.
        options = client_options(kafka) | {"bootstrap_servers": await first_to_answer(kafka)}
        admin = AIOKafkaAdminClient(**options, request_timeout_ms=10_000)
        try:
            await admin.start()
            return await work(admin)
        finally:
            await admin.close()

    async def bounded() -> T:
        try:
            async with asyncio.timeout(within_s):
                return await run()
        except TimeoutError as error:
            fault = await client_fault(kafka, error)
            if isinstance(fault, BrokersAwayError) and fault.answer:
                told = f"the brokers answer, but not all that was asked within {within_s:.0f} s"
                fault = BrokersAwayError(f"{', '.join(kafka.brokers)}: {told}: run it again", told)
            raise fault from None
        except (KafkaError, OSError) as error:
            raise await client_fault(kafka, error) from None

    with client_log_muted():
        return asyncio.run(bounded())


def check_group(config: Config) -> None:
    """Check that the brokers show the consumer group to this user.

    Where they hide it PreflightError is raised: a worker would wait for ever.

    The first group of a new cluster has no coordinator yet: it is waited for, up to COORDINATOR_WITHIN_S. A worker that
    began at once would log the client's errors about that. Whatever is wrong for longer is for the worker to log.
    """

    async def work(admin: AIOKafkaAdminClient) -> None:
        deadline = asyncio.get_running_loop().time() + COORDINATOR_WITHIN_S
        while not await _is_coordinated(admin, config.kafka.group):
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(0.1)

    with_admin(config.kafka, work)


async def _is_coordinated(admin: AIOKafkaAdminClient, group: str) -> bool:
    """Return whether the group has a coordinator that has loaded its data."""
    try:
        answers = await admin.describe_consumer_groups([group])
    except GroupAuthorizationFailedError:
        raise GroupAuthorizationFailedError(group) from None
    except _NOT_YET:
        return False
    codes = [described[0] for answer in answers for described in answer.groups]
    return not any(code in [error.errno for error in _NOT_YET] for code in codes)


def count_members(kafka: KafkaConfig) -> int:
    """Count the members of the configured consumer group.

    They are its workers, and the workers that were killed just now.

    Raises
    ------
    PreflightError
        No broker answers, or it refuses.
    """

    async def work(admin: AIOKafkaAdminClient) -> int:
        try:
            answers = await admin.describe_consumer_groups([kafka.group])
        except GroupCoordinatorNotAvailableError:  # the first group of a new cluster
            return 0
        n = 0
        for code, *_, members in (group[:6] for answer in answers for group in answer.groups):
            if code:
                raise for_code(code)(kafka.group)
            n += len(members)
        return n

    return with_admin(kafka, work)
