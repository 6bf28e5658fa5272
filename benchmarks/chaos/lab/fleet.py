"""Workers of one group, and what starts them again when they end: a supervisor as Kubernetes is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from support.kafka import Record, alter_topic, produce
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.kafka.topics import create_topics, topic_specs
from benchmarks.chaos.compare.compare import compare, is_drained, positions
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.sender import Sender
from benchmarks.chaos.lab.workload import Sent

LONGEST_BACK_OFF_S = 15.0

ENOUGH = 20
"""Observations that are handled where the work goes on: fewer may have been fetched before."""


class CrashLoopError(Exception):
    """A worker has ended by itself so often that it will not get anywhere."""


class Member:
    """One worker process with its restarts."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.wanted = False
        self.ended: list[str] = []
        """Every time that it ended by itself: when, the exit code, and its last words."""
        self.n_starts = 0
        self._back_off_s = 1.0
        self._start_at: float | None = None
        self._started_at = 0.0

    def start(self) -> None:
        """Start the process, now."""
        self.wanted = True
        self.n_starts += 1
        self._start_at = None
        self._started_at = time.monotonic()
        self.worker.start()

    def kill(self) -> None:
        """SIGKILL; it is not started again by itself."""
        self.wanted = False
        self.worker.kill()

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        self.wanted = False
        return self.worker.stop()

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.n_starts > 0 and self.worker.exit_code is None

    def samples(self, name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each sample of a metric that has these labels; none while it does not answer."""
        if not self.is_running:
            return []
        found = [(dict(key), value) for key, value in self.worker.samples(name).items()]
        return [(key, value) for key, value in found if labels.items() <= key.items()]

    def partitions(self, topic: str) -> set[int]:
        """Return those of the topic that it says it has; none while it does not answer."""
        return {int(at["partition"]) for at, _ in self.samples("attributary_records_consumed_total", topic=topic)}

    def models(self) -> set[str]:
        """Return the ids of the models that it exports; none while it does not answer."""
        return {at["model_id"] for at, _ in self.samples("attributary_model_observations_total")}

    def watch(self, elapsed_s: float) -> str | None:
        """Start it again if it has ended by itself, later each time; say so when it has just ended."""
        if not self.wanted or self.worker.exit_code is None:
            return None
        now = time.monotonic()
        if self._start_at is None:
            if now - self._started_at > 60:
                self._back_off_s = 1.0
            said = f"{elapsed_s:.1f} s: exit code {self.worker.exit_code}: {last_words(self.worker)}"
            self.ended.append(said)
            self._start_at = now + self._back_off_s
            self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
            return said
        if now >= self._start_at:
            self.start()
        return None


class Fleet:
    """The workers of one group on the lab's broker, with the topics that they need.

    Parameters
    ----------
    raw
        Their configuration, as it would stand in the file.
    most_exits
        How often one worker may end by itself before the scenario is given up.
    bootstrap
        The brokers, with commas between them; the lab's by default.
    """

    def __init__(self, lab: Lab, raw: dict[str, Any], most_exits: int = 5, bootstrap: str | None = None) -> None:
        self.lab = lab
        self.bootstrap = bootstrap or lab.bootstrap
        """The brokers, past every proxy, with commas between them."""
        self._most_exits = most_exits
        self.raw = raw
        self.config: Config = parse_config({**raw, "kafka": {**raw["kafka"], "brokers": self.bootstrap.split(",")}})
        self.members: list[Member] = []
        create_topics(self.config)

    def add(self) -> Member:
        """Start one worker more."""
        # In full each one is started as a user starts it, so that moments come while it is being imported, too.
        member = Member(WorkerProcess(self.raw, self.lab.folder, forked=self.lab.short))
        self.members.append(member)
        member.start()
        return member

    def start(self, n: int) -> None:
        """Start so many workers, and wait until they have their partitions."""
        for _ in range(n):
            self.add()
        self.wait_ready()

    def start_sending(self, records: Sequence[Sent], rate: float) -> Sender:
        """Begin to write observations, so many in a second, while other things happen."""
        sender = Sender(self.bootstrap, self.config.kafka.topics.observations, records, rate)
        sender.start()
        return sender

    def send(self, records: Iterable[Sent], topic: str | None = None) -> None:
        """Write observations, each on its partition; returns when all are there."""
        places: dict[tuple[str, int], list[Record]] = {}
        for one in records:
            place = one.topic or topic or self.config.kafka.topics.observations, one.partition
            row: Record = (one.key, one.value, [])
            places.setdefault(place, []).append(row if one.time_ms is None else (*row[:3], one.time_ms))
        for (name, partition), rows in places.items():
            produce(self.bootstrap, name, rows, partition=partition)

    def watch(self) -> None:
        """Start again what has ended by itself, and is due.

        Raises
        ------
        CrashLoopError
            It has been too often.
        """
        for i, member in enumerate(self.members):
            if said := member.watch(self.lab.elapsed_s):
                self.lab.note(f"worker {i} ended by itself at {said}")
            if len(member.ended) > self._most_exits:
                raise CrashLoopError(f"worker {i} ended by itself {len(member.ended)} times, the last at {said}")

    def wait(self, what: str, condition: Callable[[], bool], timeout_s: float = 180.0, poll_s: float = 0.2) -> bool:
        """Wait until the condition holds, with an eye on the workers; a failed check when it does not in time."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            self.watch()
            if time.monotonic() > deadline:
                self.lab.check(what, False, f"not within {timeout_s:.0f} s; {self._where()}")
                return False
            time.sleep(poll_s)
        return True

    def pause(self, seconds: float) -> None:
        """Wait, with an eye on the workers."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.watch()
            time.sleep(min(left, 0.1))

    def wait_ready(self, timeout_s: float = 90.0) -> bool:
        """Wait until every worker that runs has its partitions and their state."""
        return self.wait(
            "all workers are ready", lambda: all(m.worker.is_ready() for m in self.members if m.wanted), timeout_s
        )

    def exits(self) -> list[str]:
        """Every time that a worker has ended by itself."""
        return [said for member in self.members for said in member.ended]

    def consumed(self) -> int:
        """Observations that the running workers say they have consumed."""
        topic = self.config.kafka.topics.observations
        found = (member.samples("attributary_records_consumed_total", topic=topic) for member in self.members)
        return int(sum(value for samples in found for _, value in samples))

    def wait_going(self, what: str, timeout_s: float, *, before: int, since_s: float) -> None:
        """Wait until more observations are consumed than before, and note how long after that second this is."""
        if self.wait(f"the work goes on {what}", lambda: self.consumed() > before + ENOUGH, timeout_s):
            self.lab.note(f"the work goes on {what}: after {self.lab.elapsed_s - since_s:.1f} s")

    def wait_drained(self, timeout_s: float = 180.0) -> bool:
        """Wait until everything sent so far is handled and committed."""
        return self.wait(
            "everything is handled and committed", lambda: is_drained(self.bootstrap, self.config), timeout_s, 0.5
        )

    def conclude(self, afters: Mapping[tuple[int, int], int] | None = None) -> None:
        """Stop the workers in an orderly way, check that none has ended by itself, and compare; as `compare`."""
        self.stop()
        self.lab.check("no worker ended by itself", not self.exits(), "; ".join(self.exits()[:3]) or "0 exits")
        self.compare(afters)

    def finish(self, timeout_s: float = 180.0) -> None:
        """Wait until all is handled, stop the workers in an orderly way, and compare with the undisturbed run."""
        self.wait_drained(timeout_s)
        self.stop()
        self.compare()

    def stop(self) -> None:
        """Stop all in an orderly way, as soon as they are ready; that each exit code is 0 is a check."""
        self.wait_ready()  # one that is still being imported does not hear the signal
        codes = [member.stop() for member in self.members if member.is_running]
        self.lab.check("a clean stop", not any(codes), f"exit codes {codes}")

    def compare(self, afters: Mapping[tuple[int, int], int] | None = None) -> None:
        """Compare what is stored and sent with the undisturbed run; `afters` as in `undisturbed`."""
        self.lab.show("comparing with the undisturbed run")
        for check in compare(self.bootstrap, self.config, afters):
            self.lab.take(check)

    def _where(self) -> str:
        found = positions(self.bootstrap, self.config, self.config.kafka.topics.observations)
        at = ", ".join(f"[{n}] {done} of {end}" for n, (done, end) in found.items())
        return f"committed {at}; last words: {[last_words(member.worker) for member in self.members]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for member in self.members:
            if member.is_running:
                member.kill()


def last_words(worker: WorkerProcess) -> str:
    """The last line of the log that is one of ours, not a frame of a traceback."""
    lines = worker.log_tail.splitlines()
    said = [line for line in lines if line[:1].isdigit() or line.startswith(("attributary", "Error", "{"))]
    return (said or lines or [""])[-1][:400]


SEGMENT_BYTES = 1_048_576
"""The smallest that Kafka allows."""

SETTINGS = {
    "segment.bytes": str(SEGMENT_BYTES),
    "segment.ms": "5000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "5000",
    "delete.retention.ms": "1000",
    "file.delete.delay.ms": "1000",
}


def compact_soon(fleet: Fleet) -> None:
    """Let the changelog be compacted every few seconds."""
    name = fleet.config.kafka.changelog
    settings = next(spec.settings for spec in topic_specs(fleet.config) if spec.name == name)
    alter_topic(fleet.bootstrap, name, {**settings, **SETTINGS})
