"""Publishing of results and storing of states.

Done at least once, or exactly once.

*At least once*: events and dead letters are sent at once. States are written when what their observations have sent is
acknowledged. After a crash some are sent again, with the same ids and bytes.

*Exactly once*: events and dead letters wait in memory. A checkpoint is one transaction: its states, what follows from
the observations in them, its own record. What must hold is this:

    What a committed state or checkpoint contains, has been published with it or before.
    What none contains, has not been published.

The states of a checkpoint are of different moments, and may be ahead of its cut, because observations are handled
between its slices. So what waits is kept apart by what contains it. If a model has an observation by its own offset,
and would skip it when it is repeated, then what follows from it is the model's: it is taken in the same step in which
the state is encoded, up to there and no further. What no model contains, such as the dead letter of a record that
cannot be read, is repeated from the checkpoint on: it is taken up to the cut. What has followed since is left for the
next transaction, and so is all of a model that had not changed at the cut.

No observation has to wait for that, not even where a stride has changed: nothing of the new stride is published before
the state that has it. What is taken is sent with the last states, when all others are written. Until then the
transaction holds up no reader but those of the changelog's partition, where nobody else writes; from then on it lasts
milliseconds. Within a transaction no order counts, so what can be is sent together: while records wait, each request
that has to be awaited lasts as long as a slice of them.

Notes of what could end a worker (`poison`) and signatures are written outside of transactions: they have to be durable
before the next step, say nothing of what is published, and are told apart by the owner's epoch.

The outbox remembers which events and dead letters brokers have not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..kafka.transactions import PartitionProducer, Sending
from ..state.store import PartitionStore
from .activity import Activity
from .records import Outgoing

MAX_SENT_BYTES = 16_000_000
"""Values of events and dead letters in memory before they are awaited: a dead letter is as large as its record."""


class Sent(NamedTuple):
    """Event or dead letter on its way, with the size of its value.

    `ends` ends when the broker has it.
    """

    ends: Awaitable[Any]
    n_bytes: int


class Outbox:
    """Outbox of the results of a partition's observations.

    Parameters
    ----------
    send
        Queues one record to be sent, and returns what ends when the broker has it.
    """

    def __init__(self, send: Callable[[Outgoing], Awaitable[Any]], activity: Activity) -> None:
        self._send = send
        self._activity = activity
        self._sent: list[Sent] = []
        self.n_bytes = 0
        """Bytes of the values that have no acknowledgement."""

    @property
    def sent(self) -> list[Sent]:
        """Sends that have not been waited for."""
        return list(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether sends must be waited for before more is sent."""
        return self.n_bytes > MAX_SENT_BYTES

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Send records, in this order."""
        for record in outgoing:
            self._sent.append(Sent(self._send(record), size_of(record)))
            self.n_bytes += self._sent[-1].n_bytes

    async def send_apart(self, record: Outgoing) -> None:
        """Send a record and wait until brokers have it.

        It is not counted among the others.
        """
        await self._send(record)

    async def wait_for(self, sent: Sequence[Sent]) -> None:
        """Wait until brokers have these records.

        Records that are sent meanwhile stay to be waited for.
        """
        if not sent:
            return
        awaited = [one.ends for one in sent]
        # Shielded: a step that is given up leaves what has been sent on its way.
        await self._activity.wait_for_kafka(asyncio.shield(asyncio.gather(*awaited)))
        # The handling of records and a slice may wait at the same time, for some of the same.
        known = set(map(id, awaited))
        self._sent = [one for one in self._sent if id(one.ends) not in known]
        self.n_bytes = sum(one.n_bytes for one in self._sent)


def size_of(record: Outgoing) -> int:
    """Return the bytes of a record's value."""
    return len(record.value or b"")


TOGETHER_BYTES = 900_000
"""The last states of a checkpoint that are sent together with what others read: more may take a while to be written."""

Write = tuple[bytes, bytes]
"""A name and its bytes."""


class Delivery(Protocol):
    """Way of publishing a partition's results and storing its states.

    Attributes
    ----------
    n_bytes
        Bytes of the values that are in memory.
    publishes_early
        Whether readers may see what follows from an observation before the state that contains it is durable.
    wants_checkpoint
        Whether so much is in memory that it has to be stored before more is handled.
    """

    publishes_early: bool

    @property
    def n_bytes(self) -> int: ...  # noqa: D102

    @property
    def wants_checkpoint(self) -> bool: ...  # noqa: D102

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Take results of observations to send, in this order."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether sends must be acknowledged before more is sent."""
        ...

    async def make_room(self) -> None:
        """Wait until brokers have all records that are on their way."""
        ...

    def note_encoded(self, model_id: str) -> None:
        """Note that the state of a model is encoded.

        To be called in the same step.
        """
        ...

    @property
    def sent(self) -> list[Sent]:
        """Sends that must be acknowledged before states are written.

        The states are those that are encoded now.
        """
        ...

    async def settle(self, sent: Sequence[Sent]) -> None:
        """Wait until states may be written."""
        ...

    async def put(self, name: bytes, blob: bytes) -> None:
        """Write the bytes of a name.

        They are durable with the checkpoint at the latest.
        """
        ...

    async def conclude(self, states: Sequence[Write], offset: int, name: bytes, encode: Callable[[], bytes]) -> None:
        """Write the last states and a checkpoint, and make them durable.

        The same holds for all that belongs to the checkpoint.

        Parameters
        ----------
        states
            Names and bytes of the states of the last slice.
        offset
            The last offset that the checkpoint covers.
        name, encode
            Its name, and what gives its bytes, to be called when it is written.
        """
        ...

    async def store(self, outgoing: Iterable[Outgoing], writes: Sequence[Write]) -> None:
        """Publish and write the effects of a deployment.

        No checkpoint may be under way, unless `publishes_early`.
        """
        ...


