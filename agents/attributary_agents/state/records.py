"""Records of the state table's changelog, by partition, name and owner.

A name is a model id or one of our own (`names`). Each owner of a partition has an epoch, a fencing token, and writes
under keys of its own: the name, the epoch, and the part. So no owner ever overwrites another's record, and compaction
never drops the newer of two: what a worker that was thought dead still sends lands under its old epoch, and the highest
epoch wins.

    name 00 epoch 00 h          the head, written last
    name 00 epoch 00 c<slot>.<i>  the i-th chunk of one of two generations, where the bytes do not fit into the head

A chunk comes before its head, and is not signed: anybody can have written it until a head names it. So chunks that no
head names are kept up to `LOOSE_BYTES`. Of further ones only the key is noted, up to `LOOSE_RECORDS` of them, and where
a head names them after all, the changelog has to be read a second time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field

from ..errors import StateError
from .seal import Seal

_KEY = re.compile(rb"(?P<name>.+)\x00(?P<epoch>[1-9]\d{0,14})\x00(?:h|c(?P<slot>[01])\.(?P<index>\d{1,9}))", re.DOTALL)

LOOSE_BYTES = 64 * 2**20
"""Bytes that are kept of chunks that no head names, of all partitions of a worker: most states fit in there."""

LOOSE_RECORDS = 20_000
"""Chunks without a head, and heads that are none, whose keys are noted; further ones are only counted."""

FOREIGN_HEAD_BYTES = 2048
"""What is kept of a head that is not ours: its beginning, which says why it is not read."""


def head_key(name: bytes, epoch: int) -> bytes:
    """Return the key of a name's head."""
    return b"%s\x00%d\x00h" % (name, epoch)


def chunk_key(name: bytes, epoch: int, slot: int, index: int) -> bytes:
    """Return the key of a chunk."""
    return b"%s\x00%d\x00c%d.%d" % (name, epoch, slot, index)


@dataclass
class OwnerRecords:
    """Records that a single owner has written under a name."""

    head: bytes | None = None
    chunks: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """The bytes by slot and index; None where the record is there and its bytes have been passed over."""
    named: tuple[int, int] | None = None
    """Slot and number of the chunks that the head names; None where there is no head that can be read."""

    def names(self, place: tuple[int, int]) -> bool:
        """Return whether the head names the chunk."""
        return self.named is not None and place[0] == self.named[0] and place[1] < self.named[1]

    @property
    def lacks(self) -> bool:
        """Whether bytes of chunks that the head names are not here."""
        if self.named is None or not self.named[1]:
            return False
        held = sum(chunk is not None and self.names(place) for place, chunk in self.chunks.items())
        return held < self.named[1]

    @property
    def passed_over(self) -> int:
        """Number of chunks that no head names and whose bytes are not kept."""
        return sum(chunk is None and not self.names(place) for place, chunk in self.chunks.items())

    def loose(self) -> tuple[int, int]:
        """Return number and bytes of the records that nobody needs.

        They are chunks that no head names, and a head that cannot be read.
        """
        chunks = [len(chunk or b"") for place, chunk in self.chunks.items() if not self.names(place)]
        return len(chunks) + (self.head is not None and self.named is None), sum(chunks)

    def keys(self, name: bytes, epoch: int) -> Iterable[bytes]:
        """Yield the keys of all of them."""
        if self.head is not None:
            yield head_key(name, epoch)
        for slot, index in self.chunks:
            yield chunk_key(name, epoch, slot, index)


