"""Observations that keep coming while other things happen, and how long those of a fast model take."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from support.undisturbed import event_id

from benchmarks.chaos.lab.workload import Sent

_PATIENCE_S = 900


class Sender(threading.Thread):
    """Writes records at a rate, in their order on each partition; waits where the broker is away.

    Parameters
    ----------
    topic
        Of the records that name none.
    rate
        Records per second.
    """

    def __init__(self, bootstrap: str, topic: str, records: Sequence[Sent], rate: float) -> None:
        super().__init__(name="sender", daemon=True)
        self.n_sent = 0
        """Records that the broker has acknowledged."""
        self._brokers = bootstrap
        self._topic = topic
        self._records = records
        self._rate = rate
        self._error: BaseException | None = None
        self._enough = threading.Event()

    def finish_early(self) -> None:
        """Leave the rest of the records, and `finish`."""
        self._enough.set()
        self.finish()

    def finish(self) -> None:
        """Wait until all is written; raise what kept it from being so."""
        self.join()
        if self._error is not None:
            raise RuntimeError(f"only {self.n_sent} of {len(self._records)} records were sent") from self._error

    def check_going(self, when: str) -> None:
        """Raise unless records are still being sent: what has ended it, or that there were too few."""
        if not self.is_alive():
            self.finish()
            raise RuntimeError(f"all {len(self._records)} records were sent before {when}")

    def run(self) -> None:
        """Called by `start`, in the thread."""
        try:
            asyncio.run(self._run())
        except BaseException as error:  # noqa: BLE001 - raised by `finish`
            self._error = error

    async def _run(self) -> None:
        # Idempotent: sent again after a time-out, a batch neither overtakes the next one nor appears twice.
        # The time-out is also how long a full buffer may wait for a broker that is away.
        producer = AIOKafkaProducer(
            bootstrap_servers=self._brokers, enable_idempotence=True, request_timeout_ms=1000 * _PATIENCE_S
        )
        await producer.start()
        try:
            began, waiting = time.monotonic(), set[asyncio.Future[object]]()
            for i, record in enumerate(self._records):
                if self._enough.is_set():
                    break
                if (early := began + i / self._rate - time.monotonic()) > 0.02:
                    await asyncio.sleep(early)
                sent = await producer.send(
                    record.topic or self._topic, record.value, record.key, record.partition, record.time_ms
                )
                waiting.add(sent)
                sent.add_done_callback(waiting.discard)
                sent.add_done_callback(self._count)
            await asyncio.gather(*waiting)
        finally:
            await producer.stop()

    def _count(self, sent: asyncio.Future[object]) -> None:
        if sent.exception() is None:
            self.n_sent += 1
        else:
            self._error = sent.exception()


_EVENT_WITHIN_S = 300.0


@dataclass(frozen=True)
class Beat:
    """One observation, and when its first event could be read; seconds of `time.monotonic`."""

    sent: float
    seen: float

    @property
    def took_s(self) -> float:
        """From one to the other."""
        return self.seen - self.sent


class Pulse(threading.Thread):
    """Sends a model's observations one after another, at a rate, and notes when events of that model come.

    The model must publish at every observation, and every record must be of use. A beat begins when the last one has
    been seen, so the longest beat is the longest pause, but for at most a period.

    Parameters
    ----------
    topics
        That of observations, and that of importances.
    records
        The model's observations, as many as beats at most.
    """

    def __init__(
        self, bootstrap: str, topics: tuple[str, str], records: Sequence[Sent], period_s: float = 0.02
    ) -> None:
        super().__init__(name="pulse", daemon=True)
        self.beats: list[Beat] = []
        self.up = threading.Event()
        self._brokers = bootstrap
        self._topics = topics
        self._records = records
        self._period_s = period_s
        self._done = threading.Event()
        self._error: BaseException | None = None

    def finish(self) -> None:
        """Send no more, and wait for the last event; raise what has kept it from coming."""
        self._done.set()
        self.join()
        if self._error is not None:
            raise RuntimeError(f"no event after {len(self.beats)} observations") from self._error

    def next_after(self, moment: float) -> float:
        """Return when the first beat after a moment of `time.monotonic` began, and the one before it had been seen.

        What that one waited for is so left out: observations that were ahead of it.
        """
        return min((beat.sent for beat in self.beats if beat.sent >= moment), default=moment)

    def longest_s(self, since: float, until: float) -> float:
        """Return the longest beat that was under way between these moments of `time.monotonic`; 0 for none."""
        return max((beat.took_s for beat in self.beats if beat.sent <= until and beat.seen >= since), default=0.0)

    def run(self) -> None:
        """Called by `start`, in the thread."""
        try:
            asyncio.run(self._run())
        except BaseException as error:  # noqa: BLE001 - raised by `finish`
            self._error = error
        finally:
            self.up.set()

    async def _run(self) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self._brokers, enable_idempotence=True)
        consumer = AIOKafkaConsumer(
            self._topics[1], bootstrap_servers=self._brokers, auto_offset_reset="latest", fetch_max_wait_ms=20
        )
        await producer.start()
        await consumer.start()
        try:
            await consumer.seek_to_end()
            self.up.set()
            for record in self._records:
                if self._done.is_set():
                    break
                sent = time.monotonic()
                done = await producer.send_and_wait(self._topics[0], record.value, record.key, record.partition)
                source = f":{done.partition}:{done.offset}:"
                async with asyncio.timeout(_EVENT_WITHIN_S):
                    while source not in event_id((await consumer.getone()).headers):
                        pass
                seen = time.monotonic()
                self.beats.append(Beat(sent, seen))
                await asyncio.sleep(max(sent + self._period_s - seen, 0.0))
        finally:
            await producer.stop()
            await consumer.stop()
