"""Reads dead letters from their topic, for the command line."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import dataclass
from typing import Any

from attributary_topics import DeadLetter, InvalidRecordError, decode_dead_letter

from ...config.settings import Config
from ..reading import topic_reader

Place = tuple[int, int]
"""Partition and offset in the topic of dead letters."""


@dataclass(frozen=True)
class Wanted:
    """Filter of dead letters by reason, model, id and time.

    A dead letter is wanted where all of it applies; an empty part applies to all.

    Attributes
    ----------
    since_ms, until_ms
        When they became dead letters, in milliseconds since the epoch: from the first on, and before the second.
    """

    reasons: Collection[str] = ()
    models: Collection[str] = ()
    ids: Collection[str] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, letter: ReadLetter) -> bool:
        """Return whether a dead letter is wanted."""
        return (
            (not self.reasons or letter.letter.reason in self.reasons)
            and (not self.models or letter.model_id in self.models)
            and (not self.ids or letter.letter.id in self.ids)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
            and (self.until_ms is None or letter.time_ms < self.until_ms)
        )


@dataclass(frozen=True)
class ReadLetter:
    """A dead letter, its place in its topic, and when it became a dead letter.

    `time_ms` is in milliseconds since the epoch.
    """

    letter: DeadLetter
    place: Place
    time_ms: int

    @property
    def model_id(self) -> str:
        """Text of the record's key, which is the model id where it has any."""
        return (self.letter.key or b"").decode("utf-8", "backslashreplace")


async def read_letters(
    config: Config, wanted: Wanted, passed_over: Callable[[int], None] = lambda _: None
) -> AsyncGenerator[ReadLetter]:
    """Yield the dead letters of the topic, each record's only once.

    They come in the order of each partition. The topic may have one twice after a crash; its first is taken.

    Parameters
    ----------
    passed_over
        Called at the end with the number of records that are no dead letters.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    seen: set[str] = set()
    n_others = 0
    async with topic_reader(config.kafka, config.kafka.topics.dead_letters) as reader:
        if wanted.since_ms is not None:
            await reader.begin_at_time(wanted.since_ms)
        async for batch in reader.present():
            for record in batch:
                try:
                    found = _read(record)
                except InvalidRecordError:
                    n_others += 1
                    continue
                if found.letter.id not in seen:
                    seen.add(found.letter.id)
                    if wanted.takes(found):
                        yield found
    passed_over(n_others)


def _read(record: Any) -> ReadLetter:
    letter = decode_dead_letter(record.key, record.value, record.headers)
    return ReadLetter(letter, (record.partition, record.offset), record.timestamp)
