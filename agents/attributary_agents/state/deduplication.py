"""Deduplication: mapped records and replayed dead letters count once.

A mapper may be killed, frozen and woken, or be there twice, and may lose what it sends. Each of its runs sends in the
order of the origin, and commits only positions below which everything is acknowledged. So a record that says what its
run sent before it needs no more than the last one taken of the same origin partition to be judged (go-back-N).

Replayed dead letters are remembered, since a replay may be begun anew.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from attributary_topics import replayed_id
from attributary_topics.origins import Origin, OriginPlace

Outcome = Literal["accepted", "repeat", "early"]

OUTCOMES: tuple[Outcome, ...] = ("accepted", "repeat", "early")
"""`repeat`: it was taken before. `early`: one before it has been lost on its way, and comes again, with this one."""

PASSED_OVER = "passed_over"
"""Of a topic that is read in place of ours: `where` is not true of it, or it has no value."""

MOST_PLACES = 20_000
"""Origin partitions that are known of a partition of ours: bounds what foreign headers can make a worker store."""


class Last(NamedTuple):
    """Last record taken of an origin partition, with the gaps until then."""

    offset: int
    n: int
    gap: int


class Origins:
    """Judge of a partition's mapped records, part of its checkpoint.

    Attributes
    ----------
    counts
        Mapped records by what became of them.
    """

    def __init__(self) -> None:
        self._last: dict[OriginPlace, Last] = {}
        self._gap = 0
        self.counts: Counter[str] = Counter()

    @property
    def n_dropped(self) -> int:
        """Records that were not taken."""
        return self.counts["repeat"] + self.counts["early"] + self.counts[PASSED_OVER]

    def note_passed_over(self) -> None:
        """Count a record of a foreign topic that is no observation.

        Its topic is read in place of ours.
        """
        self.counts[PASSED_OVER] += 1

    @property
    def last(self) -> dict[OriginPlace, Last]:
        """The last record taken of each origin partition."""
        return self._last

    def takes(self, origin: Origin) -> Outcome:
        """Decide about a mapped record, and note the outcome.

        Raises
        ------
        OverflowError
            It is of one origin partition more than `MOST_PLACES`.
        """
        last = self._last.get(origin.place)
        if last is None and len(self._last) >= MOST_PLACES:
            raise OverflowError
        outcome = self._judge(origin, last)
        self.counts[outcome] += 1
        if outcome == "accepted":
            self._last[origin.place] = Last(origin.offset, origin.n, self._gap)
        return outcome

    def _judge(self, origin: Origin, last: Last | None) -> Outcome:
        at, gap = ((-1, 0), 0) if last is None else (last[:2], last.gap)
        if (origin.offset, origin.n) <= at:
            return "repeat"
        # Behind a gap in our topic nobody knows whether what came before was in it: to wait for it could be for ever.
        if not origin.is_first and gap == self._gap and (origin.previous, origin.previous_n) > at:
            return "early"
        return "accepted"

    def note_gap(self) -> None:
        """Note that records of our topic are gone.

        They may have been mapped records.
        """
        self._gap += 1

    def copy(self) -> Origins:
        """Return a copy of the present knowledge."""
        other = Origins()
        other._last, other._gap, other.counts = self._last.copy(), self._gap, self.counts.copy()
        return other

    def encode(self) -> dict[str, Any]:
        """Return it as part of a checkpoint; empty where no record was mapped."""
        if not self.counts and not self._gap:
            return {}
        topics: dict[str, dict[str, list[int]]] = {}
        for (topic, partition), last in self._last.items():
            short = last if last.gap else last[:2] if last.n else last[:1]
            topics.setdefault(topic, {})[str(partition)] = list(short)
        return {"origins": {"counts": dict(self.counts), "gaps": self._gap, "last": topics}}

    @classmethod
    def decode(cls, data: dict[str, Any]) -> Origins:
        """Read it from a checkpoint.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is of another form.
        """
        found, origins = data.get("origins"), cls()
        if found is None:
            return origins
        origins.counts.update(found["counts"])
        origins._gap = int(found["gaps"])
        for topic, partitions in found["last"].items():
            for partition, (offset, *more) in partitions.items():
                origins._last[OriginPlace(topic, int(partition))] = Last(offset, *(*more, 0, 0)[:2])
        return origins

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Origins):
            return NotImplemented
        return (self._last, self._gap, self.counts) == (other._last, other._gap, other.counts)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Origins({len(self._last)} known, {dict(self.counts)})"


MOST = 40_000
"""Dead letters that are remembered of a partition."""

_BYTES = 8

Headers = Sequence[tuple[str, bytes | None]]


class ReplayedLetters:
    """Memory of the dead letters that were sent again and handled.

    It is part of the partition's checkpoint, and so knows what the records up to the checkpoint's offset have been.

    Parameters
    ----------
    hashes
        Of the ids, the oldest first.

    Attributes
    ----------
    n_repeats
        Records that were repeats, since the first record of the partition ever.
    """

    def __init__(self, hashes: bytes = b"", n_repeats: int = 0) -> None:
        parts = (hashes[at : at + _BYTES] for at in range(0, len(hashes), _BYTES))
        self._hashes = dict.fromkeys(int.from_bytes(part) for part in parts)
        self._text: str | None = None
        self.n_repeats = n_repeats

    def is_repeat(self, headers: Headers) -> bool:
        """Return whether a record was handled before, and count or remember it.

        A repeat is counted, any other record is remembered.
        """
        letter = replayed_id(headers)
        if letter is None:
            return False
        if (found := _hash(letter)) in self._hashes:
            self.n_repeats += 1
            return True
        self._hashes[found] = None
        if len(self._hashes) > MOST:
            del self._hashes[next(iter(self._hashes))]
        self._text = None
        return False

    def knows(self, letter_id: bytes | None) -> bool:
        """Return whether the dead letter of this id was handled again.

        None is the id of no dead letter.
        """
        return letter_id is not None and _hash(letter_id) in self._hashes

    def copy(self) -> ReplayedLetters:
        """Return a copy of the present knowledge."""
        other = ReplayedLetters(n_repeats=self.n_repeats)
        other._hashes, other._text = self._hashes.copy(), self._text
        return other

    def encode(self) -> dict[str, Any]:
        """Encode the dead letters as part of a checkpoint.

        Empty where no dead letter has been handled again.
        """
        if not self._hashes:
            return {}
        if self._text is None:
            self._text = base64.b64encode(b"".join(one.to_bytes(_BYTES) for one in self._hashes)).decode()
        return {"replayed": {"repeats": self.n_repeats, "ids": self._text}}

    @classmethod
    def decode(cls, data: dict[str, Any]) -> ReplayedLetters:
        """Read it from a checkpoint.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is of another form.
        """
        found = data.get("replayed")
        if found is None:
            return cls()
        return cls(base64.b64decode(found["ids"], validate=True), int(found["repeats"]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReplayedLetters):
            return NotImplemented
        return (self.n_repeats, list(self._hashes)) == (other.n_repeats, list(other._hashes))

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"ReplayedLetters({len(self._hashes)} known, n_repeats={self.n_repeats})"


def _hash(letter_id: bytes) -> int:
    return int.from_bytes(blake2b(letter_id, digest_size=_BYTES).digest())
