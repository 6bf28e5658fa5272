"""Transactions of partitions: their ids belong to no worker.

Whoever starts a producer with the id of a partition is its only owner from then on: the broker ends the transaction
that an earlier owner has left open, waits for one that is being committed, and refuses whatever that owner still sends.
So a producer is started before it is asked where the changelog ends.

One producer for each partition: aiokafka 0.14.0 does not send the generation of the consumer group with a transaction
(KIP-447), by which a broker could tell owners apart that share one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFenced,
)

from ..config.settings import Config
from ..errors import BrokersAwayError, DeliveryError, FencedError, PreflightError
from .clients import MAX_BATCH_BYTES, client_options, producer
from .upstream.aiokafka_producer import close_at_once, failures, make_patient, take_note

logger = logging.getLogger(__name__)

STOPPED_WITHIN_S = 2.0
"""Longest time that a producer has to abort what is open, and to close its connections."""

OUTCOMES = ("committed", "aborted", "fenced")
"""How transactions end. One that a killed worker has left open is aborted by the broker, and counted nowhere."""

_TOGETHER = 20  # producers that start at a time
_AGAIN_S = 0.5  # before a broker is looked for again
_BACKOFF_MS = 20  # before a request is repeated, as while an earlier owner's transaction is being ended
_OF_ANOTHER = (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping, InvalidTxnState)


class Sending(NamedTuple):
    """Record to send in a transaction; its key may choose the partition."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Iterable[tuple[str, bytes | None]] = ()
    partition: int | None = None


def transactional_id(config: Config, number: int | str) -> str:
    """Return the group's transactional id of an observations partition."""
    return f"{config.kafka.group}/{config.kafka.topics.observations}/{number}"


class PartitionProducer:
    """Transactional producer that is the only owner of a partition.

    Parameters
    ----------
    n_ended
        How many transactions have ended in which way; counted here.
    """

    def __init__(self, config: Config, number: int, n_ended: Counter[str] | None = None) -> None:
        kafka = config.kafka
        self.number = number
        self._timeout_s = kafka.transaction_timeout_s
        self._n_ended = Counter() if n_ended is None else n_ended
        self._producer = make_patient(
            AIOKafkaProducer(
                **client_options(kafka),
                transactional_id=transactional_id(config, number),
                transaction_timeout_ms=int(1000 * kafka.transaction_timeout_s),
                max_request_size=kafka.max_record_bytes,
                max_batch_size=MAX_BATCH_BYTES,
                request_timeout_ms=int(1000 * config.request_timeout_s),
                retry_backoff_ms=_BACKOFF_MS,
            )
        )
        self.is_open = False
        """Whether a transaction has begun and is not known to be committed."""
        self._is_ending = self._is_fenced = False

    async def start(self) -> None:
        """Become the only owner of the partition.

        A transaction that an earlier owner has left open is ended when this returns.

        Raises
        ------
        KafkaError
            No broker can be reached, or the brokers refuse.
        """
        try:
            await self._producer.start()
        except BaseException:
            await self._producer.stop()  # closes the connections that there are
            raise

    async def begin(self) -> None:
        """Begin a transaction.

        Raises
        ------
        FencedError
            Another owner has started. So does every other method then.
        """
        with self._fenced():
            await self._producer.begin_transaction()
            self.is_open = True

    async def send_all(self, records: Iterable[Sending]) -> None:
        """Send records in order, in the transaction, until brokers have them.

        Raises
        ------
        KafkaError
            A broker refuses one: the transaction must not be committed, which the client would do.
        """
        with self._fenced():
            sent: list[asyncio.Future[object]] = []
            for one in records:
                headers = list(one.headers) or None
                queued = await self._producer.send(one.topic, one.value, one.key, one.partition, None, headers)
                # Where the next one cannot be queued, nobody awaits this: what is wrong is told once.
                queued.add_done_callback(take_note)
                sent.append(queued)
            await asyncio.gather(*sent)

    async def commit(self) -> None:
        """Let readers see everything of the transaction."""
        with self._fenced():
            self._is_ending = True
            await self._producer.commit_transaction()
            self.is_open = self._is_ending = False
        self._n_ended["committed"] += 1

    async def stop(self) -> None:
        """Abort an open transaction, or leave it to the next owner, and close."""
        try:
            async with asyncio.timeout(STOPPED_WITHIN_S):
                if self.is_open and not self._is_ending:
                    await self._producer.abort_transaction()
                    self._n_ended["aborted"] += 1
                await self._producer.stop()
        except (KafkaError, AssertionError, TimeoutError) as error:
            logger.info(
                "partition %d: its transaction could not be aborted (%r): the next owner does", self.number, error
            )
        finally:
            await close_at_once(self._producer)

    @contextlib.contextmanager
    def _fenced(self) -> Iterator[None]:
        try:
            yield
        except (KafkaError, AssertionError) as error:  # the client asserts the order of its own states
            if not any(isinstance(cause, _OF_ANOTHER) for cause in (error, *failures(self._producer))):
                raise
            self._n_ended["fenced"] += not self._is_fenced
            self._is_fenced = True
            raise FencedError(
                f"partition {self.number}: its transactions belong to another owner now, or one was open for longer "
                f"than kafka.transaction_timeout_s ({self._timeout_s:g} s). Nothing of it was published"
            ) from error


