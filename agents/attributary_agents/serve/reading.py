"""Endless reading of the output topics into the store.

It goes on whatever becomes of the brokers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from attributary_topics import InvalidRecordError, Topics, decode_dead_letter, decode_json, read_time

from ..config.settings import Config
from ..errors import PreflightError, StoreError
from ..kafka.readers import FollowingError, OffsetsGoneError, Place, TopicFollower, topic_follower
from ..kafka.topics.origins import OriginTopic
from .store.rows import Arrived, Kind, Live
from .store.store import DamagedError, Store, StoreFullError

_LATEST_MS = 253_402_300_799_999  # the end of the year 9999


def kinds_of(topics: Topics) -> dict[str, Kind]:
    """Return the topics that are read, each with the kind of its records."""
    return {
        topics.importances: "importance",
        topics.incidents: "incident",
        topics.dead_letters: "dead_letter",
        topics.status: "status",
    }


def arrived(record: Any, kind: Kind) -> Arrived:
    """Return a record in the form that the store takes.

    Raises
    ------
    InvalidRecordError
        It is none that workers write.
    """
    place = int(record.partition), int(record.offset)
    model_id = (record.key or b"").decode("utf-8", "replace")
    if kind == "dead_letter":
        letter = decode_dead_letter(record.key, None, record.headers)
        # When it became one: the original may be of any time.
        return Arrived(
            kind, *place, letter.id, model_id, _sane(record.timestamp), {"reason": letter.reason, "stage": letter.stage}
        )
    if kind == "status":
        event = {} if record.value is None else _object(record.value)
        return Arrived(kind, *place, model_id, model_id, _sane(record.timestamp), event)
    headers = {name: value for name, value in record.headers if name in ("ce_id", "ce_time")}
    event_id = (headers.get("ce_id") or b"").decode("utf-8", "replace")
    event_id = event_id or f"{record.topic}:{record.partition}:{record.offset}"
    time_ms = _time(headers.get("ce_time"))
    return Arrived(
        kind,
        *place,
        event_id,
        model_id,
        _sane(record.timestamp) if time_ms is None else time_ms,
        _object(record.value or b""),
    )


def _object(value: bytes) -> dict[str, Any]:
    event = decode_json(value)
    if not isinstance(event, dict):
        raise InvalidRecordError("wrong_type", "value", "an object", value)
    return event


def _time(value: bytes | None) -> int | None:
    try:
        return None if value is None else _sane(read_time(value.decode("utf-8", "replace")))
    except ValueError:
        return None


def _sane(time_ms: Any) -> int | None:
    return time_ms if isinstance(time_ms, int) and 0 <= time_ms <= _LATEST_MS else None


class MadeAnewError(Exception):
    """A topic was replaced, so the store's records of it are obsolete."""


@dataclass(frozen=True)
class Starts:
    """First offsets of partitions, and their ends at the time of the decision."""

    offsets: Mapping[Place, int]
    ends: Mapping[Place, int]


def check_ids(topics: Mapping[str, OriginTopic], known: Mapping[str, str]) -> None:
    """Raise MadeAnewError where a topic has another id than it had."""
    for name, topic in topics.items():
        if topic.id and known.get(name) not in (None, "", topic.id):
            raise MadeAnewError(f"topic {name} has been made anew")


async def find_starts(
    follower: TopicFollower,
    topics: Mapping[str, OriginTopic],
    positions: Mapping[Place, int],
    whole: str,
    since_ms: int,
) -> Starts:
    """Return the offsets from which to read, and the ends of partitions.

    Parameters
    ----------
    positions
        Where the store has read to.
    whole
        Topic that is read from its beginning, whatever its records' times are: it is compacted.
    since_ms
        Time from which on the others are read where the store has read nothing yet.

    Raises
    ------
    MadeAnewError
        A partition ends before where the store has read to.
    """
    places = [(topic.name, number) for topic in topics.values() for number in topic.partitions]
    if not places:
        return Starts({}, {})
    bounds = await follower.bounds(places)
    for place, (_, end) in bounds.items():
        if positions.get(place, 0) > end:
            raise MadeAnewError(f"{place[0]}[{place[1]}] ends at {end}, and was read to {positions[place]}")
    new = [place for place in places if place not in positions and place[0] != whole]
    found = await follower.offsets_at(new, since_ms) if new else {}
    offsets: dict[Place, int] = {}
    for place, (begin, end) in bounds.items():
        if place in positions:
            offsets[place] = max(positions[place], begin)
        elif place[0] == whole:
            offsets[place] = begin
        else:
            at = found[place]
            offsets[place] = end if at is None else max(at, begin)
    return Starts(offsets, {place: end for place, (_, end) in bounds.items()})


logger = logging.getLogger(__name__)

ASK_EVERY_S = 2.0
"""Seconds between two looks at which topics there are; they tell, too, whether brokers answer."""

