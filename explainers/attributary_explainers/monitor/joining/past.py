"""Remembers joined and expired observations, as hashes of their ids."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from typing import Any, Self

_LABEL_BITS = 32


class Ended(Enum):
    """Fate of an observation."""

    JOINED = "joined"
    EXPIRED = "expired"


def hash_of(text: str) -> int:
    """Return 8 bytes of a text's hash, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Past:
    """Remembers ended observations; the oldest are forgotten first.

    One is remembered for `keep_ms`, in time of the stream; `most` are at once.
    """

    def __init__(self, keep_ms: int, most: int) -> None:
        self._keep_ms, self._most = keep_ms, most
        self._ended: dict[int, int] = {}
        """Hash of the id to when it ended, and to a hash of its label, as one number: a pair takes twice the memory."""

    def __len__(self) -> int:
        return len(self._ended)

    def find(self, key: str) -> Ended | None:
        """Return whether an observation was joined or expired; None if unknown."""
        found = self._ended.get(hash_of(key))
        return None if found is None else Ended.EXPIRED if _label(found) < 0 else Ended.JOINED

    def has_label(self, key: str, y: Any) -> bool:
        """Return whether a joined observation had this label."""
        return _label(self._ended[hash_of(key)]) == _hash_of_label(y)

    def note(self, key: str, watermark: int, y: Any = None, *, ended: Ended) -> None:
        """Remember that an observation has ended now."""
        self._ended[hash_of(key)] = _packed(watermark, -1 if ended is Ended.EXPIRED else _hash_of_label(y))
        if len(self._ended) > self._most:
            del self._ended[next(iter(self._ended))]

    def forget(self, watermark: int) -> None:
        """Forget observations that ended too long ago."""
        for key in [*self._outdated(watermark)]:
            del self._ended[key]

    def _outdated(self, watermark: int) -> Iterator[int]:
        for key, ended in self._ended.items():
            if _ended_at(ended) + self._keep_ms >= watermark:
                return
            yield key

    def snapshot(self) -> dict[str, bytes]:
        """Return plain data to restore from: 24 bytes for each."""
        return {
            "keys": array("Q", self._ended).tobytes(),
            "ended": array("q", map(_ended_at, self._ended.values())).tobytes(),
            "labels": array("q", map(_label, self._ended.values())).tobytes(),
        }

    def restore(self, snapshot: dict[str, bytes]) -> Self:
        """Restore the state from `snapshot`; return this object."""
        keys, ended, labels = (array(code) for code in "Qqq")
        for into, name in ((keys, "keys"), (ended, "ended"), (labels, "labels")):
            into.frombytes(snapshot[name])
        self._ended = {key: _packed(at, label) for key, at, label in zip(keys, ended, labels, strict=True)}
        while len(self._ended) > self._most:
            del self._ended[next(iter(self._ended))]
        return self


def _packed(ended_at: int, label: int) -> int:
    """Pack the time of the end and the label's hash (or -1) into a number."""
    return (ended_at << _LABEL_BITS + 1) | (label + 1)


def _ended_at(packed: int) -> int:
    return packed >> _LABEL_BITS + 1


def _label(packed: int) -> int:
    return (packed & (1 << _LABEL_BITS + 1) - 1) - 1


def _hash_of_label(y: Any) -> int:
    return hash_of(f"{type(y).__name__}:{y}") >> (64 - _LABEL_BITS)