class PartitionProducers:
    """The producers of the partitions that a worker has.

    Attributes
    ----------
    n_ended
        How many transactions have ended in which way, one of `OUTCOMES`.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._started: dict[int, PartitionProducer] = {}
        self._doubtful: set[int] = set()
        self.n_ended: Counter[str] = Counter()

    def of(self, number: int) -> PartitionProducer:
        """Return the producer of a partition.

        Raises
        ------
        DeliveryError
            It has none: its state has not been recovered since it became ours.
        """
        if number not in self._started:
            raise DeliveryError(f"partition {number} has no producer: its state has not been recovered")
        return self._started[number]

    async def start(self, numbers: Collection[int], within_s: float) -> set[int]:
        """Become the only owner of these partitions, and of no other.

        Returns
        -------
        The partitions of which we have begun a transaction before that may not have been committed.

        Raises
        ------
        KafkaTimeoutError
            No broker has answered in this time.
        KafkaError
            The brokers refuse.
        """
        await self.stop(tuple(self._started))
        turn = asyncio.Semaphore(_TOGETHER)
        try:
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(self._start(number, turn) for number in numbers))
        except TimeoutError:
            raise KafkaTimeoutError(
                f"no broker has taken over the transactions of the partitions for {within_s:.0f} s"
            ) from None
        doubtful, self._doubtful = self._doubtful, set()
        return doubtful

    async def _start(self, number: int, turn: asyncio.Semaphore) -> None:
        async with turn:
            while True:
                made = PartitionProducer(self._config, number, self.n_ended)
                try:
                    await made.start()
                    break
                except KafkaConnectionError:
                    await asyncio.sleep(_AGAIN_S)
            self._started[number] = made

    async def stop(self, numbers: Collection[int] | None = None) -> None:
        """Stop the producers of partitions that go, all by default."""
        gone = [
            self._started.pop(n) for n in (tuple(self._started) if numbers is None else numbers) if n in self._started
        ]
        if gone:
            began = time.monotonic()
            self._doubtful.update(one.number for one in gone if one.is_open)
            await asyncio.gather(*(one.stop() for one in gone), return_exceptions=True)
            logger.debug("stopped %d producers in %.1f s", len(gone), time.monotonic() - began)


async def check_transactions(config: Config) -> None:
    """Check that brokers allow a transaction, by an id that no worker has.

    Raises
    ------
    PreflightError
        They refuse, or cannot be reached.
    """
    name, timeout_s = transactional_id(config, "check"), config.kafka.transaction_timeout_s
    try:
        async with producer(
            config.kafka,
            f"delivery: exactly_once, transactional id {name}",
            transactional_id=name,
            transaction_timeout_ms=int(1000 * timeout_s),
        ):
            pass
    except BrokersAwayError as error:
        if not error.answer:
            raise
        why = (
            f"{error.causes}: they have no coordinator of transactions. Their topic __transaction_state needs "
            "transaction.state.log.replication.factor brokers (3 by default), of which "
            "transaction.state.log.min.isr must be there"
        )
        raise BrokersAwayError(f"delivery: exactly_once, transactional id {name}: {why}", why, answer=True) from None
    except PreflightError as error:
        if InvalidTransactionTimeout.__name__ in str(error):
            raise PreflightError(
                f"kafka.transaction_timeout_s: {timeout_s:g} is more than the brokers allow "
                "(transaction.max.timeout.ms, 900 s by default)"
            ) from None
        raise


async def fence(config: Config, numbers: Iterable[int]) -> None:
    """End open transactions of partitions and fence their old owners.

    Raises
    ------
    PreflightError
        The brokers refuse, or cannot be reached.
    """
    for number in numbers:
        async with producer(
            config.kafka,
            f"transactions of partition {number}",
            transactional_id=transactional_id(config, number),
            transaction_timeout_ms=int(1000 * config.kafka.transaction_timeout_s),
        ):
            pass
