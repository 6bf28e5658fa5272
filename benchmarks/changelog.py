"""How large the state's changelog becomes by its topic's settings, on a real Kafka: `python -m benchmarks.changelog`.

A restart reads all that the changelog has, so what counts is its size as a multiple of the live state: of what is left
when only the newest record of each key counts. One partition for each pair of settings and state. A small state is
stored every ten seconds for a quarter of an hour, by the records' timestamps, after which Kafka closes segments; the
cleaner pauses for as long as ten seconds take here. A large one, whose changelog follows from its bytes, is stored
a few times.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.kafka.topics.specs import CHANGELOG_SETTINGS

STORED_EVERY_S = 10.0
TAKES_S = 0.5
"""What the ten seconds between two checkpoints take here."""
SMALL_FOR_S = 900.0
CLEANER_PAUSE_MS = round(15_000 * TAKES_S / STORED_EVERY_S)
QUIET_S = 4.0

MB = 1024 * 1024


class State(NamedTuple):
    """What is stored at once: so many records of so many bytes."""

    name: str
    records: int
    size: int

    @property
    def live(self) -> int:
        """Bytes that are left when only the newest record of each key counts."""
        return self.records * self.size


SMALL = (State("20 kB", 2, 10_000), State("1 MB", 50, 20_000))
LARGE = State("100 MB", 200, 500_000)
LARGE_TIMES = 6


def settings_of(segment_mb: int, ratio: float, close_s: int | None = None) -> dict[str, str]:
    """Return a changelog's settings: bytes of a segment, share of older records, seconds until a segment is closed."""
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": str(segment_mb * MB),
        "min.cleanable.dirty.ratio": str(ratio),
    }
    return settings if close_s is None else {**settings, "segment.ms": str(close_s * 1000)}


CANDIDATES = {
    "64 MB, 0.2": settings_of(64, 0.2),
    "1 MB, 0.2": settings_of(1, 0.2),
    "16 MB, 10 min, 0.3": settings_of(16, 0.3, 600),
    "16 MB, 60 s, 0.5": settings_of(16, 0.5, 60),
    "16 MB, 60 s, 0.3": settings_of(16, 0.3, 60),
    "16 MB, 20 s, 0.3": settings_of(16, 0.3, 20),
}


class FastBroker(KafkaBroker):
    """A broker whose cleaner pauses for a shorter time, as the checkpoints do."""

    _start_timeout_s = 240.0

    def _properties(self, data: Path) -> str:
        return f"{super()._properties(data)}log.cleaner.backoff.ms={CLEANER_PAUSE_MS}\n"

    def segments(self, topic: str) -> list[int]:
        """Return the bytes of the segments of the topic's partition 0."""
        assert self._dir is not None
        return [size for path in (self._dir / "data" / f"{topic}-0").glob("*.log") for size in _size(path)]

    @property
    def written(self) -> int:
        """Bytes that the process has written so far, those to clients included."""
        lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def _size(path: Path) -> Iterator[int]:
    try:
        yield path.stat().st_size
    except OSError:  # compacted away since
        return


@dataclass
class Measured:
    """One topic: bytes seen, most of them, and how many segments there were at most."""

    sizes: list[int]
    segments: int = 0
    written: float = 0.0

    def see(self, segments: list[int]) -> None:
        """Note what there is now."""
        self.sizes.append(sum(segments))
        self.segments = max(self.segments, len(segments))


async def _store(producer: AIOKafkaProducer, topic: str, state: State, at_s: float) -> None:
    value, at_ms = os.urandom(state.size), round(at_s * 1000)
    sent = [await producer.send(topic, value, b"%d" % n, 0, timestamp_ms=at_ms) for n in range(state.records)]
    await asyncio.gather(*sent)


