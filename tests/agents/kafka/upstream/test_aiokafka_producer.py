"""Producers outlive brokers that are away or close connections, and what fails is told once."""

from __future__ import annotations

import asyncio
import gc
import math
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError, UnknownError
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.sender import Sender
from aiokafka.producer.transaction_manager import TransactionManager

from attributary_agents.kafka.upstream.aiokafka_producer import PatientSender, QuietBatches, make_patient


class _Brokers:
    """Stands in for a client: what is asked of it fails in this order, and is answered by broker 7 then."""

    def __init__(self, *failures: KafkaError) -> None:
        self.failures = [*failures]
        self.n_updates = 0

    async def coordinator_lookup(self, kind: int, key: str) -> int:
        assert (kind, key) == (1, "group/topic/0")
        if self.failures:
            raise self.failures.pop(0)
        return 7

    async def force_metadata_update(self) -> None:
        self.n_updates += 1

    async def ready(self, node_id: int, group: Any) -> bool:
        return node_id == 7


def coordinator(kind: type[Sender], brokers: _Brokers) -> int:
    async def find() -> int:
        transactions = TransactionManager("group/topic/0", 60_000)
        sender = kind(
            brokers,
            acks=-1,
            txn_manager=transactions,
            retry_backoff_ms=1,
            message_accumulator=None,
            request_timeout_ms=1,
        )
        return int(await sender._find_coordinator(1, "group/topic/0"))

    return asyncio.run(find())


def test_a_coordinator_is_looked_for_again_where_the_connection_is_closed() -> None:
    brokers = _Brokers(KafkaConnectionError("closed"), KafkaConnectionError("closed"))
    assert (coordinator(PatientSender, brokers), brokers.n_updates) == (7, 2)


def test_upstream_does_not_look_again() -> None:
    with pytest.raises(KafkaError, match="closed"):
        coordinator(Sender, _Brokers(KafkaConnectionError("closed")))


def test_what_brokers_refuse_is_not_asked_again() -> None:
    brokers = _Brokers(UnknownError("refused"))
    with pytest.raises(KafkaError, match="refused"):
        coordinator(PatientSender, brokers)
    assert brokers.n_updates == 0


async def _producer() -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers="127.0.0.1:9", request_timeout_ms=3000)


def test_what_is_not_sent_is_kept_for_as_long_as_brokers_are_away() -> None:
    async def run() -> None:
        producer = make_patient(await _producer())
        assert producer._message_accumulator._batch_ttl == math.inf
        assert type(producer._message_accumulator) is QuietBatches
        assert type(producer._sender) is PatientSender

    asyncio.run(run())


def test_upstream_gives_a_batch_up_after_the_time_of_a_request() -> None:
    async def run() -> None:
        assert (await _producer())._message_accumulator._batch_ttl == 3.0

    asyncio.run(run())


@pytest.mark.parametrize(("kind", "n_unseen"), [(MessageAccumulator, 1), (QuietBatches, 0)], ids=["upstream", "ours"])
def test_an_error_is_told_to_who_awaits_a_record_and_to_nobody_else(
    kind: type[MessageAccumulator], n_unseen: int
) -> None:
    async def run() -> None:
        unseen: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context["message"]))
        producer = await _producer()
        batches = producer._message_accumulator
        batches.__class__ = kind
        sent = await batches.add_message(("t", 0), b"k", b"v", 1.0)
        batches.fail_all(UnknownError("ended"))
        with pytest.raises(UnknownError):
            await sent
        batches._batches.clear()
        del batches, producer, sent
        gc.collect()
        await asyncio.sleep(0)
        assert len([line for line in unseen if "never retrieved" in line]) == n_unseen

    asyncio.run(run())
