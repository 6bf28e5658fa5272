"""Log of unusable records: counts and reasons, no values or keys."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from attributary_topics import REASONS, InvalidRecordError

from ..config.settings import Config
from ..errors import without_text

logger = logging.getLogger(__name__)

EVERY_S = 60.0
"""Seconds between two lines about one reason."""

_MAX_PLACES = 200
"""Distinct places that are counted apart between two lines; what comes beyond them is counted together."""

_SHOWN = 3
"""Places that a line names, the most frequent first."""

_ELSEWHERE = "elsewhere"


@dataclass
class _Held:
    """Dead letters of a reason that are not in the log yet."""

    said_at: float
    places: Counter[str] = field(default_factory=Counter)


class DeadLetterLog:
    """Log of dead letters, limited to a line per reason and minute.

    The first of a reason is logged at once, those after it by their number.

    A line names the reason, the configured model, the stage, and the field where its name is ours or declared. A key
    that is no model's id, the name of a feature that is not declared, and whatever the text of an exception holds may
    come from the record: they are in the headers of the dead letter alone.

    Parameters
    ----------
    config
        Says which models there are, and which features they declare.
    clock
        Seconds.
    """

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._held: dict[str, _Held] = {}

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Log a dead letter, or count it for the next line about its reason.

        Parameters
        ----------
        key
            The record's.
        where
            Topic, partition and offset of the record.
        """
        place = self._place(key, stage, error)
        held = self._held.get(reason)
        if held is None:
            self._held[reason] = _Held(self._clock())
            topic = self._config.kafka.topics.dead_letters
            logger.warning(
                "dead letter: %s (%s), %s; %s has the record, %s", reason, _meaning(reason), place, topic, where
            )
            return
        held.places[place if place in held.places or len(held.places) < _MAX_PLACES else _ELSEWHERE] += 1
        self.say_due()

    def say_due(self) -> None:
        """Log the counts of each reason that was not logged for a minute."""
        now = self._clock()
        for reason, held in list(self._held.items()):
            if now - held.said_at < EVERY_S:
                continue
            if held.places:
                self._say(reason, now)
            else:
                del self._held[reason]  # the next one is the first again

    def say_rest(self) -> None:
        """Log all remaining counts, at a stop or at the end of a file."""
        now = self._clock()
        for reason, held in list(self._held.items()):
            if held.places:
                self._say(reason, now)
        self._held.clear()

    def _say(self, reason: str, now: float) -> None:
        held = self._held[reason]
        shown = [f"{place}: {n}" for place, n in held.places.most_common(_SHOWN)]
        others = held.places.total() - sum(n for _, n in held.places.most_common(_SHOWN))
        logger.warning(
            "%d more dead letters in %.0f s: %s (%s), %s",
            held.places.total(),
            now - held.said_at,
            reason,
            _meaning(reason),
            "; ".join([*shown, *([f"others: {others}"] if others else [])]),
        )
        self._held[reason] = _Held(now)

    def _place(self, key: bytes | None, stage: str, error: Exception) -> str:
        """Return the place of a fault, without anything from the record.

        Names the model, the stage, and the field or type of exception.
        """
        finder = self._config.finder
        model_id = finder.id_of_key(key)
        if model_id is None:
            return f"no configured model, at {stage}"
        name = finder.name_of(model_id) or model_id  # of a template's models all together: there are thousands
        if not isinstance(error, InvalidRecordError):
            return f"model {name}, at {stage}: {without_text(error)}"
        return f"model {name}, at {stage}: {_field(error.field, self._config.models[name].features or ())}"


_OURS = ("key", "value", "x", "y", "y_pred", "id", "time", "model_id", "attributary-record", "attributary-origin")
"""Names of fields that are those of the contract, whatever a record holds."""


def _field(path: str, declared: Container[str]) -> str:
    """Return the field of a fault, as far as its name is ours or declared."""
    if path.startswith("x."):
        return path if path.removeprefix("x.") in declared else "a feature that is not declared"
    return path if path in _OURS else "another field"


def _meaning(reason: str) -> str:
    return REASONS.get(reason, reason)