AGAIN_AFTER_S = 2.0
"""Seconds after which brokers that do not answer, or a store that cannot be written, are tried again."""

TRIM_EVERY_S = 30.0
"""Seconds between two times that the store is bounded."""

BOUND_EVERY_S = 1.0
"""The same where it is too large, and was so when it had been bounded."""

RELOAD_EVERY_S = 10.0
"""Seconds between two times that pages are told to ask again while a long past is read."""

AT_ONCE = 2000
"""Records that are taken in one transaction, and in the past of how many pages are told each."""

_WAIT_MS = 500
_MS = 1000.0


@dataclass(frozen=True)
class ReadingState:
    """Progress of reading.

    Attributes
    ----------
    broker, broker_since_ms
        Whether brokers answer, and since when that is so.
    is_reading_past, read_share
        Whether it still reads what topics had when it began, and how much of that it has read, in [0, 1].
    last_event_ms
        When it took the last record, by its own clock; None before the first.
    missing
        Topics that are not there yet.
    fault
        Why nothing is taken now, in a sentence; None where all is well.
    n_refused
        Records that were not what workers write, and were passed over.
    n_read
        Topic to how many records were read of it since this process began.
    """

    broker: Literal["answers", "away"]
    broker_since_ms: int | None
    is_reading_past: bool
    read_share: float | None
    last_event_ms: int | None
    missing: tuple[str, ...]
    fault: str | None
    n_refused: int
    n_read: Mapping[str, int] = field(default_factory=dict)


