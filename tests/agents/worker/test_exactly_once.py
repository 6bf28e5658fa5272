"""What a committed transaction contains, and what waits for the next one, with a stand-in for the partition's producer.

A crash after any commit must leave neither an event that no committed state contains, nor a state whose event is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from faust.types import TP

from attributary_agents.config.settings import Config
from attributary_agents.errors import DeliveryError, FencedError
from attributary_agents.kafka import transactions
from attributary_agents.kafka.transactions import Sending
from attributary_agents.state.names import checkpoint_key
from attributary_agents.state.records import StateRecords
from attributary_agents.worker import checkpoint as checkpointing
from attributary_agents.worker import delivery
from attributary_agents.worker import worker as worker_module
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import record_from_client
from attributary_agents.worker.worker import Worker
from tests.agents.stand_ins import DEAD_LETTERS, MODELS, TOPIC, config_of
from tests.agents.worker.test_assigned import GOOD, Broker, Running, event, in_a_loop, record

IDS = ("m0", "m1", "m2")
BAD = b"{poison"


class Topics:
    """What a broker has of the topics: open transactions, and what is committed, in the order of the commits."""

    def __init__(self) -> None:
        self.commits: list[list[Sending]] = []
        self.gate: asyncio.Event | None = None
        """Where it is set, sending waits for it."""
        self.refused: str | None = None
        """A topic whose records are refused."""
        self.owners: dict[int, Producer] = {}

    @property
    def committed(self) -> list[Sending]:
        return [one for commit in self.commits for one in commit]

    def published(self) -> list[tuple[str, bytes]]:
        """Topic and id of what readers of the outputs see."""
        return [(one.topic, _id(one)) for one in self.committed if one.headers]


def _id(one: Sending) -> bytes:
    headers = dict(one.headers)
    return headers.get("ce_id") or headers["attributary-dlq-id"] or b""


class Producer:
    """Stands in for a `PartitionProducer`."""

    def __init__(self, topics: Topics, number: int) -> None:
        self.topics, self.number = topics, number
        self.open: list[Sending] = []
        self.is_open = False
        topics.owners[number] = self

    def _check(self) -> None:
        if self.topics.owners[self.number] is not self:
            raise FencedError("another owner")

    async def begin(self) -> None:
        assert not self.is_open, "one transaction at a time"
        self.is_open = True

    async def send_all(self, records: Iterable[Sending]) -> None:
        records = list(records)
        if self.topics.gate is not None:
            await self.topics.gate.wait()
        await asyncio.sleep(0)
        self._check()
        assert self.is_open
        if any(one.topic == self.topics.refused for one in records):
            raise RuntimeError("refused")
        self.open += records

    async def commit(self) -> None:
        await asyncio.sleep(0)
        self._check()
        self.topics.commits.append(self.open)
        self.open, self.is_open = [], False

    async def stop(self) -> None:
        self.open = []


class Exact(Running):
    """A worker that publishes exactly once."""

    def __init__(self, *model_ids: str, topics: Topics, broker: Broker | None = None, **model: Any) -> None:
        broker = broker or Broker()
        config = config_of(*model_ids, **model).model_copy(update={"delivery": "exactly_once"})
        topics_out = config.kafka.topics.importances, config.kafka.topics.incidents, DEAD_LETTERS
        outputs = dict.fromkeys(topics_out, broker)
        app: Any = broker
        self.broker, self.topics, self.config = broker, topics, config
        self.worker = Worker(app, config, broker, outputs)
        self.take_over(0)

    def take_over(self, number: int) -> None:
        producers = self.worker._shared.producers
        assert producers is not None
        producers._started[number] = Producer(self.topics, number)  # type: ignore[assignment]


def exact(topics: Topics, broker: Broker | None = None) -> Exact:
    return Exact(*IDS, topics=topics, broker=broker, publish={"every": 1}, explainers={"pfi": {}})


def recovered(exact: Exact) -> Broker:
    """A broker whose changelog is what a recovery reads after a crash: notes, and what is committed."""
    after = Broker()
    changelog = exact.config.kafka.changelog
    for one in exact.topics.committed:
        if one.topic == changelog:
            after.sink.apply(one.partition or 0, one.key, one.value)
    return after


def value(n: int) -> bytes:
    return BAD if n % 5 == 3 else b'{"x": {"a": %d.5, "b": %d}, "y": %s}' % (n % 7 - 3, n, (b"true", b"false")[n % 2])


def undisturbed(config: Config, n: int) -> Counter[tuple[str, bytes]]:
    """What is published when nothing is disturbed: topic and id, how often."""
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    return Counter(
        (one.topic, (dict(one.headers).get("ce_id") or dict(one.headers)["attributary-dlq-id"]) or b"")
        for offset in range(n)
        for one in partition.handle(record_from_client(record(offset, value(offset), 0, IDS[offset % 3].encode())))
    )


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every slice be of one model."""
    monkeypatch.setattr(checkpointing, "ENCODE_S", 0.0)
    monkeypatch.setattr(checkpointing, "WRITES_TOGETHER", 1)


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.long) if n % 2 else n for n in range(12)])
@in_a_loop
async def test_after_a_crash_between_any_two_turns_of_the_loop_each_event_is_published_once(
    seed: int, one_by_one: None
) -> None:
    """A checkpoint is made in slices of one model, beside the observations, and the process ends anywhere."""
    rng, n = random.Random(seed), 40
    topics = Topics()
    running = exact(topics)
    (assigned,) = await running.own(1)
    first = 0
    while first < n:
        for offset in range(first, n):
            await running.handle(offset, value(offset), key=IDS[offset % 3].encode())
            if rng.random() < 0.3:
                assigned._storing.schedule.is_due = lambda n_pending: n_pending > 0  # type: ignore[method-assign]
                assigned._storing.begin_where_due()
                assigned._storing.schedule.is_due = lambda n_pending: False  # type: ignore[method-assign]
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)
            if rng.random() < 0.12:
                break  # the process ends here
        else:
            await assigned.checkpoint()
        for task in running.worker.under_way._tasks.values():
            task.cancel()
        await asyncio.gather(*running.worker.under_way._tasks.values(), return_exceptions=True)
        running = exact(topics, recovered(running))
        (assigned,) = await running.own(1)
        first = assigned.partition.checkpointed + 1
        published = Counter(topics.published())
        assert max(published.values(), default=1) == 1, "nothing is published twice"
    assert Counter(topics.published()) == undisturbed(running.config, n), "and nothing is lost"


