"""Correction of aiokafka's `GroupCoordinator`: named members (KIP-345).

- A member whose name another process has taken asks for it again: the two take it from each other for ever, for
  aiokafka does not know the error (aiokafka issue 1186). The later one keeps it here, and the earlier one ends.
- Kafka lets a member with the same name go on in the present generation of the group, of which the killed, or frozen,
  process still writes. States are told apart by generation (`state/store.py`), so that a rebalance is asked for: by
  joining twice, which no setting of Kafka or aiokafka does.

True for aiokafka 0.14.0; `test_aiokafka_coordinator.py` says when the first is mended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka import errors
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import KafkaError
from aiokafka.protocol.group import JoinGroupRequest

FENCED_INSTANCE_ID = 82
"""Kafka's error of a member whose name another one has."""

UNKNOWN = JoinGroupRequest.UNKNOWN_MEMBER_ID

_ELSEWHERE = (errors.GroupCoordinatorNotAvailableError, errors.NotCoordinatorForGroupError)
_NOT_NOW = (errors.RebalanceInProgressError, errors.UnknownMemberIdError)
"""Not retriable by aiokafka's marks; without a member id, the second one is that of a group that is being removed."""


class NamedCoordinator(GroupCoordinator):  # type: ignore[misc]  # aiokafka is untyped
    """Coordinator that joins by name, in a generation of its own.

    Attributes
    ----------
    on_fenced
        Called, in the loop of the consumer, where another process has taken the name.
    """

    on_fenced: Callable[[], None]
    _lost: str = UNKNOWN
    """The member id that the broker has not recognised; UNKNOWN where there is none."""

    def reset_generation(self) -> None:
        """Reset the generation, and remember the member id for the next claim."""
        if self.member_id != UNKNOWN:
            self._lost = self.member_id
        super().reset_generation()

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        if self.member_id == UNKNOWN and not await self._claim(subscription):
            return False
        joined: bool = await super()._do_rejoin_group(subscription)
        return joined

    async def _claim(self, subscription: Any) -> bool:
        """Become the member of our name before joining; return whether we are."""
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