class AtLeastOnce:
    """Delivery at least once, in which results are sent at once.

    States are written when all that was sent before is acknowledged.
    """

    publishes_early = True
    wants_checkpoint = False

    def __init__(self, outbox: Outbox, store: PartitionStore) -> None:
        self.outbox = outbox
        self._store = store

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Send at once."""
        self.outbox.send(outgoing)

    async def settle(self, sent: Sequence[Sent]) -> None:
        """Wait until brokers have the given records."""
        await self.outbox.wait_for(sent)

    async def put(self, name: bytes, blob: bytes) -> None:
        """Write the bytes; once awaited they are durable."""
        await self._store.put(name, blob)

    @property
    def n_bytes(self) -> int:
        """Bytes of the values that have no acknowledgement."""
        return self.outbox.n_bytes

    @property
    def sent(self) -> list[Sent]:
        """Sends that have not been waited for."""
        return self.outbox.sent

    @property
    def is_full(self) -> bool:
        """Whether much is on its way."""
        return self.outbox.is_full

    async def make_room(self) -> None:
        """Wait for the records that are on their way."""
        await self.outbox.wait_for(self.outbox.sent)

    def note_encoded(self, model_id: str) -> None:
        """Do nothing: the results of the model's observations are sent."""

    async def conclude(self, states: Sequence[Write], offset: int, name: bytes, encode: Callable[[], bytes]) -> None:
        """Write the states, then the checkpoint."""
        await put_all(self, states)
        await self._store.put(name, encode())

    async def store(self, outgoing: Iterable[Outgoing], writes: Sequence[Write]) -> None:
        """Send the records, then write the values in their order."""
        await asyncio.gather(*map(self.outbox.send_apart, outgoing))
        for key, value in writes:
            await self._store.put(key, value)


class ExactlyOnce:
    """Delivery exactly once: results and their state in a transaction.

    Results are kept until the checkpoint that contains them.

    Parameters
    ----------
    producer
        The partition's own: it has fenced those of earlier owners.
    changelog
        The topic of the states.
    """

    publishes_early = False

    def __init__(self, producer: PartitionProducer, changelog: str, store: PartitionStore, activity: Activity) -> None:
        self._producer = producer
        self._changelog = changelog
        self._store = store
        self._activity = activity
        self._kept: dict[str | None, list[Outgoing]] = {}
        """By the model that contains it; None: what no model contains."""
        self._taken: list[Outgoing] = []
        """What belongs to the checkpoint under way."""
        self.n_bytes = 0

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the waiting results fill the memory allowed for them.

        They have to be published before more is handled.
        """
        return self.n_bytes > MAX_SENT_BYTES

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Keep records."""
        for record in outgoing:
            self._kept.setdefault(record.model_id, []).append(record)
            self.n_bytes += size_of(record)

    @property
    def is_full(self) -> bool:
        """Nothing is on its way before the checkpoint."""
        return False

    async def make_room(self) -> None:
        """Do nothing: a checkpoint makes room."""

    def note_encoded(self, model_id: str) -> None:
        """Take the results that the encoded state contains.

        They go with it, and nothing that follows later.
        """
        self._taken += self._kept.pop(model_id, ())

    @property
    def sent(self) -> list[Sent]:
        """Empty list: the results of a state are written with it."""
        return []

    async def settle(self, sent: Sequence[Sent]) -> None:
        """Begin the transaction, unless it is open."""
        if not self._producer.is_open:
            await self._producer.begin()

    async def put(self, name: bytes, blob: bytes) -> None:
        """Write the bytes in the transaction."""
        await self._store.put(name, blob, self._write)

    async def conclude(self, states: Sequence[Write], offset: int, name: bytes, encode: Callable[[], bytes]) -> None:
        """Write the last states, the results and the checkpoint, and commit."""
        await self.settle(())
        if sum(len(blob) for _, blob in states) > TOGETHER_BYTES:
            await put_all(self, states)
            states = ()
        of_none = self._kept.pop(None, [])
        self._taken += [record for record in of_none if record.offset <= offset]
        if beyond := [record for record in of_none if record.offset > offset]:
            self._kept[None] = beyond
        taken, self._taken = sorted(self._taken, key=lambda record: record.offset), []
        await self._commit(taken, [*states, (name, encode())])
        self.n_bytes -= sum(map(size_of, taken))

    async def store(self, outgoing: Iterable[Outgoing], writes: Sequence[Write]) -> None:
        """Publish and write in a transaction of its own."""
        records = list(outgoing)
        if records or writes:
            await self.settle(())
            await self._commit(records, writes)

    async def _commit(self, outgoing: Iterable[Outgoing], writes: Sequence[Write]) -> None:
        sending = [Sending(record.topic, record.key, record.value, record.headers) for record in outgoing]
        await asyncio.gather(put_all(self, writes), self._send_all(sending))
        await self._activity.wait_for_kafka(self._producer.commit())
        await self._store.delete_outdated()

    async def _send_all(self, sending: Sequence[Sending]) -> None:
        await self._activity.wait_for_kafka(self._producer.send_all(sending))

    def _write(self, partition: int, key: bytes, value: bytes | None) -> Awaitable[Any]:
        record = Sending(self._changelog, key, value, partition=partition)
        # A task: queued in the order of the calls.
        return asyncio.ensure_future(self._send_all([record]))


async def put_all(delivery: Delivery, writes: Iterable[Write]) -> None:
    """Write the bytes of several names at a time."""
    await asyncio.gather(*(delivery.put(name, blob) for name, blob in writes))
