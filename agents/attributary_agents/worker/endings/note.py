"""Durable note of a partition: risky work under way, and past endings.

Says what the owner is about to do that could end it, and what has ended owners.

It is stored under a name of its own beside the states, with the same signature.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

FORMAT = 1


@dataclass
class Note:
    """Knowledge of earlier owners that a partition's next owner needs.

    Offsets are those of the observations, unless said otherwise.

    Attributes
    ----------
    is_open
        Whether an owner has begun and not released the partition: where the next one finds it so, it has ended.
    reach
        How far beyond its checkpoint that owner may have come, in offsets.
    observation
        The one that a careful owner is about to handle; -1 for none.
    restore
        The model that a careful owner is about to restore; "" for none.
    deployment
        Offset in the models topic of the deployment that is being built, and how many owners have begun it.
    suspects
        Offset, as text, to the number of owners that ended when they had noted this observation last.
    suspect_models
        Model id to the number of owners that ended when they had noted last that they restore it.
    ended
        Observations that are not to be handled: they end whatever handles them.
    trying
        The suspect for which a process of its own is being made; "" for none.
    trials
        Suspect to the number of owners that ended when they had noted last that they make a process for it.
    """

    is_open: bool = False
    reach: int = 0
    observation: int = -1
    restore: str = ""
    deployment: tuple[int, int] = (-1, 0)
    suspects: dict[str, int] = field(default_factory=dict)
    suspect_models: dict[str, int] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)
    trying: str = ""
    trials: dict[str, int] = field(default_factory=dict)


def encode_note(note: Note) -> bytes:
    """Return the bytes to store."""
    return orjson.dumps({"format": FORMAT, **asdict(note)})


def decode_note(blob: bytes | None) -> Note:
    """Decode the stored note; return an empty note without a usable blob.

    Such a blob is missing, damaged or of another format.
    """
    if blob is None:
        return Note()
    try:
        data: dict[str, Any] = orjson.loads(blob)
        if data.pop("format") != FORMAT:
            return Note()
        return Note(**{**data, "deployment": tuple(data["deployment"])})
    except (ValueError, KeyError, TypeError):
        return Note()
