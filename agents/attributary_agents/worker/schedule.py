"""Schedule of a partition: when checkpoints are due, whose turn it is.

Checkpoints are made often enough for a short replay, seldom enough to cost little. They are counted in seconds, so a
replay stores at other moments; what is published does not depend on it. What is due runs beside the tick that has found
it due: the tick itself waits for nothing, so that it comes each second.

Models are restored and checkpoints stored in slices, which share the event loop with records. Records come first: after
a slice, of whichever partition, those that wait have at least as long as it took. Where none waits, the next slice
follows at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from ..config.settings import CheckpointConfig


class CheckpointSchedule:
    """Schedule that decides when a partition's state is stored.

    A checkpoint is wanted every `interval_s` seconds, or after `max_observations`. It is put off while it would cost
    more than the share `max_share` of the time since the last one, measured by what the last one took; but never
    beyond `max_replay_s` seconds of work, which is what a crash repeats, and as much again while one is being made.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, config: CheckpointConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._stored_at = clock()
        self._cost_s = 0.0
        self.work_s = 0.0
        """Time that the observations since the last checkpoint took."""

    def add_work(self, seconds: float) -> None:
        """Add the seconds that an observation took."""
        self.work_s += seconds

    def record_checkpoint(self, cost_s: float, work_s: float = 0.0) -> None:
        """Start a new interval after a checkpoint that cost `cost_s`.

        It has kept the worker from other work for so many seconds.

        Parameters
        ----------
        work_s
            Time that the observations took which were handled meanwhile, and are not in the checkpoint.
        """
        self._stored_at, self._cost_s, self.work_s = self._clock(), cost_s, work_s

    def is_far(self, n_beyond: int, work_s: float) -> bool:
        """Return whether handling must wait until the checkpoint is made.

        The checkpoint is the one under way.

        Parameters
        ----------
        n_beyond, work_s
            Offsets that have been handled since it began, and the time that they took.
        """
        return n_beyond >= self._config.max_observations or work_s >= self._config.max_replay_s

    def is_due(self, n_pending: int) -> bool:
        """Return whether to store now.

        Parameters
        ----------
        n_pending
            Offsets that are handled and not stored.
        """
        if not n_pending:
            return False
        if self.work_s >= self._config.max_replay_s:
            return True
        elapsed = self._clock() - self._stored_at
        wanted = elapsed >= self._config.interval_s or n_pending >= self._config.max_observations
        return wanted and self._cost_s <= self._config.max_share * (elapsed + self._cost_s)


class UnderWay:
    """Running tasks, at most a single task of each name.

    Failures are handed on.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def start(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Return the running task for a name, starting it if needed.

        A task that has failed stays until `check` has raised its failure.
        """
        earlier = self._tasks.get(name)
        if earlier is None or (earlier.done() and (earlier.cancelled() or earlier.exception() is None)):
            self._tasks[name] = asyncio.ensure_future(work())
        return self._tasks[name]

    def check(self) -> None:
        """Forget ended tasks, and raise the first failure among them."""
        ended = {name: task for name, task in self._tasks.items() if task.done()}
        failures = [error for task in ended.values() if not task.cancelled() and (error := task.exception())]
        for name in ended:
            del self._tasks[name]
        if failures:
            raise failures[0]

    async def settle(self) -> None:
        """Wait until all that is under way has ended; it still fails in `check`."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def cancel(self) -> None:
        """Cancel all running tasks, ignoring failures.

        The process stops, and nobody is left to be told of a failure.
        """
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()


RESTORE_S = 0.02
"""How long the models of one slice are restored; a model of which this takes longer is a slice of its own."""

ENCODE_S = 0.01
"""The same of encoding states for a checkpoint. An event may wait for several slices, one in each step of its way."""

LOOK_S = 0.001
"""How long a record has to show that it waits."""

_HOPS = 10
"""Turns of the event loop that a fetched record takes at most until it shows: a slice has held all of them up."""


class Slices:
    """Tells when the next slice may begin, for all partitions of a worker.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._n_records = 0
        self._records_until = clock()
        self._turn = asyncio.Lock()

    def note_record(self) -> None:
        """Note that a record waits to be handled."""
        self._n_records += 1

    def note_slice(self, seconds: float) -> None:
        """Note that a slice has taken so long."""
        self._records_until = max(self._records_until, self._clock()) + seconds

    async def rest(self) -> None:
        """Wait until records have had as much time as the slices before.

        Only a single slice at a time goes on.
        """
        async with self._turn:
            while self._clock() < self._records_until:
                before = self._n_records
                await asyncio.sleep(LOOK_S)
                for _ in range(_HOPS):
                    await asyncio.sleep(0)
                if self._n_records == before:
                    break
            await asyncio.sleep(0)


class Steps:
    """Lock that runs a partition's steps in sequence and notes a failure.

    What a failed step has handled may be stored in part, or not be sent: nothing further may be stored or committed.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._n_waiting = 0
        self.has_failed = False

    @property
    def is_running(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._lock.locked()

    @property
    def is_free(self) -> bool:
        """Whether a step would begin at once: none is running, and none waits."""
        return not (self._lock.locked() or self._n_waiting)

    async def __aenter__(self) -> None:
        self._n_waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._n_waiting -= 1

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._lock.release()
        self.has_failed |= kind is not None and issubclass(kind, Exception)  # being cancelled is no failure
