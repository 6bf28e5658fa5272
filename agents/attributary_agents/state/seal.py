"""Head of a stored state: where its bytes are, checksum and signature.

A head is `ATH1`, one line of JSON, and the bytes themselves where they fit. Nothing is unpickled before its checksum,
and its signature where a key is configured, have been checked. The signature covers the record's key, so that a state
cannot be passed off as another model's or another epoch's.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import asdict, dataclass, replace

import orjson

from ..config.settings import Config
from ..errors import DamagedStateError, StateError

MAGIC = b"ATH1"

BEGUN_TO_SIGN = (
    "If this group has run without state.key until now, set state.accept_unsigned: true for the first start with the "
    "key, which signs what is stored. If it has not, somebody else has written it"
)
"""What to do about a state without a signature."""


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
    """Signatures of heads: signing and checking.

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
        """Return the signed bytes of a state record: head, then inline state."""
        signed = replace(head, hmac=self._sign(record_key, head))
        return MAGIC + orjson.dumps(asdict(signed)) + b"\n" + inline

    def read(self, record_key: bytes, value: bytes) -> tuple[Head, bytes]:
        """Return head and inline bytes of a record, after checking its signature.

        The checksum is not checked yet.

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
            if head.hmac is None:
                raise StateError(f"is not signed, so it is not read. {BEGUN_TO_SIGN}")
            raise StateError(
                "is signed with another key, so it is not read: configure the key that it was written with (state.key)"
            )
        return head, inline

    @property
    def is_signing(self) -> bool:
        """Whether there is a key."""
        return self._key is not None

    @property
    def signs_unsigned(self) -> bool:
        """Whether states without a signature are taken, and are to be signed."""
        return self.is_signing and self._accept_unsigned

    def trusts(self, record_key: bytes, value: bytes) -> bool | None:
        """Return whether a record's value is signed with our key.

        None where that cannot be told, and need not be. It need not be without a key, nor of a head without a signature
        that is accepted all the same.
        """
        if self._key is None:
            return None
        try:
            head, _ = self.read(record_key, value)
        except StateError:
            return False
        return None if head.hmac is None else True

    def _is_signed(self, record_key: bytes, head: Head) -> bool:
        if head.hmac is None:
            return self._accept_unsigned
        return hmac.compare_digest(head.hmac, self._sign(record_key, head) or "")

    def _sign(self, record_key: bytes, head: Head) -> str | None:
        if self._key is None:
            return None
        text = orjson.dumps(asdict(replace(head, hmac=None)), option=orjson.OPT_SORT_KEYS)
        return hmac.new(self._key, record_key + b"\n" + text, hashlib.sha256).hexdigest()


def seal_of(config: Config) -> Seal:
    """Return the seal that signs and checks as the configuration says."""
    return Seal(config.state.read_key(), accept_unsigned=config.state.accept_unsigned)


def check_bytes(head: Head, blob: bytes) -> bytes:
    """Return the bytes if their size and checksum match the head.

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
