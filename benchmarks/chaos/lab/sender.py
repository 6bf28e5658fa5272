"""Observations that keep coming while other things happen."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer

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
