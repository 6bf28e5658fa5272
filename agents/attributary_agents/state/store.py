"""Store of a partition's bytes, safe from half-written states.

The partition has to be ours.

`put` writes in this order, each step awaited:

1. the bytes: as chunks of the generation that the present head does not name, or as an object with a new name;
2. the head, with size, checksum and signature; bytes that fit into the head need no step 1;
3. what is no longer needed is deleted: chunks beyond the last one, records of earlier owners, older objects.

A crash before 2 leaves the old head and all its bytes; a crash before 3 leaves what a later `put` deletes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from weakref import WeakValueDictionary

from ..errors import DamagedStateError, StateError
from .names import is_checkpoint
from .objects import ObjectStore, first_of_epoch
from .owners import Owners, text_of
from .records import StateRecords, chunk_key, head_key
from .seal import Head, Seal, check_bytes

logger = logging.getLogger(__name__)

CHUNK_BYTES = 900_000
"""Longest piece of a state in one record."""

Send = Callable[[int, bytes, bytes | None], Awaitable[object]]
"""Partition, key and value, None to delete: queued in the order of the calls, durable once awaited."""


class PartitionStore:
    """Reads and writes a partition's bytes by name, under an epoch of its own.

    Parameters
    ----------
    records
        The changelog's records; what is written here is added to them.
    generation
        Generation of the consumer group in which the partition became ours. Added to the highest epoch that there
        is, it gives an epoch above that of every earlier owner, even of one whose writes are still under way.
    send
        Writes a record to the changelog.
    objects
        Where states go that are longer than a chunk; None keeps them in the changelog, in chunks. Checkpoints stay
        there in any case: they are read before anything is fetched.
    """

    def __init__(
        self,
        records: StateRecords,
        partition: int,
        generation: int,
        send: Send,
        seal: Seal,
        objects: ObjectStore | None = None,
    ) -> None:
        self._records = records
        self.partition = partition
        self._owners = Owners(records, partition, seal)
        self.epoch = self._owners.last + max(generation, 1)
        self._send_record = send
        self._seal = seal
        self._objects = objects
        self._fetched: dict[bytes, bytes | DamagedStateError] = {}
        self._slots: dict[bytes, int] = {}
        self._n_objects = 0
        self._outdated: dict[bytes, str] = {}
        """Name to the first of its objects that is still needed."""
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def fetch(self, name: bytes) -> None:
        """Fetch the object that `load` will need.

        It is tried again while the object store does not answer.
        """
        try:
            found = self._find(name)
            if found is None or found[1].object_name is None or self._objects is None:
                return
            blob = await self._objects.read(found[1].object_name, self._where(name))
            self._fetched[name] = self._checked(name, found[1], blob)
        except DamagedStateError as error:
            self._fetched[name] = error  # for whoever asks for it

    def load(self, name: bytes) -> bytes | None:
        """Return the bytes last written; None where there are none.

        Raises
        ------
        DamagedStateError
            Not all bytes are there, or they are other ones; or no head is an owner's, as others of the partition are.
        StateError
            No head of the partition is signed with our key, or the bytes are in an object store that is not configured.
        KeyError
            They are in an object store and have not been fetched.
        """
        found = self._find_readable(name)
        if found is None:
            return None
        head = found[1]
        if head.object_name is not None:
            fetched = self._fetched.pop(name)
            if isinstance(fetched, DamagedStateError):
                raise fetched
            return fetched
        pieces = list(self._pieces(name, *found))
        if len(pieces) < head.chunks:
            raise DamagedStateError(f"{self._where(name)} has {len(pieces)} of {head.chunks} chunks")
        return self._checked(name, head, b"".join(pieces))

    def beginning(self, name: bytes) -> bytes | None:
        """Return the first of the bytes last written, unchecked, or None.

        They have not been compared with anything. None where no bytes are here. Those of an object are elsewhere until
        it is fetched.

        Raises
        ------
        DamagedStateError, StateError
            As for `load`.
        """
        found = self._find_readable(name)
        if found is None or found[1].object_name is not None:
            return None
        return next(self._pieces(name, *found), None)

    async def put(self, name: bytes, blob: bytes, send: Send | None = None) -> None:
        """Write the bytes; once awaited they are durable.

        Calls for the same name write one after the other.

        Parameters
        ----------
        send
            Writes each record, in place of the store's own: in a transaction. Then they are durable with that, and
            `delete_outdated` follows it.

        Raises
        ------
        Exception
            The broker refuses a record: then the old bytes stand.
        """
        async with self._turn(name):
            await self._put(name, blob, send)

    def _turn(self, name: bytes) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())

    async def _put(self, name: bytes, blob: bytes, send: Send | None = None) -> None:
        self._fetched.pop(name, None)
        before = self._object_name(name)
        slot = 1 - self._slots.get(name, 1)
        pieces = (
            [blob[i : i + CHUNK_BYTES] for i in range(0, len(blob), CHUNK_BYTES)] if len(blob) > CHUNK_BYTES else []
        )
        if not pieces:
            head = Head.of(blob)
        elif self._objects is not None and not is_checkpoint(name):
            self._n_objects += 1
            object_name = await self._objects.write(
                self.partition, name, self.epoch, self._n_objects, blob, self._where(name)
            )
            head, pieces = Head.of(blob, object_name=object_name), []
        else:
            head = Head.of(blob, chunks=len(pieces), slot=slot)
            keys = [chunk_key(name, self.epoch, slot, index) for index in range(len(pieces))]
            await asyncio.gather(*(self._send(key, piece, send) for key, piece in zip(keys, pieces, strict=True)))
        key = head_key(name, self.epoch)
        await self._send(key, self._seal.write(key, head, blob if head.is_inline else b""), send)
        self._slots[name] = slot
        await self._delete(self._no_longer_needed(name, slot, len(pieces)), send)
        self._owners.forget(name)
        if self._objects is not None and head.object_name is not None:
            # The one before stays: where we are no longer the owner, and do not know it yet, the next one reads it.
            oldest = min(before or head.object_name, head.object_name)
            if send is None:
                await self._objects.delete_older(self.partition, name, oldest)
            else:
                self._outdated[name] = oldest

    async def delete_outdated(self) -> None:
        """Delete the objects that no head names any more.

        Call it once a transaction with other heads is durable.
        """
        while self._outdated and self._objects is not None:
            name, before = self._outdated.popitem()
            await self._objects.delete_older(self.partition, name, before)

    async def sign(self, is_ours: Callable[[], bool] = lambda: True) -> int:
        """Sign all unsigned states of the partition; return how many there were.

        It does so where unsigned states are accepted. What is damaged stays as it is.

        Parameters
        ----------
        is_ours
            Whether the partition still is: it can be thousands of states.
        """
        signed = 0
        for name in self._records.names(self.partition) if self._seal.signs_unsigned else ():
            if not is_ours():
                break
            # A checkpoint under way may be writing the same name, with a signature.
            async with self._turn(name):
                signed += await self._sign(name)
        return signed

    async def _sign(self, name: bytes) -> bool:
        """Sign the bytes under a name if unsigned; return whether they were."""
        with contextlib.suppress(StateError):
            found = self._find(name)
            if found is None or found[1].hmac is not None:
                return False
            is_awaited = name in self._fetched
            await self.fetch(name)
            if (blob := self.load(name)) is not None:
                await self._put(name, blob)
                if is_awaited:  # a model's deployments: read at its next observation
                    self._fetched[name] = blob
                return True
        return False

    async def delete(self, name: bytes) -> None:
        """Delete everything under the name."""
        epochs = self._records.epochs(self.partition, name)
        await self._delete([key for epoch in sorted(epochs) for key in epochs[epoch].keys(name, epoch)])
        if self._objects is not None:
            await self._objects.delete_older(self.partition, name, first_of_epoch(self.epoch + 1))

    def _object_name(self, name: bytes) -> str | None:
        """Return the name of the object that the present head names.

        None where it names none or is damaged.
        """
        if self._objects is None:
            return None
        try:
            found = self._find(name)
        except StateError:
            return None
        return None if found is None else found[1].object_name

    def _no_longer_needed(self, name: bytes, slot: int, n_chunks: int) -> list[bytes]:
        epochs = self._records.epochs(self.partition, name)
        own = epochs[self.epoch]
        surplus = [
            chunk_key(name, self.epoch, *place) for place in own.chunks if place[0] == slot and place[1] >= n_chunks
        ]
        # Foreign epochs can be beyond ours; those of a later owner can not be there when we became the owner.
        gone = {epoch for epoch in epochs if epoch < self.epoch} | self._owners.foreign(name) - {self.epoch}
        older = [key for epoch in sorted(gone & epochs.keys()) for key in epochs[epoch].keys(name, epoch)]
        return [*surplus, *older]

    def _send(self, key: bytes, value: bytes | None, send: Send | None = None) -> Awaitable[object]:
        # Our copy changes in the same step as the write is queued: what is read here is what a recovery would read.
        sent = (send or self._send_record)(self.partition, key, value)
        self._records.apply(self.partition, key, value, is_ours=True)
        return sent

    async def _delete(self, keys: list[bytes], send: Send | None = None) -> None:
        await asyncio.gather(*(self._send(key, None, send) for key in keys))

    def _find(self, name: bytes) -> tuple[int, Head, bytes] | None:
        foreign = self._owners.foreign(name)
        latest = self._records.latest(self.partition, name, foreign)
        try:
            if latest is None:
                if foreign and (forged := self._records.latest(self.partition, name)):
                    self._owners.check_foreign(name, *forged)
                return None
            return latest[0], *self._seal.read(head_key(name, latest[0]), latest[1])
        except DamagedStateError as error:
            raise DamagedStateError(f"{self._where(name)} {error}") from None
        except StateError as error:
            raise StateError(f"{self._where(name)} {error}") from None

    def _find_readable(self, name: bytes) -> tuple[int, Head, bytes] | None:
        """Find the head; raise StateError if its bytes are out of reach.

        As `_find` does. Bytes in an object store that is not configured are out of reach.
        """
        found = self._find(name)
        if found is not None and found[1].object_name is not None and self._objects is None:
            raise StateError(f"{self._where(name)} is in an object store: configure state.url")
        return found

    def _pieces(self, name: bytes, epoch: int, head: Head, inline: bytes) -> Iterator[bytes]:
        """Yield the bytes from the changelog, up to the first missing chunk."""
        if not head.chunks:
            yield inline
            return
        chunks = self._records.epochs(self.partition, name)[epoch].chunks
        for index in range(head.chunks):  # nobody may have signed that number: it may be any
            if (piece := chunks.get((head.slot, index))) is None:
                return
            yield piece

    def _checked(self, name: bytes, head: Head, blob: bytes) -> bytes:
        try:
            return check_bytes(head, blob)
        except DamagedStateError as error:
            raise DamagedStateError(f"{self._where(name)} {error}") from None

    def _where(self, name: bytes) -> str:
        return f"{text_of(name)}, as stored of partition {self.partition},"
