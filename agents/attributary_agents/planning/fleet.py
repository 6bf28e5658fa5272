"""Simulates a fleet of workers, record by record or in packets: what waits, and for how long, as members change.

Discrete events: a packet arrives, a packet is handled, a member comes, goes or dies, the group is assigned anew. Time
is simulated; nothing is slept. Rules of the group are those of the worker: at every change all members stop, store what
they have and are assigned anew; a member that is killed is missed after the session timeout, and what its partitions
had handled since their checkpoints is handled again.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .assignment import assign

_ARRIVAL, _HANDLED, _MEMBER, _ASSIGN, _RESUME, _SAMPLE = range(6)
KINDS = ("kill", "leave", "join")


class Change(NamedTuple):
    """A member of the group that comes, goes in good order, or is killed.

    `kind` is one of `KINDS`; `worker` is its number: a new one, of a member that joins.
    """

    at_s: float
    kind: str
    worker: int


@dataclass(frozen=True)
class Scenario:
    """What is simulated.

    Attributes
    ----------
    rate
        Records a second, over all partitions alike.
    service_s, service_cv2
        Seconds to handle one record, and their squared coefficient of variation: 0 always the same, 1 exponential.
    packet
        Records that arrive and are handled together: waits are read in steps of as many. 1 is exact.
    checkpoint_s, checkpoint_cost_s
        Seconds between two checkpoints of a partition, and what one keeps its worker from other work.
    session_timeout_s
        After so long a killed member is missed.
    assign_s
        Nobody handles anything for so long, at each change of the group.
    restore_s
        To restore the state of one partition that is new to a worker.
    """

    partitions: int
    workers: int
    rate: float
    service_s: float
    service_cv2: float = 0.0
    seconds: float = 60.0
    packet: int = 1
    checkpoint_s: float = 10.0
    checkpoint_cost_s: float = 0.0
    session_timeout_s: float = 60.0
    assign_s: float = 3.0
    restore_s: float = 0.5
    changes: tuple[Change, ...] = ()
    sample_s: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Sample:
    """What was found at one moment, of the time since the one before.

    Attributes
    ----------
    produced, handled, repeated
        Records so far: sent, handled for the first time, handled again.
    waiting
        Records that are sent and not handled yet, those in hand included; `waiting_most` of the worst partition.
    wait_p50_s, wait_p99_s
        From a record's arrival until it is handled, of those handled since; None where there were none.
    members
        Workers that are alive.
    """

    at_s: float
    produced: int
    handled: int
    repeated: int
    waiting: int
    waiting_most: int
    wait_p50_s: float | None
    wait_p99_s: float | None
    members: int


class SimulationError(Exception):
    """Says that records were lost or made up: a fault of the simulation."""


@dataclass
class _Worker:
    is_alive: bool = True
    paused_until: float = 0.0
    turn: int = 0
    """A packet in hand of an earlier turn is no longer there when it would have been handled."""
    in_hand: tuple[int, float, bool] | None = None
    order: deque[int] = field(default_factory=deque)
    """Partitions of the packets that wait, in the order of their arrival."""


class Fleet:
    """Plays a scenario: iterate over `play()`.

    Attributes
    ----------
    first_waits
        Sum and number of the seconds that packets waited before they were begun, those handled again left out.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.now = 0.0
        self.first_waits = (0.0, 0)
        self._rng = random.Random(scenario.seed)
        self._workers = {number: _Worker() for number in range(scenario.workers)}
        self._owner = assign(scenario.partitions, list(self._workers), {})
        self._waiting: list[deque[tuple[float, bool]]] = [deque() for _ in range(scenario.partitions)]
        self._since: list[list[float]] = [[] for _ in range(scenario.partitions)]
        self._stored_at = [0.0] * scenario.partitions
        self._waits: list[float] = []
        self._produced = self._handled = self._repeated = 0
        self._events: list[tuple[float, int, int, Any]] = []
        self._n_events = 0
        self._arrivals_s = scenario.packet / scenario.rate
        self._push(self._rng.expovariate(1.0 / self._arrivals_s), _ARRIVAL)
        self._push(scenario.sample_s, _SAMPLE)
        for change in scenario.changes:
            self._push(change.at_s, _MEMBER, change)

    @property
    def owner(self) -> dict[int, int]:
        """Partition to the worker that has it; of a killed one until it is missed."""
        return dict(self._owner)

    def play(self) -> Iterator[Sample]:
        """Yield a sample at each `sample_s`, until the end.

        Raises
        ------
        SimulationError
            What was produced is not what was handled and what waits.
        """
        take: dict[int, Callable[[Any], None]] = {
            _HANDLED: self._finish,
            _MEMBER: self._change,
            _ASSIGN: lambda _none: self._assign(),
            _RESUME: self._begin,
        }
        events, end = self._events, self.scenario.seconds + 1e-9
        while events and events[0][0] <= end:
            self.now, kind, _, what = heapq.heappop(events)
            if kind == _ARRIVAL:
                self._arrive()
            elif kind == _SAMPLE:
                self._push(self.now + self.scenario.sample_s, _SAMPLE)
                yield self._sample()
            else:
                take[kind](what)

    def _push(self, at: float, kind: int, what: Any = None) -> None:
        self._n_events += 1  # of equal times the earlier one first, and nothing else is compared
        heapq.heappush(self._events, (at, kind, self._n_events, what))

    def _arrive(self) -> None:
        partition = self._rng.randrange(self.scenario.partitions)
        self._produced += 1
        self._waiting[partition].append((self.now, False))
        number = self._owner[partition]
        self._workers[number].order.append(partition)
        self._begin(number)
        self._push(self.now + self._rng.expovariate(1.0 / self._arrivals_s), _ARRIVAL)

    def _begin(self, number: int) -> None:
        """Let a worker take the next packet in hand, if it may."""
        worker = self._workers[number]
        if worker.in_hand is not None or not worker.order or not worker.is_alive or self.now < worker.paused_until:
            return
        partition = worker.order.popleft()
        arrived, is_repeated = self._waiting[partition].popleft()
        worker.in_hand = partition, arrived, is_repeated
        if not is_repeated:
            total, n = self.first_waits
            self.first_waits = total + self.now - arrived, n + 1
        takes = self._service_s()
        if self.now - self._stored_at[partition] >= self.scenario.checkpoint_s:
            self._store(partition)
            takes += self.scenario.checkpoint_cost_s
        self._push(self.now + takes, _HANDLED, (number, worker.turn))

    def _service_s(self) -> float:
        scenario = self.scenario
        mean = scenario.service_s * scenario.packet
        if not scenario.service_cv2:
            return mean
        shape = scenario.packet / scenario.service_cv2  # a sum of so many, each with that variation
        return self._rng.gammavariate(shape, mean / shape)

    def _finish(self, what: tuple[int, int]) -> None:
        number, turn = what
        worker = self._workers[number]
        if worker.turn != turn or worker.in_hand is None:
            return
        partition, arrived, is_repeated = worker.in_hand
        worker.in_hand = None
        self._since[partition].append(arrived)
        if is_repeated:
            self._repeated += 1
        else:
            self._handled += 1
            self._waits.append(self.now - arrived)
        self._begin(number)

    def _store(self, partition: int) -> None:
        self._since[partition].clear()
        self._stored_at[partition] = self.now

    def _change(self, change: Change) -> None:
        worker = self._workers.get(change.worker)
        if change.kind == "join":
            self._workers[change.worker] = _Worker()
            self._assign()
        elif worker is None or not worker.is_alive:
            return
        elif change.kind == "leave":
            self._stop(worker)
            for partition in self._of(change.worker):
                self._store(partition)
            self._assign()
        else:
            self._stop(worker)
            for partition in self._of(change.worker):
                again = self._since[partition]
                self._waiting[partition].extendleft((arrived, True) for arrived in reversed(again))
                again.clear()
            self._push(self.now + self.scenario.session_timeout_s, _ASSIGN)

    def _stop(self, worker: _Worker) -> None:
        """Let a worker be gone: what it has in hand waits again."""
        worker.is_alive = False
        worker.turn += 1
        if worker.in_hand is not None:
            partition, arrived, is_repeated = worker.in_hand
            self._waiting[partition].appendleft((arrived, is_repeated))
            worker.in_hand = None

    def _of(self, number: int) -> list[int]:
        return [partition for partition, owner in self._owner.items() if owner == number]

    def _assign(self) -> None:
        """Assign all partitions anew: every member stores what it has, stops, and restores what is new to it."""
        scenario = self.scenario
        members = [number for number, worker in self._workers.items() if worker.is_alive]
        if not members:
            return
        before, self._owner = self._owner, assign(scenario.partitions, members, self._owner)
        n_new = dict.fromkeys(members, 0)
        waiting: dict[int, list[tuple[float, int]]] = {number: [] for number in members}
        for partition, number in self._owner.items():
            if self._workers[before[partition]].is_alive:
                self._store(partition)
            n_new[number] += before[partition] != number
            waiting[number] += [(arrived, partition) for arrived, _ in self._waiting[partition]]
        for worker in self._workers.values():
            worker.order.clear()
        for number in members:
            worker = self._workers[number]
            # By arrival, and within a partition as they stand: the sort is stable, and theirs are in order.
            worker.order.extend(partition for _, partition in sorted(waiting[number], key=lambda one: one[0]))
            worker.paused_until = self.now + scenario.assign_s + scenario.restore_s * n_new[number]
            self._push(worker.paused_until, _RESUME, number)

    def _sample(self) -> Sample:
        packet = self.scenario.packet
        in_hand: dict[int, int] = {}
        for worker in self._workers.values():
            if worker.in_hand is not None and not worker.in_hand[2]:
                in_hand[worker.in_hand[0]] = in_hand.get(worker.in_hand[0], 0) + 1
        waiting = [
            sum(not is_repeated for _, is_repeated in queue) + in_hand.get(partition, 0)
            for partition, queue in enumerate(self._waiting)
        ]
        if self._produced != self._handled + sum(waiting):
            raise SimulationError(
                f"at {self.now:g} s: {self._produced} packets were produced, {self._handled} handled, "
                f"and {sum(waiting)} wait"
            )
        waits = sorted(self._waits)
        self._waits.clear()
        return Sample(
            self.now,
            packet * self._produced,
            packet * self._handled,
            packet * self._repeated,
            packet * sum(waiting),
            packet * max(waiting),
            _quantile(waits, 0.5),
            _quantile(waits, 0.99),
            sum(worker.is_alive for worker in self._workers.values()),
        )


def _quantile(ordered: list[float], q: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else None