class Reading:
    """Reader for a single store; `run` goes on until it is cancelled.

    Parameters
    ----------
    told
        Called after each transaction with what pages are to be told.
    broker
        Called when brokers do not answer any more, with False, and when they do again, with True; and since when, in
        milliseconds since the epoch.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        *,
        told: Callable[[list[Live]], None] = lambda _: None,
        broker: Callable[[bool, int], None] = lambda _, __: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config, self._store = config, store
        self._told, self._broker, self._clock = told, broker, clock
        self._kinds = kinds_of(config.kafka.topics)
        self._answers: bool | None = None
        self._since_ms = self._heard_ms = self._now_ms()
        self._past: dict[Place, tuple[int, int]] = {}
        self._at: dict[Place, int] = {}
        self._is_past = True
        self._is_long = False
        self._last_event_ms: int | None = None
        self._missing: tuple[str, ...] = ()
        self._fault: str | None = None
        self._n_refused = 0
        self._n_read: Counter[str] = Counter()
        self._is_stuck = False
        self._trimmed = self._asked = self._reloaded = float("-inf")

    def state(self) -> ReadingState:
        """Return the progress of reading."""
        return ReadingState(
            broker="answers" if self._answers else "away",
            broker_since_ms=self._since_ms,
            is_reading_past=self._is_past,
            read_share=self._read_share(),
            last_event_ms=self._last_event_ms,
            missing=self._missing,
            fault=self._fault,
            n_refused=self._n_refused + self._store.n_refused,
            n_read=dict(self._n_read),
        )

    def _read_share(self) -> float | None:
        if not self._past and self._is_past:
            return None
        wanted = sum(end - start for start, end in self._past.values())
        read = sum(min(self._at.get(place, start), end) - start for place, (start, end) in self._past.items())
        return 1.0 if not wanted else max(0.0, min(1.0, read / wanted))

    def _now_ms(self) -> int:
        return int(self._clock() * _MS)

    async def run(self) -> None:
        """Read for ever; log each fault once and try again."""
        while True:
            try:
                async with topic_follower(self._config.kafka) as follower:
                    while True:
                        await self._follow(follower)
            except (PreflightError, *FollowingError) as error:
                self._is_away(str(error) or type(error).__name__)
            except StoreError as error:
                self._say_fault(str(error))
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _follow(self, follower: TopicFollower) -> None:
        """Follow the present topics until they change."""
        topics = await self._find(follower)
        await self._begin(follower, topics)
        generation = self._store.generation
        try:
            while generation == self._store.generation:
                batches = await follower.fetch(_WAIT_MS, AT_ONCE) if self._at else []
                if batches:
                    self._hears()
                    await self._take([record for batch in batches for record in batch])
                if self._is_past:
                    await self._look_at_past(follower)
                if self._clock() - self._asked >= ASK_EVERY_S and await self._are_others(follower, topics):
                    return
                await self._look_after()
                if not self._at:
                    await asyncio.sleep(_WAIT_MS / _MS)
        except OffsetsGoneError:
            return  # where to begin is decided again
        except DamagedError:
            self._told(await asyncio.to_thread(self._store.reload))

    async def _find(self, follower: TopicFollower) -> dict[str, OriginTopic]:
        found = await follower.find(self._kinds)
        self._asked = self._clock()
        self._hears()
        missing = tuple(name for name in self._kinds if name not in found)
        if new := [name for name in missing if name not in self._missing]:
            logger.warning(
                "no topic %s on %s yet: `attributary topics create` makes it, and workers write to it; waiting",
                *(", ".join(new), ", ".join(self._config.kafka.brokers)),
            )
        self._missing = missing
        return found

    async def _begin(self, follower: TopicFollower, topics: dict[str, OriginTopic]) -> None:
        """Decide where to begin; drop all records first if a topic was replaced."""
        since_ms = self._now_ms() - int(self._config.serve.max_age * _MS)
        whole = self._config.kafka.topics.status
        while True:
            positions = await asyncio.to_thread(self._store.positions)
            try:
                check_ids(topics, await asyncio.to_thread(self._store.topics))
                starts = await find_starts(follower, topics, positions, whole, since_ms)
                break
            except MadeAnewError as error:
                logger.warning("%s: what was read of it is dropped, and all topics are read again", error)
                await asyncio.to_thread(self._store.forget)
                self._told(await asyncio.to_thread(self._store.reload))
        await asyncio.to_thread(self._store.note_topics, {name: topic.id for name, topic in topics.items()})
        follower.follow(starts.offsets)
        self._past = {place: (at, starts.ends[place]) for place, at in starts.offsets.items()}
        self._at = dict(starts.offsets)
        self._is_long = sum(end - start for start, end in self._past.values()) > AT_ONCE
        self._is_past = bool(starts.offsets)

    async def _are_others(self, follower: TopicFollower, topics: dict[str, OriginTopic]) -> bool:
        """Return whether the topics or their partitions have changed."""
        try:
            return await self._find(follower) != topics
        except FollowingError as error:
            self._asked = self._clock()
            self._is_away(str(error) or type(error).__name__)
            return False  # the client connects again by itself

    async def _take(self, records: Sequence[Any]) -> None:
        """Take records into the store; while the disk is full, wait."""
        while True:
            try:
                live = await asyncio.to_thread(self._take_now, records)
                break
            except StoreFullError as error:
                self._say_fault(str(error))
                await asyncio.sleep(AGAIN_AFTER_S)
        self._fault = None
        self._last_event_ms = self._now_ms()
        self._told(live)

    def _take_now(self, records: Sequence[Any]) -> list[Live]:
        taken: list[Arrived] = []
        positions: dict[Place, int] = {}
        n_refused = 0
        for record in records:
            positions[record.topic, record.partition] = record.offset + 1
            try:
                taken.append(arrived(record, self._kinds[record.topic]))
            except InvalidRecordError as error:
                n_refused += 1
                if self._n_refused == 0 and n_refused == 1:
                    logger.warning(
                        "%s[%d], offset %d: passed over, since it is not what workers write (%s); further ones are "
                        "counted",
                        *(record.topic, record.partition, record.offset, error),
                    )
        live = self._store.take(taken, positions, live=not (self._is_past and self._is_long))
        self._n_refused += n_refused
        self._n_read.update(record.topic for record in records)
        return live

    async def _look_at_past(self, follower: TopicFollower) -> None:
        """Note how far the past is read, and have pages reload meanwhile.

        Only while a long past is read do they reload, now and then, and once when it is read.
        """
        if not self._past:
            return
        self._at |= await follower.positions(self._past)
        if all(self._at[place] >= end for place, (_, end) in self._past.items()):
            self._is_past = False
        elif self._clock() - self._reloaded < RELOAD_EVERY_S:
            return
        if self._is_long:
            self._reloaded = self._clock()
            self._told(await asyncio.to_thread(self._store.reload))

    async def _look_after(self) -> None:
        """Keep the store within its bounds, and send pending events."""
        now = self._clock()
        is_large = self._store.size() > self._config.serve.max_bytes
        wait_s = TRIM_EVERY_S if not is_large else BOUND_EVERY_S if self._is_stuck else 0.0
        if now - self._trimmed >= wait_s:
            self._trimmed = now
            await asyncio.to_thread(self._store.trim, self._now_ms())
            self._is_stuck = self._store.size() > self._config.serve.max_bytes
        if self._store.has_untold:
            self._told(await asyncio.to_thread(self._store.take, []))

    def _hears(self) -> None:
        self._heard_ms = self._now_ms()
        if not self._answers:
            is_first = self._answers is None
            self._answers, self._since_ms = True, self._heard_ms
            if not is_first:
                logger.info("Kafka answers again")
            self._broker(True, self._since_ms)

    def _is_away(self, why: str) -> None:
        if self._answers is not False:
            self._answers, self._since_ms = False, self._heard_ms
            logger.warning("Kafka does not answer, and what was read is shown until it does: %s", why)
            self._broker(False, self._since_ms)

    def _say_fault(self, fault: str) -> None:
        if self._fault != fault:
            logger.error("%s", fault)
        self._fault = fault
