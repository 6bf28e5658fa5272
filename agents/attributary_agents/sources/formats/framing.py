"""Decoding of values with a schema id in front, as Confluent frames them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from attributary_topics import InvalidRecordError
from attributary_topics.errors import shorten

from ...errors import SchemaUnavailableError
from ..records import OriginRecord
from .base import Decoded
from .registry import RegisteredSchema, Registry

HEAD_BYTES = 5
"""Byte 0, and the id of the schema in four bytes."""

Reader = Callable[[bytes], dict[str, Any]]
"""Makes an object of a whole value, framing and all."""


class FramedFormat:
    """Format of values with their schema's id in front.

    The registry is asked once for each id.

    Parameters
    ----------
    kind
        Of which kind schemas have to be: AVRO or PROTOBUF.
    make
        Makes a reader of a schema. Raises InvalidRecordError `wrong_schema` where none can be made.

    Attributes
    ----------
    is_waiting
        Whether the registry did not answer when it was asked last.
    """

    def __init__(self, kind: str, registry: Registry, make: Callable[[RegisteredSchema], Awaitable[Reader]]) -> None:
        self.is_waiting = False
        self._kind = kind
        self._registry = registry
        self._make = make
        self._readers: dict[int, Reader] = {}
        self._unusable: dict[int, str] = {}
        self._making: dict[int, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Check that the registry answers; raise ConfigError if it does not."""
        self.is_waiting = True
        await self._registry.start()
        self.is_waiting = False

    def decode_now(self, record: OriginRecord) -> list[Decoded] | None:
        """Return the object in a record; None where its schema has to be fetched."""
        value = record.value
        if not value:
            return []
        reader = self._readers.get(schema_id(value))
        if reader is None:
            self._refuse(schema_id(value))
            return None
        return [Decoded(reader(value))]

    async def decode(self, record: OriginRecord) -> list[Decoded]:
        """Return the object in a record; share requests for the same schema."""
        while (found := self.decode_now(record)) is None:
            wanted = schema_id(record.value or b"")
            task = self._making.get(wanted)
            if task is None:
                task = self._making[wanted] = asyncio.create_task(self._learn(wanted))
                task.add_done_callback(partial(self._made, wanted))
            # Whoever asked first may be cancelled: the others still want the answer.
            await asyncio.shield(task)
        return found

    async def close(self) -> None:
        """End requests that are open, and close the connections."""
        making = list(self._making.values())
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)
        await self._registry.close()

    async def _learn(self, wanted: int) -> None:
        try:
            schema = await self._registry.schema(wanted)
            if schema.kind != self._kind:
                remedy = f"format: {schema.kind.lower()}" if schema.kind in ("AVRO", "PROTOBUF") else "another format"
                raise wrong_schema(schema, f"is of type {schema.kind}: {remedy}?")
            self._readers[wanted] = await self._make(schema)
            self.is_waiting = False
        except SchemaUnavailableError:
            self.is_waiting = True
            raise
        except InvalidRecordError as error:
            self.is_waiting = False
            if error.reason == "wrong_schema":  # one that is not there may come
                self._unusable[wanted] = str(error)
            raise

    def _made(self, wanted: int, done: asyncio.Task[None]) -> None:
        self._making.pop(wanted, None)
        if not done.cancelled():
            done.exception()  # nobody may be left who takes it

    def _refuse(self, wanted: int) -> None:
        if (message := self._unusable.get(wanted)) is not None:
            raise InvalidRecordError("wrong_schema", "value", f"a schema of type {self._kind}", wanted, message)
        self._registry.refuse_unknown(wanted)


def schema_id(value: bytes) -> int:
    """Return the id of the schema by which a value was written.

    Raises
    ------
    InvalidRecordError
        `not_framed`: it does not begin with one.
    """
    if len(value) < HEAD_BYTES or value[0]:
        expected = "byte 0 and a schema id"
        is_json = value.lstrip()[:1] in (b"{", b"[")
        guess = "is the topic JSON?" if is_json else "was it written with a schema registry?"
        raise InvalidRecordError(
            "not_framed", "value", expected, value, f"expected {expected}, got {shorten(value)}: {guess}"
        )
    return int.from_bytes(value[1:HEAD_BYTES], "big")


def wrong_schema(schema: RegisteredSchema, why: str) -> InvalidRecordError:
    """Return the error for a schema by which no value can be read.

    It names the schema by its id, and says why.
    """
    message = f"schema id {schema.id} {why}"
    return InvalidRecordError("wrong_schema", "value", "a schema that can be read by", schema.id, message)


def scaled(unscaled: int, scale: int) -> float:
    """Return `unscaled / 10**scale` as the nearest float, or infinity.

    Examples
    --------
    >>> scaled(-1250, 2)
    -12.5
    """
    try:
        return unscaled / 10**scale if scale >= 0 else float(unscaled * 10**-scale)
    except OverflowError:
        return -math.inf if unscaled < 0 else math.inf
