"""Holds the records of the state table's changelog by partition, name and owner.

A name is a model id or one of our own (`names`). Each owner of a partition has an epoch, a fencing token, and writes
under keys of its own: the name, the epoch, and the part. So no owner ever overwrites another's record, and compaction
never drops the newer of two: what a worker that was thought dead still sends lands under its old epoch, and the highest
epoch wins.

    name 00 epoch 00 h          the head, written last
    name 00 epoch 00 c<slot>.<i>  the i-th chunk of one of two generations, where the bytes do not fit into the head
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

_KEY = re.compile(rb"(?P<name>.+)\x00(?P<epoch>[1-9]\d{0,14})\x00(?:h|c(?P<slot>[01])\.(?P<index>\d{1,9}))", re.DOTALL)


def head_key(name: bytes, epoch: int) -> bytes:
    """Return the key of a name's head."""
    return b"%s\x00%d\x00h" % (name, epoch)


def chunk_key(name: bytes, epoch: int, slot: int, index: int) -> bytes:
    """Return the key of a chunk."""
    return b"%s\x00%d\x00c%d.%d" % (name, epoch, slot, index)


@dataclass
class OwnerRecords:
    """The records that one owner has written under a name."""

    head: bytes | None = None
    chunks: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """The bytes by slot and index."""

    def keys(self, name: bytes, epoch: int) -> Iterable[bytes]:
        """Yield the keys of all of them."""
        if self.head is not None:
            yield head_key(name, epoch)
        for slot, index in self.chunks:
            yield chunk_key(name, epoch, slot, index)


class StateRecords:
    """Keeps records by partition, name and epoch; takes them in the changelog's order.

    Parameters
    ----------
    wanted
        Whether a name is one of ours; others are counted, not kept.
    """

    def __init__(self, wanted: Callable[[bytes], bool] = lambda _name: True) -> None:
        self._wanted = wanted
        self._partitions: dict[int, dict[bytes, dict[int, OwnerRecords]]] = {}
        self.n_foreign = 0
        """Records with a key that nobody here writes, or of a model that is not configured."""

    def apply(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Take a record. Never raises: anybody may have written it."""
        match = _KEY.fullmatch(key or b"")
        if match is None or not self._wanted(match["name"]):
            self.n_foreign += 1
            return
        name, epoch = match["name"], int(match["epoch"])
        written = self._partitions.setdefault(partition, {}).setdefault(name, {}).setdefault(epoch, OwnerRecords())
        if match["slot"] is None:
            written.head = value
        else:
            place = int(match["slot"]), int(match["index"])
            if value is None:
                written.chunks.pop(place, None)
            else:
                written.chunks[place] = value
        if written.head is None and not written.chunks:
            del self._partitions[partition][name][epoch]

    def names(self, partition: int) -> list[bytes]:
        """Return the names with a head, in the order of their first record."""
        return [name for name in self._partitions.get(partition, {}) if self.latest(partition, name)]

    def latest(self, partition: int, name: bytes) -> tuple[int, OwnerRecords] | None:
        """Return epoch and records of the newest owner that wrote the name's head; None where there is none."""
        epochs = self.epochs(partition, name)
        newest = max((epoch for epoch, written in epochs.items() if written.head is not None), default=None)
        return None if newest is None else (newest, epochs[newest])

    def epochs(self, partition: int, name: bytes) -> dict[int, OwnerRecords]:
        """Return the records under the name, by epoch."""
        return self._partitions.get(partition, {}).get(name, {})

    def last_epoch(self, partition: int) -> int:
        """Return the highest epoch of any record of the partition; 0 for none."""
        names = self._partitions.get(partition, {}).values()
        return max((epoch for epochs in names for epoch in epochs), default=0)

    def keep_only(self, partitions: Iterable[int]) -> None:
        """Forget every other partition: its next owner writes on, and a regained one is read from the start."""
        self._partitions = {n: names for n, names in self._partitions.items() if n in set(partitions)}