async def _create(broker: FastBroker, topics: dict[str, dict[str, str]]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        wanted = [NewTopic(name, 1, 1, topic_configs=settings) for name, settings in topics.items()]
        answer = await admin.create_topics(wanted)
        if wrong := [error for error in answer.topic_errors if error[1]]:
            raise RuntimeError(str(wrong))
    finally:
        await admin.close()


async def measure_small(broker: FastBroker, for_s: float) -> dict[tuple[str, str], Measured]:
    """Store all small states under all settings side by side; return sizes from the second half."""
    pairs = [(candidate, state) for candidate in CANDIDATES for state in SMALL]
    topics = {pair: f"small-{n}" for n, pair in enumerate(pairs)}
    await _create(broker, {topics[pair]: CANDIDATES[pair[0]] for pair in pairs})
    found = {(candidate, state.name): Measured([]) for candidate, state in pairs}
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", linger_ms=5) as producer:
        began, times = time.time(), round(for_s / STORED_EVERY_S)
        for n in range(times):
            at_s = began - for_s + n * STORED_EVERY_S
            await asyncio.gather(*(_store(producer, topics[pair], pair[1], at_s) for pair in pairs))
            await asyncio.sleep(TAKES_S)
            for pair in pairs:
                if n > times / 2:
                    found[pair[0], pair[1].name].see(broker.segments(topics[pair]))
    return found


async def measure_large(broker: FastBroker, candidate: str) -> Measured:
    """Store the large state a few times under one setting; return the size once nothing is compacted any more."""
    topic, found = f"large-{list(CANDIDATES).index(candidate)}", Measured([])
    await _create(broker, {topic: CANDIDATES[candidate]})
    before = broker.written
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", linger_ms=5) as producer:
        for n in range(LARGE_TIMES):
            await _store(producer, topic, LARGE, time.time() + (n - LARGE_TIMES) * STORED_EVERY_S)
            await asyncio.sleep(TAKES_S)
    last, since = sum(broker.segments(topic)), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        await asyncio.sleep(0.2)
        if (now := sum(broker.segments(topic))) != last:
            last, since = now, time.monotonic()
    found.see(broker.segments(topic))
    found.written = (broker.written - before) / (LARGE_TIMES * LARGE.live)
    return found


@click.command()
@click.option(
    "--minutes",
    default=SMALL_FOR_S / 60,
    help="How long the small states are stored (0: not), by the records' timestamps.",
)
@click.option("--large/--no-large", default=True, help="Whether the large state is stored, too.")
@click.option("--only", multiple=True, help="Try these settings alone, as the table names them.")
def main(minutes: float, large: bool, only: tuple[str, ...]) -> None:
    """Print the size of the changelog under each setting."""
    for name in [name for name in CANDIDATES if only and name not in only]:
        del CANDIDATES[name]
    chosen = next((name for name, settings in CANDIDATES.items() if settings == CHANGELOG_SETTINGS), "none of them")
    print(f"settings of `attributary topics create`: {chosen}")
    with tempfile.TemporaryDirectory() as folder, FastBroker(Path(folder) / "broker") as broker:
        small = asyncio.run(measure_small(broker, minutes * 60)) if minutes else {}
        print("\nsize of the changelog, as a multiple of the live state: mean, most; number of segments at most\n")
        print(f"| segment, closed after, ratio | {' | '.join(state.name for state in SMALL)} |")
        print(f"| --- |{' --- |' * len(SMALL)}")
        for candidate in CANDIDATES if small else ():
            cells = []
            for state in SMALL:
                one = small[candidate, state.name]
                mean = sum(one.sizes) / len(one.sizes) / state.live
                cells.append(f"{mean:.1f}, {max(one.sizes) / state.live:.1f}; {one.segments}")
            print(f"| {candidate} | {' | '.join(cells)} |")
        if not large:
            return
        print(f"\n{LARGE.name}, stored {LARGE_TIMES} times, in {LARGE.records} records\n")
        print("| segment, closed after, ratio | multiple of the live state | segments | written per byte stored |")
        print("| --- | --- | --- | --- |")
        for candidate in CANDIDATES:
            one = asyncio.run(measure_large(broker, candidate))
            print(
                f"| {candidate} | {one.sizes[-1] / LARGE.live:.2f} | {one.segments} | {one.written:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
