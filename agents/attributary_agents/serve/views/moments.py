"""Moments of models, read from texts such as `bank@now`.

Others are `bank@2026-11-01T10:00` and `bank@#5543`; comparisons are of two such moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from attributary_topics.times import read_time

from .errors import WrongQuestionError
from .words import name

_REMEDY = "Write MODEL@now, MODEL@2026-11-01T10:00 or MODEL@#OBSERVATION."
_LARGEST = 2**53
_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a model: by time, by observation, or the latest."""

    model_id: str
    time_ms: int | None = None
    observation: int | None = None

    def __str__(self) -> str:
        if self.observation is not None:
            return f"{self.model_id}@#{self.observation}"
        if self.time_ms is not None:
            at = datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")
            return f"{self.model_id}@{at.replace('+00:00', 'Z')}"
        return f"{self.model_id}@now"


def read_moment(text: str) -> Moment:
    """Return the moment that a text names; the last @ ends the model id.

    Raises
    ------
    WrongQuestionError
        It names none.
    """
    model_id, at, moment = text.rpartition("@")
    if not at:
        return Moment(_checked(text, text))
    if moment == "now":
        return Moment(_checked(model_id, text))
    if moment.startswith("#"):
        digits = moment[1:]
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            raise _wrong(text, f"{name(moment)} is no number of an observation")
        return Moment(_checked(model_id, text), observation=int(digits))
    try:
        # A plus of a time zone becomes a space in addresses that are not encoded.
        time_ms = read_time(moment.replace(" ", "+") if "T" in moment else moment)
    except (ValueError, OverflowError):
        raise _wrong(text, f"{name(moment)} is no time") from None
    if not 0 <= time_ms <= _LARGEST:
        raise _wrong(text, f"{name(moment)} is no time since 1970")
    return Moment(_checked(model_id, text), time_ms=time_ms)


def _checked(model_id: str, text: str) -> str:
    if not model_id:
        raise _wrong(text, "there is no model id")
    return model_id


def _wrong(text: str, why: str) -> WrongQuestionError:
    return WrongQuestionError("No such moment", f"'{name(text)}' names no moment of a model: {why}. {_REMEDY}")
