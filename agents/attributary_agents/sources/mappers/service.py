"""Service that maps this process's share of the configured sources."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable, Collection

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import BrokerResponseError, UnknownTopicOrPartitionError

from ...config.settings import Config
from ...errors import AttributaryError, BrokersAwayError, PreflightError, without_text
from ...kafka.clients import STARTED_WITHIN_S, client_fault, client_options
from ...kafka.topics.origins import ask_with_ids
from ...kafka.upstream.aiokafka_consumer import client_of
from .board import SourcesBoard
from .mapper import FAILURES, Mapper, ends_quietly
from .reader import OriginsChangedError
from .units import Unit, claims_group, units_of

logger = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Seconds between the end of a run and the next one, at first and at most; some are added at random."""

STOPS_WITHIN_S = 5.0


class MapperService:
    """Service that maps the units assigned to this process, until stopped."""

    def __init__(self, config: Config, board: SourcesBoard) -> None:
        self._config, self.board = config, board
        self.units = units_of(config)
        self._stop = asyncio.Event()
        self._running: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._ended: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Map until `stop`; whatever goes wrong is said in a line and tried again."""
        if not self.units:
            return
        for unit in self.units:
            logger.info("sources: %s are mapped together, merged by time", ", ".join(unit.sections))
        try:
            await self._again("mapping", self._stop, self._claim)
        finally:
            await self._follow(set(), 0)
            for task in list(self._ended):
                await ends_quietly(task, STOPS_WITHIN_S)

    def stop(self) -> None:
        """Make `run` end, after pending records are sent and committed."""
        self._stop.set()

    async def _claim(self) -> None:
        async def follow(places: set[int], n: int) -> None:
            await self._follow(places, n)

        try:
            await Claims(self._config, follow).run(self._stop)
        finally:
            await self._follow(set(), 0)

    async def _follow(self, places: set[int], n: int) -> None:
        """Start mapping the units newly assigned here, and stop all others."""
        ours = {unit.name: unit for unit in self.units if n and unit.place(n) in places}
        for name in self._running.keys() - ours.keys():
            stop, task = self._running.pop(name)
            stop.set()
            self._ended.add(task)
            task.add_done_callback(self._ended.discard)
        for name in ours.keys() - self._running.keys():
            stop = asyncio.Event()
            task = asyncio.ensure_future(self._map(ours[name], stop))
            self._running[name] = (stop, task)

    async def _map(self, unit: Unit, stop: asyncio.Event) -> None:
        async def run() -> None:
            await Mapper(self._config, unit, self.board).run(stop)

        try:
            await self._again(f"mapping {', '.join(unit.sections)}", stop, run)
        finally:
            if unit.name not in self._running:  # or it is mapped here again already
                for name in unit.sections:
                    self.board.close(name)

    async def _again(self, what: str, stop: asyncio.Event, run: Callable[[], Awaitable[None]]) -> None:
        """Repeat a coroutine until `stop`; log the same failure only once."""
        pause_s, told = FIRST_PAUSE_S, ""
        while not stop.is_set():
            began = asyncio.get_running_loop().time()
            try:
                await run()
                continue
            except OriginsChangedError:
                logger.info("%s: a topic has got partitions, or is another one: it begins again", what)
                continue
            except BrokersAwayError as error:
                said = f"waits for brokers: {error.causes}"
            except AttributaryError as error:
                said = str(error)
            except FAILURES as error:
                said = f"{type(error).__name__}: {error}"
                if isinstance(error, BrokerResponseError) and not error.retriable:  # a right is missing, mostly
                    said = str(await client_fault(self._config.kafka, error))
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # Seen where a broker went away while records were read. Nobody has told this task to end.
                said = "a request was cancelled, as where a broker goes away"
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end the worker
                said = without_text(error)
            if asyncio.get_running_loop().time() - began > LONGEST_PAUSE_S:
                pause_s, told = FIRST_PAUSE_S, ""
            if said != told:
                logger.warning("%s has stopped, and begins again by itself: %s", what, said)
            told = said
            try:
                async with asyncio.timeout(pause_s * random.uniform(0.8, 1.2)):
                    await stop.wait()
            except TimeoutError:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def map_once(config: Config, board: SourcesBoard, progress: Callable[[int, int], None] | None = None) -> None:
    """Map all present records in this process, whoever else maps them.

    Raises
    ------
    AttributaryError
        A topic is not there or not what it was, or brokers are away: what was mapped until then is committed.
    """
    for unit in units_of(config):
        while True:
            try:
                await Mapper(config, unit, board, once=True, progress=progress).run(asyncio.Event())
                break
            except OriginsChangedError:
                continue


SESSION_MS = 10_000
"""A process that is silent for so long maps no longer; short, since to be wrong about that does no harm."""

Follow = Callable[[set[int], int], Awaitable[None]]


class Claims(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is untyped
    """Membership of this process in the group of mappers.

    The group's topic has no records: who has a partition of it maps the units that belong there. Two processes at once,
    for a moment, are harmless: what both send is taken once.

    Parameters
    ----------
    follow
        Called with the partitions that are ours, and how many there are, whenever that changes.
    """

    def __init__(self, config: Config, follow: Follow) -> None:
        self._config, self._follow = config, follow
        self._n_places = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Keep up the membership until `stop`.

        Raises
        ------
        PreflightError
            The topic is missing.
        KafkaError
            Brokers are away or refuse.
        """
        kafka = self._config.kafka
        topic = kafka.topics.sources
        client = AIOKafkaConsumer(
            **client_options(kafka),
            group_id=claims_group(kafka.group),
            client_id=f"{socket.gethostname()}-{os.getpid()}",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 5,
            max_poll_interval_ms=2_000_000_000,
        )
        try:
            async with asyncio.timeout(STARTED_WITHIN_S):
                await client.start()
            found = await ask_with_ids(client_of(client), [topic])
            if topic not in found:
                raise PreflightError(f"missing topics: {topic} (make them with `attributary topics create`)")
            self._n_places = len(found[topic].partitions)
            client.subscribe([topic], listener=self)
            while not stop.is_set():
                try:
                    await client.getmany(timeout_ms=1000)
                except UnknownTopicOrPartitionError:  # it was deleted
                    raise PreflightError(f"the topic {topic} is gone: `attributary topics create` makes it") from None
        finally:
            await client.stop()

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Keep mapping until the new assignment: two mappers at once do no harm."""

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Map the units of the assigned partitions from now on."""
        await self._follow({place.partition for place in assigned}, self._n_places)
