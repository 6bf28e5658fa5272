"""Memory of replayed dead letters, so that each counts once.

A replay may be begun anew.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from attributary_topics import replayed_id

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
