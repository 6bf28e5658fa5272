"""Runs `attributary run` and measures how long its event loop stands still: a program of its own.

    python -m benchmarks.scale.subjects.watched FILE run --config CONFIG

A turn of the loop is what it does between two looks at its sockets: nothing that arrives meanwhile is seen. A look that
does not wait belongs to the turn after it, for another thread may have the interpreter when it ends. Turns are counted
by their length, and those that take long are noted one by one, with what took longest in them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import sys
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

LONG_S = 0.022
"""From which length on a turn is noted by itself."""

STEPS_OF_E = 50
"""Lengths are counted in classes, each 2 % wider than the one before."""

AT_MOST = 3000
"""Long turns that are noted of one phase; the others are counted only."""

WRITTEN_EVERY_S = 0.5
LOOKED_EVERY_S = 0.01


class Turns:
    """Counts the turns of one event loop by phase, and notes those that take long.

    Parameters
    ----------
    phase
        Says in which phase the worker is.
    clock
        Seconds; for tests.
    """

    def __init__(self, phase: Callable[[], str], clock: Callable[[], float] = time.perf_counter) -> None:
        self._phase = phase
        self.clock = clock
        self.counted: dict[str, Counter[int]] = defaultdict(Counter)
        self.long: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.n_handles = 0
        self.gc_s = self.gc_longest_s = self.record_s = 0.0
        self.gc_longest: dict[int, float] = {}
        self.n_scrapes = 0
        self.began: float | None = None
        """When the turn under way began, by `time.perf_counter`; None while the loop waits."""
        self.seen: list[str] = []
        """What another thread has seen the turn under way do."""
        self._cpu = 0.0
        self._longest_s = 0.0
        self._longest: Any = None
        self._phase_before = "checks"

    def begin(self, now: float) -> None:
        """Begin a turn."""
        self.gc_s = self.record_s = self._longest_s = 0.0
        self._longest, self.seen, self._cpu, self.began = None, [], time.thread_time(), now

    def note_handle(self, handle: Any, seconds: float) -> None:
        """Note that the turn under way has run a handle."""
        self.n_handles += 1
        if seconds > self._longest_s:
            self._longest_s, self._longest = seconds, handle

    def end(self, now: float) -> None:
        """End the turn under way."""
        if self.began is None:
            return
        took, self.began = now - self.began, None
        after = self._phase()
        # One in which a checkpoint begins or ends belongs to it.
        phase, self._phase_before = (after if self._phase_before == "steady" else self._phase_before), after
        self.counted[phase][round(STEPS_OF_E * math.log(max(took, 1e-7)))] += 1
        if took >= LONG_S and len(self.long[phase]) < AT_MOST:
            self.long[phase].append(
                {
                    "at": now,
                    "s": took,
                    "cpu_s": time.thread_time() - self._cpu,
                    "gc_s": self.gc_s,
                    "record_s": self.record_s,
                    "handle_s": self._longest_s,
                    "handle": name_of(self._longest),
                    "seen": self.seen,
                    "scraped": self.n_scrapes > 0,
                }
            )
        self._longest = None

    def leave(self) -> None:
        """Forget the turn under way: the loop has ended in it."""
        self.began = None

    def as_data(self, cost: dict[str, float]) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "cost": cost,
            "n_handles": self.n_handles,
            "gc": {str(generation): seconds for generation, seconds in self.gc_longest.items()},
            "counted": {
                phase: {str(k): n for k, n in one.copy().items()} for phase, one in self.counted.copy().items()
            },
            "long": {phase: list(one) for phase, one in self.long.copy().items()},
        }


def name_of(handle: Any) -> str:
    """Return what a handle of the loop runs: of a task its coroutine, and where it waits now."""
    callback = getattr(handle, "_callback", None)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        names: list[str] = []
        while coroutine is not None and hasattr(coroutine, "__qualname__") and len(names) < 12:
            names.append(coroutine.__qualname__)
            coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
        return " > ".join(names)
    return str(getattr(callback, "__qualname__", None) or repr(callback))[:200]


def watch_loop(loop: Any, turns: Turns) -> None:
    """Have the turns of a loop counted, which runs in this thread."""
    selector, clock = loop._selector, turns.clock
    select = selector.select

    def timed(timeout: float | None = None) -> Any:
        before = clock()
        turns.end(before)
        found = select(timeout)
        turns.begin(before if timeout is not None and timeout <= 0.0 else clock())
        return found

    selector.select = timed


def watch_handles(turns: Turns) -> None:
    """Have the handles of all loops timed."""
    run, clock = asyncio.Handle._run, turns.clock
    main_thread = threading.main_thread().ident

    def timed(self: Any) -> None:
        began = clock()
        run(self)
        if threading.get_ident() == main_thread:
            turns.note_handle(self, clock() - began)

    asyncio.Handle._run = timed  # type: ignore[method-assign]


def watch_collections(turns: Turns) -> None:
    """Have Python's collections timed."""
    began = [0.0]

    def called(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
            return
        took, generation = time.perf_counter() - began[0], info["generation"]
        turns.gc_s += took
        turns.gc_longest[generation] = max(turns.gc_longest.get(generation, 0.0), took)

    gc.callbacks.append(called)


def watch_records(turns: Turns) -> None:
    """Have the longest record of each turn timed."""
    from attributary_agents.worker.partition import Partition

    handle, clock = Partition.handle, time.perf_counter

    def timed(self: Partition, record: Any) -> Any:
        began = clock()
        try:
            return handle(self, record)
        finally:
            turns.record_s = max(turns.record_s, clock() - began)

    Partition.handle = timed  # type: ignore[method-assign]


def watch_scrapes(turns: Turns) -> None:
    """Have it noted while a scrape is answered."""
    from attributary_agents.monitoring.metrics import AttributaryCollector

    collect = AttributaryCollector.collect

    def noted(self: AttributaryCollector) -> Any:
        turns.n_scrapes += 1
        try:
            return collect(self)
        finally:
            turns.n_scrapes -= 1

    AttributaryCollector.collect = noted  # type: ignore[method-assign]


def phases() -> Callable[[], str]:
    """Return what says in which phase the worker of this process is: it has to be called before there is one."""
    from attributary_agents.worker.checkpoint import Checkpointing
    from attributary_agents.worker.view import WorkerView

    views: list[WorkerView] = []
    checkpointings: weakref.WeakSet[Checkpointing] = weakref.WeakSet()
    begin_view, begin_checkpointing = WorkerView.__init__, Checkpointing.__init__
    was_ready = [False]

    def made_view(self: WorkerView, *args: Any, **named: Any) -> None:
        begin_view(self, *args, **named)
        views.append(self)

    def made_checkpointing(self: Checkpointing, *args: Any, **named: Any) -> None:
        begin_checkpointing(self, *args, **named)
        checkpointings.add(self)

    WorkerView.__init__ = made_view  # type: ignore[method-assign]
    Checkpointing.__init__ = made_checkpointing  # type: ignore[method-assign]

    def phase() -> str:
        activity = views[-1].activity if views else None
        if activity is None:
            return "checks"  # of the configuration and the topics: no worker is there yet
        if activity.stop_by is not None:
            return "stop"
        if not activity.ready:
            return "rebalance" if was_ready[0] else "start"
        was_ready[0] = True
        steps = activity._steps
        if steps and any(step._kind == "restore" for step in steps.values()):
            return "restore"
        return "checkpoint" if any(one.being_made is not None for one in checkpointings) else "steady"

    return phase


def look(turns: Turns, path: Path, cost: dict[str, float]) -> None:
    """See what a long turn does, and write what is counted: for ever, in a thread."""
    main_thread, written = threading.main_thread().ident, 0.0
    assert main_thread is not None
    while True:
        time.sleep(LOOKED_EVERY_S)
        now, began = time.perf_counter(), turns.began
        if began is not None and now - began > LONG_S and len(turns.seen) < 5:
            turns.seen.append(stack(sys._current_frames().get(main_thread)))
        elif began is None and now - written > WRITTEN_EVERY_S:
            written = now
            write(turns, path, cost)


def write(turns: Turns, path: Path, cost: dict[str, float]) -> None:
    """Write what is counted so far, at once."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(turns.as_data(cost)))
    beside.replace(path)


def stack(frame: FrameType | None) -> str:
    """Return the innermost functions of a thread, the outermost of them first."""
    names: list[str] = []
    while frame is not None and len(names) < 8:
        names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return " > ".join(reversed(names))


def probe_cost(n: int = 20_000) -> dict[str, float]:
    """Return the seconds that the probe takes for a turn and for a handle, measured on a loop that does nothing."""

    def taken(turns: Turns | None) -> tuple[float, float]:
        original = asyncio.Handle._run
        loop = asyncio.new_event_loop()
        if turns is not None:
            watch_handles(turns)
            watch_loop(loop, turns)

        async def turn() -> None:
            for _ in range(n):
                await asyncio.sleep(0)

        async def together() -> None:
            for _ in range(n):
                loop.call_soon(int)
            await asyncio.sleep(0)

        try:
            began = time.perf_counter()
            loop.run_until_complete(turn())
            between = time.perf_counter()
            loop.run_until_complete(together())
            return (between - began) / n, (time.perf_counter() - between) / n
        finally:
            asyncio.Handle._run = original  # type: ignore[method-assign]
            loop.close()

    rounds = [(taken(None), taken(Turns(lambda: "steady"))) for _ in range(3)]
    turn, handle = (min(one[1][k] for one in rounds) - min(one[0][k] for one in rounds) for k in (0, 1))
    return {"turn_s": turn - handle, "handle_s": handle}


def main() -> None:
    """Install the probe, and run the command that follows the file's name."""
    path = Path(sys.argv.pop(1))
    cost = probe_cost()
    turns = Turns(phases())
    watch_handles(turns)
    watch_collections(turns)
    watch_records(turns)
    watch_scrapes(turns)
    run_forever, has_begun = asyncio.BaseEventLoop.run_forever, [False]

    def watched(self: Any) -> None:
        if threading.current_thread() is threading.main_thread() and not hasattr(self, "_is_watched"):
            self._is_watched = True
            watch_loop(self, turns)
            if not has_begun[0]:
                has_begun[0] = True
                threading.Thread(target=look, args=(turns, path, cost), daemon=True).start()
        try:
            run_forever(self)
        finally:
            turns.leave()

    asyncio.BaseEventLoop.run_forever = watched  # type: ignore[method-assign]
    from attributary_agents.cli import main as run

    try:
        run()
    finally:
        write(turns, path, cost)


if __name__ == "__main__":
    main()
