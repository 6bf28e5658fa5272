"""Observations on their topic: encoding and sending."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    CorruptRecordException,
    InvalidTimestampError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from aiokafka.partitioner import DefaultPartitioner

from attributary_topics import find_not_finite

from ..config.settings import Config
from ..errors import PreflightError, UnsentError
from .clients import producer

WINDOW = 1000
"""Rows under way before the first of them is awaited: this bounds memory, and finds a refused write early."""

MOST_BYTES = 4_194_304
"""Longest record that is sent: the max.message.bytes of the observations topic as it is created."""

SILENT_S = 5.0
"""Time without an acknowledgement, in seconds, after which it is told."""

AGAIN_S = 60.0
"""Time, in seconds, after which it is told again."""


_LOOK_S = 0.25

_OF_THE_ROW = (CorruptRecordException, InvalidTimestampError, MessageSizeTooLargeError, RecordListTooLargeError)
"""Refusals of a row for what it is, and not for what the brokers are."""


def _why_refused(error: Exception) -> str:
    if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
        return (
            f"a row is too large: at most {MOST_BYTES} bytes are sent, and no more than the topic's max.message.bytes"
        )
    return f"a broker refuses a row: {type(error).__name__}"


def _is_refused(row: asyncio.Future[object]) -> bool:
    return row.done() and not row.cancelled() and isinstance(row.exception(), _OF_THE_ROW)


class Sending:
    """Sender of a model's rows in order, which counts acknowledged rows.

    All of them have the model id as their key, so they go to one partition, which keeps their order. Those of a sharded
    model go to all partitions, row n to partition n modulo their number, wherever the sending begins. While no broker
    acknowledges, it waits: what is under way is sent again by the client, which does not write it twice.

    Parameters
    ----------
    rate
        Observations per second at most; None sends as fast as the broker takes them.
    first
        Number of the first row, from 0.
    progress
        Called with the number of rows acknowledged so far, for each of them.
    silent
        Called where nothing has been acknowledged for SILENT_S, and every AGAIN_S from then on, with the seconds and
        the number of rows that wait.

    Attributes
    ----------
    acknowledged
        Rows of the beginning that the brokers have acknowledged, without a gap.
    is_next_refused
        Whether the row behind them is refused for what it is: sent again, it would be refused again.
    """

    def __init__(
        self,
        config: Config,
        model_id: str,
        *,
        rate: float | None = None,
        first: int = 0,
        progress: Callable[[int], None] | None = None,
        silent: Callable[[float, int], None] | None = None,
    ) -> None:
        self._kafka, self._topic, self._key = config.kafka, config.kafka.topics.observations, model_id.encode()
        self._rate, self._progress, self._silent = rate, progress, silent
        self._is_sharded, self._next = model_id in config.sharded, first
        self._partitions: list[int] = []
        self._under_way: deque[asyncio.Future[object]] = deque()
        self._quiet_since = 0.0
        self.acknowledged = 0
        self.is_next_refused = False

    @property
    def unacknowledged(self) -> int:
        """Number of rows that the topic may have: given, not acknowledged."""
        return len(self._under_way)

    async def send(self, values: Iterable[bytes]) -> int:
        """Send the values; return how many rows the brokers have acknowledged.

        At the return that is all of them.

        Raises
        ------
        PreflightError
            The broker cannot be reached, or refuses the first of them.
        UnsentError
            The broker refuses one after others were sent.
        """
        try:
            async with producer(self._kafka, self._topic, linger_ms=5, max_request_size=MOST_BYTES) as client:
                watching = asyncio.create_task(self._watch())
                try:
                    await self._send(client, values)
                except _OF_THE_ROW as error:
                    await self._settle_those_before()
                    raise PreflightError(f"{self._topic}: {_why_refused(error)}") from None
                finally:
                    watching.cancel()
        except PreflightError as error:
            if self.acknowledged or self.unacknowledged:
                raise UnsentError(str(error), self.acknowledged, self.unacknowledged) from None
            raise
        return self.acknowledged

    async def _send(self, client: AIOKafkaProducer, values: Iterable[bytes]) -> None:
        if self._is_sharded:
            self._partitions = sorted(await client.partitions_for(self._topic))
        began = time.monotonic()
        for n, value in enumerate(values, 1):
            future = await self._hand_over(client, value)
            if not self._under_way:
                self._quiet_since = time.monotonic()
            self._under_way.append(future)
            future.add_done_callback(self._settle)
            if len(self._under_way) >= WINDOW:
                await self._first_settled()
            if self._rate is not None and (ahead := n / self._rate - (time.monotonic() - began)) > 0:
                await asyncio.sleep(ahead)
        while self._under_way:
            await self._first_settled()

    async def _hand_over(self, client: AIOKafkaProducer, value: bytes) -> asyncio.Future[object]:
        while True:
            try:
                future: asyncio.Future[object] = await client.send(self._topic, value, key=self._key, **self._place)
            except KafkaTimeoutError:  # the client's buffer is full, and the row is not in it
                continue
            self._next += 1
            return future

    @property
    def _place(self) -> dict[str, int]:
        """Where the next row goes; empty where its key decides."""
        n = len(self._partitions)
        return {"partition": self._partitions[self._next % n]} if n else {}

    async def _settle_those_before(self) -> None:
        """Wait for the rows before the refused row, and drop the refused row."""
        while self._under_way and not _is_refused(first := self._under_way[0]):
            await asyncio.wait([first])
            self._settle(first)
            if first in self._under_way and not _is_refused(first):
                return  # another fault, by which nothing more is known
        self.is_next_refused = True
        if self._under_way:  # else the client has refused it itself
            self._under_way.popleft()

    async def _first_settled(self) -> None:
        first = self._under_way[0]
        await asyncio.wait([first])  # it is not cancelled with this
        self._settle(first)
        first.result()

    def _settle(self, _done: asyncio.Future[object]) -> None:
        """Count the acknowledged rows up to the first unacknowledged row."""
        while self._under_way and self._under_way[0].done() and self._under_way[0].exception() is None:
            self._under_way.popleft()
            self._quiet_since = time.monotonic()
            self.acknowledged += 1
            if self._progress is not None:
                self._progress(self.acknowledged)

    async def _watch(self) -> None:
        tell_after = SILENT_S
        while True:
            await asyncio.sleep(_LOOK_S)
            quiet = time.monotonic() - self._quiet_since
            if not self._under_way or quiet < SILENT_S:
                tell_after = SILENT_S
            elif quiet >= tell_after:
                tell_after = quiet + AGAIN_S
                if self._silent is not None:
                    self._silent(quiet, self.unacknowledged)


async def produce(
    config: Config,
    model_id: str,
    values: Iterable[bytes],
    *,
    rate: float | None = None,
    progress: Callable[[int], None] | None = None,
    silent: Callable[[float, int], None] | None = None,
) -> int:
    """Send values with the model id as their key; return their number.

    They are sent as by `Sending`, and all of them acknowledged.

    Raises
    ------
    PreflightError
        The broker cannot be reached or refuses.
    UnsentError
        The broker refuses one after others were sent.
    """
    return await Sending(config, model_id, rate=rate, progress=progress, silent=silent).send(values)


def encode_value(value: dict[str, object] | bytes) -> bytes:
    """Encode an observation's value, also a wrong value, for the worker."""
    if isinstance(value, bytes):  # what a file had in place of an object
        return value
    # The standard library writes what orjson would turn into null (NaN) or not write at all (an integer beyond 64
    # bits, half a surrogate pair).
    if find_not_finite(value) is not None:
        return json.dumps(value).encode()
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def default_partition(model_id: str, n_partitions: int) -> int:
    """Return the partition that Kafka's clients choose for a model id."""
    return int(DefaultPartitioner()(model_id.encode(), list(range(n_partitions)), []))
