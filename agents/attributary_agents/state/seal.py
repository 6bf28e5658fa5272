"""Writes and checks the head of a stored state: where its bytes are, their checksum, and a signature.

A head is `ATH1`, one line of JSON, and the bytes themselves where they fit. Nothing is unpickled before its checksum,
and its signature where a key is configured, have been checked. The signature covers the record's key, so that a state
cannot be passed off as another model's or another epoch's.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import asdict, dataclass, replace

import orjson

from ..errors import DamagedStateError, StateError

MAGIC = b"ATH1"


@dataclass(frozen=True)
class Head:
    """The head of a stored state.

    Attributes
    ----------
    size, sha256
        Size and checksum of the bytes, wherever they are.
    chunks, slot
        Number of further records that hold them, 0 where none does, and which of the two generations these are.
    object_name
        Name of the object that holds them, where they are in an object store.
    """

    size: int
    sha256: str
    chunks: int = 0
    slot: int = 0
    object_name: str | None = None
    hmac: str | None = None

    @classmethod
    def of(cls, blob: bytes, *, chunks: int = 0, slot: int = 0, object_name: str | None = None) -> Head:
        """Return the head of these bytes, without a signature."""
        return cls(len(blob), hashlib.sha256(blob).hexdigest(), chunks, slot, object_name)

    @property
    def is_inline(self) -> bool:
        """Whether the bytes stand behind the head itself."""
        return not self.chunks and self.object_name is None


class Seal:
    """Signs heads, and checks the signature of those that are read.

    Parameters
    ----------
    key
        Secret of the HMAC-SHA256; None neither signs nor asks for a signature.
    accept_unsigned
        Whether a head without a signature is taken all the same: while a group changes over to a key.
    """

    def __init__(self, key: bytes | None = None, *, accept_unsigned: bool = False) -> None:
        self._key = key
        self._accept_unsigned = accept_unsigned

    def write(self, record_key: bytes, head: Head, inline: bytes = b"") -> bytes:
        """Return the signed bytes of a state record: the head, then the state where it is inline."""
        signed = replace(head, hmac=self._sign(record_key, head))
        return MAGIC + orjson.dumps(asdict(signed)) + b"\n" + inline

    def read(self, record_key: bytes, value: bytes) -> tuple[Head, bytes]:
        """Return head and inline bytes of a record's value; the signature is checked, the checksum is not yet.

        Raises
        ------
        DamagedStateError
            The value is no head.
        StateError
            It is signed with another key or not at all, and a key is configured.
        """
        line, newline, inline = value.removeprefix(MAGIC).partition(b"\n")
        try:
            if not value.startswith(MAGIC) or not newline:
                raise ValueError(f"begins with {value[:4]!r}")
            head = Head(**orjson.loads(line))
            if not _has_types(head):
                raise ValueError("a field has another type")
        except (ValueError, TypeError) as error:
            raise DamagedStateError(f"is no head of a state ({error})") from None
        if self._key is not None and not self._is_signed(record_key, head):
            how = "with another key" if head.hmac else "not at all"
            raise StateError(
                f"is signed {how}, so it is not read: configure the key that it was written with (state.key); or, "
                "where nobody else can have written it, state.accept_unsigned: true until every state has been written "
                "again, or start the model afresh with `attributary models reset`"
            )
        return head, inline

    def _is_signed(self, record_key: bytes, head: Head) -> bool:
        if head.hmac is None:
            return self._accept_unsigned
        return hmac.compare_digest(head.hmac, self._sign(record_key, head) or "")

    def _sign(self, record_key: bytes, head: Head) -> str | None:
        if self._key is None:
            return None
        text = orjson.dumps(asdict(replace(head, hmac=None)), option=orjson.OPT_SORT_KEYS)
        return hmac.new(self._key, record_key + b"\n" + text, hashlib.sha256).hexdigest()


def check_bytes(head: Head, blob: bytes) -> bytes:
    """Return the bytes if their size and checksum are those in the head.

    Raises
    ------
    DamagedStateError
        Size or checksum differ.
    """
    if len(blob) != head.size or hashlib.sha256(blob).hexdigest() != head.sha256:
        raise DamagedStateError(f"has {len(blob)} bytes of {head.size}, or its checksum is wrong")
    return blob


def _has_types(head: Head) -> bool:
    return (
        all(isinstance(number, int) and number >= 0 for number in (head.size, head.chunks, head.slot))
        and isinstance(head.sha256, str)
        and all(isinstance(text, str | None) for text in (head.object_name, head.hmac))
    )
