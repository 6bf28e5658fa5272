"""A changelog partition that is told when to fail, and states to write to it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable

from attributary_agents.state.objects import ObjectStore
from attributary_agents.state.records import StateRecords
from attributary_agents.state.seal import Seal
from attributary_agents.state.store import PartitionStore

KEY = b"k" * 32


Record = tuple[bytes, bytes | None]


class CrashError(Exception):
    """The process ends here."""


class Log:
    """A changelog partition: takes records in their order, until it is told to fail."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.left: int | None = None

    def send(self, partition: int, key: bytes, value: bytes | None) -> Awaitable[object]:
        assert partition == 3
        if self.left is not None:
            if self.left == 0:
                raise CrashError
            self.left -= 1
        self.records.append((key, value))
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def compacted(self, seed: int) -> list[Record]:
        """Some keys with their last record only, as a cleaner leaves it that has come so far."""
        rng = random.Random(seed)
        clean = {key for key in sorted({key for key, _ in self.records}) if rng.random() < 0.5}
        last = {key: n for n, (key, _) in enumerate(self.records)}
        return [
            (key, value)
            for n, (key, value) in enumerate(self.records)
            if key not in clean or (last[key] == n and value is not None)
        ]

    def recovered(self, records: list[Record] | None = None, seal: Seal | None = None) -> StateRecords:
        found = StateRecords(seal=seal)
        for key, value in self.records if records is None else records:
            found.apply(3, key, value)
        return found

    def owner(self, generation: int, seal: Seal | None = None, objects: ObjectStore | None = None) -> PartitionStore:
        return PartitionStore(self.recovered(seal=seal), 3, generation, self.send, seal or Seal(), objects)


def put(store: PartitionStore, name: bytes, blob: bytes) -> None:
    asyncio.run(store.put(name, blob))


def blob(n: int, length: int) -> bytes:
    return random.Random(n).randbytes(length)


LENGTHS = (0, 1, 10, 11, 35, 10, 52, 20, 5, 40, 41, 3)
"""Of states written one after the other: inline and in chunks, longer and shorter than the one before."""
