"""How long a fast model's observations take to become events: what the longest pause of its worker is."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from support.undisturbed import event_id

from benchmarks.chaos.lab.workload import Sent

_PATIENCE_S = 300.0


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
                async with asyncio.timeout(_PATIENCE_S):
                    while source not in event_id((await consumer.getone()).headers):
                        pass
                seen = time.monotonic()
                self.beats.append(Beat(sent, seen))
                await asyncio.sleep(max(sent + self._period_s - seen, 0.0))
        finally:
            await producer.stop()
            await consumer.stop()
