"""Membership in the consumer group under a name, for a single process.

`kafka.instance_id` is the name; one process at a time has it.

A member with a name takes its partitions again as soon as it is back, since the group need not wait for the session of
the killed process. Two things of aiokafka 0.14.0 and Kafka would break what delivery rests on:

- Kafka lets a member with the same name go on in the present generation of the group, of which the killed, or frozen,
  process still writes. States are told apart by generation (`state/store.py`), so that a rebalance is asked for.
- A process whose name another one has taken asks for it again: the two would take it from each other for ever. The
  later one keeps it here, and the earlier one ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka import errors
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import KafkaError
from aiokafka.protocol.group import JoinGroupRequest

from ..config.settings import Config, KafkaConfig
from ..errors import PreflightError
from .admin import with_admin

logger = logging.getLogger(__name__)

FENCED_INSTANCE_ID = 82
"""Kafka's error of a member whose name another one has; aiokafka does not know it."""

UNKNOWN = JoinGroupRequest.UNKNOWN_MEMBER_ID

_ELSEWHERE = (errors.GroupCoordinatorNotAvailableError, errors.NotCoordinatorForGroupError)
_NOT_NOW = (errors.RebalanceInProgressError, errors.UnknownMemberIdError)
"""Not retriable by aiokafka's marks; without a member id, the second one is that of a group that is being removed."""


class NamedCoordinator(GroupCoordinator):  # type: ignore[misc]  # aiokafka is untyped
    """Coordinator that joins the group under a name.

    It joins in a generation of its own, and stops asking where another process has the name.

    Attributes
    ----------
    on_fenced
        Called, in the loop of the consumer, where another process has taken the name.
    """

    on_fenced: Callable[[], None]
    _lost: str = UNKNOWN
    """The member id that the broker has not recognised; UNKNOWN where there is none."""

    def reset_generation(self) -> None:
        """Reset the generation, and remember the member id.

        By the id the broker can say whether another process has the name now.
        """
        if self.member_id != UNKNOWN:
            self._lost = self.member_id
        super().reset_generation()

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        if self.member_id == UNKNOWN and not await self._claim(subscription):
            return False
        joined: bool = await super()._do_rejoin_group(subscription)
        return joined

    async def _claim(self, subscription: Any) -> bool:
        """Become the member of our name before joining; return whether we are.

        Joining as that member begins a new generation.
        """
        asked, self._lost = self._lost, UNKNOWN
        try:
            response = await self._send_req(self._request(subscription, asked))
        except KafkaError:
            self._lost = asked
            await asyncio.sleep(self._retry_backoff_ms / 1000)
            return False
        if response.error_code == FENCED_INSTANCE_ID:
            self.on_fenced()
            await self._closing
            return False
        if asked != UNKNOWN and errors.for_code(response.error_code) is errors.UnknownMemberIdError:
            return await self._claim(subscription)  # nobody has it: our session was over
        if response.error_code:
            self._lost = asked
            await self._deal_with(errors.for_code(response.error_code))
            return False
        self.member_id = response.member_id
        return True

    async def _deal_with(self, error: type[KafkaError]) -> None:
        """Wait where the claim may succeed in a moment.

        It is not left to upstream to join and meet the same error: where it has passed by then, joining without a
        member id would succeed, in the present generation.

        Raises
        ------
        KafkaError
            The claim will not succeed.
        """
        if not (error.retriable or error in _NOT_NOW):
            raise error(self.group_id)
        if error in _ELSEWHERE:
            self.coordinator_dead()
        await asyncio.sleep(self._retry_backoff_ms / 1000)

    def _request(self, subscription: Any, member_id: str) -> JoinGroupRequest:
        protocols = []
        for assignor in self._assignors:
            metadata = assignor.metadata(subscription.topics)
            # In another order than when we join: what has not changed would begin no generation.
            metadata.subscription.reverse()
            protocols.append((assignor.name, metadata.encode()))
        return JoinGroupRequest(
            self.group_id,
            self._session_timeout_ms,
            self._rebalance_timeout_ms,
            member_id,
            self._group_instance_id,
            ConsumerProtocol.PROTOCOL_TYPE,
            protocols,
        )


def client_id(pid: int | None = None, host: str = "") -> str:
    """Return the client id of a named worker: its host and process.

    By it the next worker knows whether it comes in this one's place.
    """
    pid = os.getpid() if pid is None else pid
    start = _start(pid)
    return f"attributary-{_host(host)}-{pid}{f'.{start}' if start else ''}"


def _host(name: str = "") -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name or socket.gethostname())


def _start(pid: int) -> str:
    """Return a process's start in the kernel's ticks; empty if not known.

    It is known on Linux only.
    """
    try:
        # The second field is the name of the program, which may hold blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def fenced(kafka: KafkaConfig) -> str:
    """Return the message of a worker whose name another worker has taken."""
    return (
        f"another worker has joined the group {kafka.group} as kafka.instance_id {kafka.instance_id!r}, and has this "
        "one's partitions: this one ends, nothing is lost. Give each worker a name of its own: in Kubernetes, that of "
        "a StatefulSet's pod"
    )


def check_name(config: Config) -> None:
    """Check that no worker elsewhere is a member under our name.

    Otherwise PreflightError is raised: we would take its partitions. One of the same host is one that we come in place
    of, unless its process is still there.
    """
    kafka = config.kafka
    name = kafka.instance_id
    if name is None:
        return

    async def work(admin: Any) -> list[tuple[str, str, str]]:
        answers = await admin.describe_consumer_groups([kafka.group])
        return [member[:3] for answer in answers for group in answer.groups for member in group[5]]

    for member_id, its_client, address in with_admin(kafka, work):
        # Kafka makes the ids of members with names of the name and a UUID.
        if member_id[:-36] == f"{name}-" and _is_another(its_client):
            raise PreflightError(
                f"kafka.instance_id: {name!r} is a member of the group {kafka.group} already: {its_client} at "
                f"{address.lstrip('/')}. Give each worker a name of its own (in Kubernetes, that of a StatefulSet's "
                f"pod), and keep name and host name together. Where that worker has ended, the name is free "
                f"{kafka.session_timeout_s:g} s later (kafka.session_timeout_s)"
            )


def _is_another(its_client: str) -> bool:
    """Return whether a client is another worker that may still run.

    It is on another host, or is another process of this host that is still there.
    """
    match = re.fullmatch(r"attributary-(?P<host>.+)-(?P<pid>\d+)(?:\.(?P<start>\d+))?", its_client)
    if match is None:
        return False  # no worker of this release: nothing is known of it
    pid, start = int(match["pid"]), match["start"]
    if match["host"] != _host():
        return True
    if pid == os.getpid():  # a container's first process, started again
        return False
    if start and (now := _start(pid)) and now != start:
        return False  # its number has been given to another process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
