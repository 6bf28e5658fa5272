"""Correction of aiokafka's producer, `Sender` and `MessageAccumulator`.

- A batch without a leader expires after the time-out of a request, and its records are lost: no setting outlasts an
  outage without leaving requests to a broker that hangs for as long.
- A broker that is stopped in an orderly way, as each is when a cluster is updated, closes the connection on which the
  coordinator of transactions is asked for. That ends the sender: the producer then fails for ever (compare aiokafka
  issue 1151).
- The error of a sender is also set on futures that nobody awaits while a batch is not full, and the loop says "Future
  exception was never retrieved".
- A cancelled sender waits for brokers' answers, and stopping a producer for the sender.
- Which batches are unacknowledged, and what ended the sender, is not told.

True for aiokafka 0.14.0; `test_aiokafka_producer.py` says when it is mended.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.sender import Sender


class PatientSender(Sender):  # type: ignore[misc]  # aiokafka is untyped
    """Sender that asks for a coordinator again after a closed connection."""

    async def _find_coordinator(self, coordinator_type: Any, coordinator_key: str) -> Any:
        while True:
            try:
                return await super()._find_coordinator(coordinator_type, coordinator_key)
            except KafkaError as error:
                if not isinstance(error.__cause__, KafkaConnectionError):
                    raise
            await self.client.force_metadata_update()
            await asyncio.sleep(self._retry_backoff)


class QuietBatches(MessageAccumulator):  # type: ignore[misc]
    """Batches of records whose errors are told only to who awaits them."""

    def fail_all(self, exception: BaseException) -> None:
        """End all batches with an error."""
        unsent = [batch._drain_waiter for batches in self._batches.values() for batch in batches]
        super().fail_all(exception)
        for ended in unsent:
            take_note(ended)


def make_patient(producer: AIOKafkaProducer) -> AIOKafkaProducer:
    """Let a producer keep unsent records for as long as brokers are away."""
    batches = producer._message_accumulator
    # Both are made by the producer, and not ours to choose.
    batches.__class__, producer._sender.__class__ = QuietBatches, PatientSender
    batches._batch_ttl = math.inf
    return producer


def take_note(ended: asyncio.Future[object]) -> None:
    """Mark a future's error as seen, so that the loop does not log it."""
    if not ended.cancelled():
        ended.exception()


def failures(producer: AIOKafkaProducer) -> Iterator[BaseException]:
    """Yield the error that ended a producer's sender, and its cause."""
    task = producer._sender.sender_task
    if task is not None and task.done() and not task.cancelled() and (error := task.exception()) is not None:
        yield error
        if error.__cause__ is not None:
            yield error.__cause__


async def close_at_once(producer: AIOKafkaProducer) -> None:
    """Close a producer that may wait for brokers, or is closed already."""
    task = producer._sender.sender_task
    if task is not None and not task.done():
        # The sender still waits for answers when it is cancelled, and ends when it is cancelled once more.
        for _ in range(2):
            task.cancel()
            await asyncio.wait([task], timeout=0.1)
    transactions = producer._txn_manager
    ended = None if transactions is None else transactions._transaction_waiter
    if ended is not None and ended.done():
        take_note(ended)  # it has been told by a call, or is of no interest now
    producer._closed = True
    await producer.client.close()


def unacknowledged(producer: AIOKafkaProducer) -> dict[str, float]:
    """Return partitions with unacknowledged batches, since `time.monotonic`.

    Any thread may ask.
    """
    accumulator = producer._message_accumulator
    # The copies are made without a change of threads.
    waiting = [batch for queue in tuple(accumulator._batches.values()) for batch in tuple(queue)[:1]]
    since: dict[str, float] = {}
    for batch in (*waiting, *tuple(accumulator._pending_batches)):
        name = f"{batch.tp.topic}[{batch.tp.partition}]"
        since[name] = min(batch._ctime, since.get(name, math.inf))
    return since