class StateRecords:
    """Changelog records by partition, name and epoch.

    They are taken in the changelog's order.

    Parameters
    ----------
    wanted
        Whether a name is one of ours on a partition; others are counted, not kept.
    seal
        Tells heads that are ours, which may name any number of chunks, from others.
    """

    def __init__(self, wanted: Callable[[bytes, int], bool] = lambda _name, _n: True, seal: Seal | None = None) -> None:
        self._wanted = wanted
        self._seal = seal or Seal()
        self._partitions: dict[int, dict[bytes, dict[int, OwnerRecords]]] = {}
        self._n_loose = self._loose_bytes = 0
        self._unnoted: Counter[int] = Counter()
        self._to_be_read: set[int] = set()
        self.n_foreign = 0
        """Records with a key that nobody here writes, or of a model that is not configured."""

    def apply(self, partition: int, key: bytes | None, value: bytes | None, *, is_ours: bool = False) -> None:
        """Take a record. Never raises: anybody may have written it.

        Parameters
        ----------
        is_ours
            Whether this process writes it: then its head will come.
        """
        match = _KEY.fullmatch(key or b"")
        if match is None or not self._wanted(match["name"], partition):
            self.n_foreign += 1
            return
        name, epoch = match["name"], int(match["epoch"])
        place = None if match["slot"] is None else (int(match["slot"]), int(match["index"]))
        if value is None and epoch not in self.epochs(partition, name):
            return
        written = self._partitions.setdefault(partition, {}).setdefault(name, {}).setdefault(epoch, OwnerRecords())
        if place is None:
            self._apply_head(partition, head_key(name, epoch), written, value)
        else:
            self._apply_chunk(partition, written, place, value, is_ours=is_ours)
        if written.head is None and not written.chunks:
            del self._partitions[partition][name][epoch]

    def _apply_head(self, partition: int, key: bytes, written: OwnerRecords, value: bytes | None) -> None:
        named = None
        if value is not None:
            try:
                head, _ = self._seal.read(key, value)
                named = head.slot, head.chunks
            except StateError:
                if written.head is None and self._n_loose >= LOOSE_RECORDS:
                    self._unnoted[partition] += 1
                    return
                value = value[:FOREIGN_HEAD_BYTES]
        self._count(written, -1)
        written.head, written.named = value, named
        if named is not None:
            # Of the generation before: a later head that names these chunks comes after other bytes of them.
            for place in written.chunks:
                if not written.names(place):
                    written.chunks[place] = None
        self._count(written, 1)

    def _apply_chunk(
        self, partition: int, written: OwnerRecords, place: tuple[int, int], value: bytes | None, *, is_ours: bool
    ) -> None:
        is_loose, is_noted = not written.names(place), place in written.chunks
        before = written.chunks.pop(place, None)
        if is_loose and is_noted:
            self._n_loose -= 1
            self._loose_bytes -= len(before or b"")
        if value is None:
            return
        if is_loose:
            if self._n_loose >= LOOSE_RECORDS and not is_ours:
                self._unnoted[partition] += 1
                self._to_be_read.add(partition)
                return
            self._n_loose += 1
            if self._loose_bytes + len(value) > LOOSE_BYTES and not is_ours:
                self._to_be_read.add(partition)
                value = None
            self._loose_bytes += len(value or b"")
        written.chunks[place] = value

    def _count(self, written: OwnerRecords, sign: int) -> None:
        n, size = written.loose()
        self._n_loose += sign * n
        self._loose_bytes += sign * size

    def lacking(self) -> set[int]:
        """Return the partitions whose heads name chunks that were passed over.

        Their changelog is to be read once more, with `apply_again`.
        """
        return {n for n in self._to_be_read if any(written.lacks for _, _, written in self.all_of(n))}

    def apply_again(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Apply a record of another reading, if it is a chunk that a head names."""
        match = _KEY.fullmatch(key or b"")
        if match is None or match["slot"] is None:
            return
        written = self.epochs(partition, match["name"]).get(int(match["epoch"]))
        if written is not None and written.names((int(match["slot"]), int(match["index"]))):
            self.apply(partition, key, value)

    def drop_loose(self) -> None:
        """Drop the bytes of chunks that no head names.

        All records that there are have been read before.
        """
        for partition in self._partitions:
            for _, _, written in self.all_of(partition):
                for place, chunk in written.chunks.items():
                    if chunk is not None and not written.names(place):
                        written.chunks[place] = b""  # and not None: it was not passed over
        self._loose_bytes = 0

    def unnoted(self, partition: int) -> int:
        """Return the number of our records whose keys have not been noted.

        They are the partition's records under our names.
        """
        return self._unnoted[partition]

    def names(self, partition: int) -> list[bytes]:
        """Return the names with a head, in the order of their first record."""
        return [name for name in self._partitions.get(partition, {}) if self.latest(partition, name)]

    def latest(self, partition: int, name: bytes, without: Container[int] = ()) -> tuple[int, bytes] | None:
        """Return epoch and head of the newest owner of a name, or None.

        Only owners that wrote the name's head count, and none in `without`.
        """
        epochs = self.epochs(partition, name)
        heads = ((n, owner.head) for n, owner in epochs.items() if owner.head is not None and n not in without)
        return max(heads, default=None)

    def epochs(self, partition: int, name: bytes) -> dict[int, OwnerRecords]:
        """Return the records under the name, by epoch."""
        return self._partitions.get(partition, {}).get(name, {})

    def all_of(self, partition: int) -> Iterator[tuple[bytes, int, OwnerRecords]]:
        """Yield name, epoch and records of every owner of the partition."""
        for name, epochs in self._partitions.get(partition, {}).items():
            for epoch, written in epochs.items():
                yield name, epoch, written

    def forget(self, partition: int) -> None:
        """Forget a partition, so that it is read from the start.

        What we have written of it may not be durable.
        """
        known = {*self._partitions, *self._unnoted, *self._to_be_read}
        self.keep_only(known - {partition})

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget all other partitions.

        Their next owner writes on, and a regained partition is read from the start.
        """
        kept = set(partitions)
        for number in self._partitions.keys() - kept:
            for _, _, written in self.all_of(number):
                self._count(written, -1)
        self._partitions = {n: names for n, names in self._partitions.items() if n in kept}
        self._unnoted = Counter({n: count for n, count in self._unnoted.items() if n in kept})
        self._to_be_read &= kept
