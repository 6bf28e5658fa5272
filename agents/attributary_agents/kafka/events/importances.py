"""Importance events of a model, read for the command line."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from attributary_topics import InvalidRecordError, decode_json

from ...config.settings import Config
from ..reading import topic_reader

STEP = 200
"""Offsets at the end of each partition that are read first."""

MOST = 200_000
"""Offsets at the end of each partition beyond which nothing is looked for."""

_LATELY = 10_000


@dataclass(frozen=True)
class ReadImportance:
    """An importance event as the topic has it.

    Attributes
    ----------
    raw
        The record's value, unaltered.
    """

    id: str
    time: str | None
    raw: bytes
    event: dict[str, Any]

    @property
    def explainer(self) -> str:
        """Name of the explainer."""
        return str(self.event["explainer"])


Told = tuple[ReadImportance, ReadImportance | None]
"""An event, and the one of the same explainer before it; None where that is not known."""


async def read_importances(
    config: Config,
    model_id: str,
    *,
    follow: bool = False,
    told: Callable[[int], None] = lambda _: None,
    away: Callable[[bool], None] = lambda _: None,
) -> AsyncGenerator[Told]:
    """Yield the latest importance event of each explainer of a model.

    With `follow`, later events come as they arrive. It reads from the end backwards until it has two of each configured
    explainer, so that it is quick where the topic is long; from `MOST` offsets before the end on it looks no further.
    An event comes once, though the topic may have it twice after a crash.

    Parameters
    ----------
    follow
        Whether to go on with those to come, for ever.
    told
        Called with the number of explainers of which there is an event, when these have been yielded.
    away
        Called with True where brokers do not answer any more while it goes on, and with False when they do again.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    model = config.find(model_id)
    wanted = () if model is None else model.explainers.of_importance
    key, found, on = model_id.encode(), list[Any](), set[int]()

    def of_model(records: list[Any]) -> list[Any]:
        return [record for record in records if record.key == key]

    def is_enough() -> bool:
        events = _events(found, deque())
        return all(sum(one.explainer == name for one in events) > 1 for name in wanted)

    async with topic_reader(config.kafka, config.kafka.topics.importances) as reader:
        # All events of a model are on one partition, that of its id.
        async with aclosing(reader.backwards(STEP, MOST, lambda n: not on or n in on)) as blocks:
            async for records in blocks:
                found = of_model(records) + found
                on.update(record.partition for record in found)
                if is_enough():
                    break
        found.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
        seen: deque[str] = deque(maxlen=_LATELY)
        last: dict[str, Told] = {}
        for one in _events(found, seen):
            last[one.explainer] = one, last[one.explainer][0] if one.explainer in last else None
        for name in sorted(last, key=lambda name: (name not in wanted, name)):
            yield last[name]
        told(len(last))
        if follow:
            async for batch in reader.to_come(away):
                for one in _events(of_model(batch), seen):
                    last[one.explainer] = one, last[one.explainer][0] if one.explainer in last else None
                    yield last[one.explainer]


def _events(records: list[Any], seen: deque[str]) -> list[ReadImportance]:
    """Return the importance events of records that have not been seen.

    Other records are somebody else's, and are passed over.
    """
    events = []
    for record in records:
        headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
        event_id = headers.get("ce_id", f"{record.topic}:{record.partition}:{record.offset}")
        try:
            event = decode_json(record.value or b"")
        except InvalidRecordError:
            continue
        if event_id not in seen and isinstance(event, dict) and {"explainer", "features"} <= event.keys():
            seen.append(event_id)
            events.append(ReadImportance(event_id, headers.get("ce_time"), record.value, event))
    return events