@in_a_loop
async def test_events_and_states_are_published_together_and_the_offset_is_committed_behind(one_by_one: None) -> None:
    topics = Topics()
    running = exact(topics)
    (assigned,) = await running.own(1)
    for offset in range(6):
        await running.handle(offset, value(offset), key=IDS[offset % 3].encode())
    running.broker.log.clear()
    assert topics.commits == [], "events wait"
    await assigned.checkpoint()
    (commit,) = topics.commits
    changelog = running.config.kafka.changelog
    written = [(one.key or b"").split(b"\0")[0] for one in commit if one.topic == changelog and not _is_note(one)]
    assert sorted(written) == [b"m0", b"m1", b"m2"]
    assert sum(map(_is_note, commit)) == 1, "the checkpoint's own record"
    assert {one.topic for one in commit[:2]} == {changelog}, "what others read comes with the last states"
    assert len(commit) > 4
    assert running.broker.log == [f"commit {TOPIC}[0] 6", "write note/0"]
    assert assigned._delivery.n_bytes == 0


def _is_note(one: Sending) -> bool:
    return (one.key or b"").startswith(checkpoint_key(0))


@in_a_loop
async def test_what_others_read_waits_for_states_that_are_large(
    one_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TOGETHER_BYTES", 0)
    topics = Topics()
    running = exact(topics)
    (assigned,) = await running.own(1)
    for offset in range(6):
        await running.handle(offset, value(offset), key=IDS[offset % 3].encode())
    await assigned.checkpoint()
    (commit,) = topics.commits
    assert [one.topic for one in commit[:3]] == [running.config.kafka.changelog] * 3
    assert len([one for one in commit if one.headers]) > 0


@in_a_loop
async def test_what_is_beyond_the_encoded_state_waits_for_the_next_transaction(one_by_one: None) -> None:
    topics = Topics()
    topics.gate = asyncio.Event()
    running = exact(topics)
    (assigned,) = await running.own(1)
    for offset in range(2):
        await running.handle(offset, GOOD, key=b"m0")
    assigned._storing.schedule.is_due = lambda n_pending: assigned._storing.task is None  # type: ignore[method-assign]
    assigned._storing.begin_where_due()
    for _ in range(20):
        await asyncio.sleep(0)
    await running.handle(2, GOOD, key=b"m0")
    await running.handle(3, BAD, key=b"m0")
    topics.gate.set()
    assert assigned._storing.task is not None
    await assigned._storing.task
    first = topics.published()
    assert len(first) == 1, "the first observation of a model explains nothing; the third is beyond"
    assert DEAD_LETTERS not in dict(first), "of an observation beyond the cut"
    await assigned.checkpoint()
    assert len(topics.published()) == len(set(topics.published())) > len(first)
    assert DEAD_LETTERS in dict(topics.published())


@in_a_loop
async def test_a_fenced_owner_publishes_commits_and_stores_nothing(one_by_one: None) -> None:
    topics = Topics()
    running = exact(topics)
    (assigned,) = await running.own(1)
    await running.handle(0, GOOD, key=b"m0")
    Producer(topics, 0)  # another owner starts
    running.broker.log.clear()
    with pytest.raises(FencedError):
        await assigned.checkpoint()
    await running.handle(1, GOOD, key=b"m0")
    await running.worker.release()
    assert (topics.commits, running.broker.log) == ([], [])


@in_a_loop
async def test_a_refused_record_leaves_the_transaction_uncommitted(one_by_one: None) -> None:
    topics = Topics()
    topics.refused = DEAD_LETTERS
    running = exact(topics)
    (assigned,) = await running.own(1)
    await running.handle(0, GOOD, key=b"m0")
    await running.handle(1, BAD, key=b"m0")
    with pytest.raises(RuntimeError, match="refused"):
        await assigned.checkpoint()
    assert topics.commits == []
    assert f"commit {TOPIC}[0] 2" not in running.broker.log


@in_a_loop
async def test_a_deployment_is_a_transaction_of_its_own_behind_that_of_a_checkpoint(
    one_by_one: None,
) -> None:
    topics = Topics()
    topics.gate = asyncio.Event()
    running = exact(topics)
    running.broker.assigned = {TP(TOPIC, 0), TP(MODELS, 0)}
    (assigned,) = await running.own(1)
    for offset in range(3):
        await running.handle(offset, GOOD, key=IDS[offset].encode())
    assigned._storing.schedule.is_due = lambda n_pending: assigned._storing.task is None  # type: ignore[method-assign]
    assigned._storing.begin_where_due()
    for _ in range(20):
        await asyncio.sleep(0)
    taking = asyncio.ensure_future(running.worker.handle_control(event(MODELS, 0, BAD, key=b"m0")))
    for _ in range(50):
        await asyncio.sleep(0)
    topics.gate.set()
    await taking
    assert len(topics.commits) == 2
    last = [one.topic for one in topics.commits[-1]]
    assert last == [DEAD_LETTERS, running.config.kafka.changelog]
    commits = [line for line in running.broker.log if line.startswith("commit")]
    assert commits == [f"commit {TOPIC}[0] 3", f"commit {MODELS}[0] 1"]


@in_a_loop
async def test_much_that_waits_begins_a_checkpoint_and_holds_the_worker_up(
    one_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_SENT_BYTES", 5000)
    topics = Topics()
    running = exact(topics)
    (assigned,) = await running.own(1)
    for offset in range(60):
        await running.handle(offset, BAD + b" " * 900, key=b"m0")
        assert assigned._delivery.n_bytes <= 5000 + 2 * 1500
    assert len(topics.commits) >= 5
    await assigned.checkpoint()
    assert len(set(topics.published())) == len(topics.published()) == 60


@in_a_loop
async def test_a_partition_without_a_producer_of_its_own_is_not_begun() -> None:
    running = exact(Topics())
    with pytest.raises(DeliveryError, match="has not been recovered"):
        await running.own(2)


@in_a_loop
async def test_what_was_open_when_the_partition_went_is_read_again_from_the_start(
    one_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's own copy of the changelog has what was written, though it may be aborted."""
    monkeypatch.setattr(worker_module, "GRACE_S", 0.05)
    monkeypatch.setattr(transactions, "PartitionProducer", _Started)
    topics = Topics()
    running = exact(topics)
    await running.own(1)
    await running.handle(0, GOOD, key=b"m0")
    topics.refused = running.config.kafka.topics.importances
    await running.handle(1, GOOD, key=b"m0")
    await running.worker.release([0])
    records: StateRecords = running.broker.sink
    assert b"m0" in records.names(0)
    changelog = [TP(running.config.kafka.changelog, number) for number in (0, 1)]
    assert await running.worker.fence_others(changelog, 1.0) == {changelog[0]}
    assert records.names(0) == []
    assert await running.worker.fence_others(changelog, 1.0) == set(), "once"


class _Started:
    """Stands in for a producer whose start succeeds."""

    def __init__(self, _config: Config, number: int, _n_ended: Counter[str]) -> None:
        self.number, self.is_open = number, False

    async def start(self) -> None: ...

    async def stop(self) -> None: ...
