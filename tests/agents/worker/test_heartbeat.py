"""Statuses of models: which are due, what they say, and what a worker does where they cannot be written."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from aiokafka.errors import TopicAuthorizationFailedError

from attributary_agents.errors import DamagedStateError
from attributary_agents.kafka.observations import encode_value
from attributary_agents.worker import heartbeat
from attributary_agents.worker.heartbeat import EVERY_S, Heartbeat, status_of
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers.monitor.explainers import new_loss_watch
from attributary_topics import STATES
from tests.agents.monitoring.views import config_of
from tests.agents.stand_ins import TOPIC, observations


class Topic:
    """Takes statuses; `fails` is raised in place of that."""

    def __init__(self, *, there: bool = True) -> None:
        self.there, self.fails, self.asked = there, None, 0
        self.sent: list[dict[str, Any]] = []

    fails: Exception | None

    async def is_there(self) -> bool:
        self.asked += 1
        return self.there

    async def send(self, records: list[tuple[bytes, bytes]]) -> None:
        if self.fails is not None:
            raise self.fails
        told = [{"key": key.decode(), **json.loads(value)} for key, value in records]
        assert all(one["key"] == one["model_id"] for one in told)
        self.sent += told

    async def close(self) -> None:
        self.asked = -1


class Beats:
    """A heartbeat with a topic and a clock of its own."""

    def __init__(self, **options: Any) -> None:
        self.now, self.topic = 1000.0, Topic(**options)
        self.heartbeat = Heartbeat("attributary.status.v1", self.topic, lambda: self.now)
        self.partition = partition_of()
        self.is_ours = True

    def second(self, *model_ids: str, seconds: float = 1.0) -> list[str]:
        """A second in which these models have changed; return whose status was sent."""
        before = len(self.topic.sent)

        async def run() -> None:
            self.heartbeat.note(self.partition, model_ids)
            self.heartbeat.tick(lambda _: self.is_ours)
            await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))

        self.now += seconds
        asyncio.run(run())
        return [one["model_id"] for one in self.topic.sent[before:]]


def partition_of(n: int = 0, *model_ids: str, flip_at: int = 25, **model: Any) -> Partition:
    partition = Partition(TOPIC, 3, config_of(*(model_ids or ("m", "n")), **model), lambda _key: None)
    handle(partition, n, flip_at=flip_at)
    return partition


def handle(partition: Partition, n: int, model_id: str = "m", flip_at: int = 25) -> None:
    for one in observations(n, flip_at=flip_at):
        value = encode_value({"x": one.x, "y": one.y})
        partition.handle(Record(TOPIC, 3, partition.offset + 1, 1_700_000_000_500, model_id.encode(), value))


def test_a_model_that_has_changed_is_told_at_most_once_in_so_long_and_later_all_the_same() -> None:
    beats = Beats()
    handle(beats.partition, 1)
    told_at = [second for second in range(1, 91) if beats.second(*(["m"] if second < 50 else []))]
    assert told_at == [1, 1 + EVERY_S, 1 + 2 * EVERY_S], "the last one is of what changed up to the 50th second"
    assert beats.second(seconds=1000) == []


def test_a_worker_tells_so_many_in_a_second_and_each_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 5
    monkeypatch.setattr(heartbeat, "PER_SECOND", most)
    ids = [f"m{n}" for n in range(3 * most)]
    beats = Beats()
    beats.partition = partition_of(0, *ids)
    one = observations(1)[0]
    for n, model_id in enumerate(ids):
        value = encode_value({"x": one.x, "y": one.y})
        beats.partition.handle(Record(TOPIC, 3, n, 0, model_id.encode(), value))
    told = [beats.second(*ids) for _ in range(5)]
    assert [len(some) for some in told] == [most, most, most, 0, 0]
    assert [model_id for some in told for model_id in some] == ids


def test_what_it_says_of_a_model() -> None:
    beats = Beats()
    handle(beats.partition, 4, flip_at=99)
    beats.partition.handle(Record(TOPIC, 3, 4, 0, b"m", b'{"x": {"a": "text"}, "y": true}'))
    beats.second("m")
    handle(beats.partition, 90, flip_at=99)
    beats.second("m", seconds=45.0)
    first, second = beats.topic.sent
    assert first == {
        "key": "m",
        "model_id": "m",
        "state": "learning",
        "model_version": "v3",
        "n_observations": 4,
        "n_refused": 1,
        "observations_per_second": None,
        "event_time": "2023-11-14T22:13:20.500Z",
        "partition": 3,
        "guard": {
            "since": None,
            "waits_for": {"name": "labelled observations", "n": 4, "needed": 1344},
            "reach": None,
            "sentence": "not judged yet: 4 labelled observations of 1 344",
        },
    }
    assert (second["n_observations"], second["observations_per_second"]) == (94, 2.0)


def test_a_guard_counts_as_the_model_does_and_a_loss_that_is_not_watched_has_none() -> None:
    partition = partition_of(100, learn=False)
    state = partition.models["m"]
    assert state.loss_watch is not None
    state.loss_watch = new_loss_watch("m", state.settings, state.model)  # as after a restart with other settings
    handle(partition, 300)
    status = status_of(partition, "m", None)
    assert status is not None
    assert status.guard is not None
    assert status.guard.since == 356
    assert status.guard.reach is not None
    assert status.guard.sentence.startswith("guarded since observation 356: would see a rise of the error from ")
    unwatched = status_of(partition_of(10, watch_loss=False), "m", None)
    assert unwatched is not None
    assert unwatched.guard is None


def test_the_states_of_a_model_that_learns_is_explained_and_changes() -> None:
    partition = partition_of(0, publish={"every": 30, "min_observations": 30, "reference_after": 10})
    seen = []
    for one in observations(300, flip_at=150):
        value = encode_value({"x": one.x, "y": one.y})
        partition.handle(Record(TOPIC, 3, partition.offset + 1, 0, b"m", value))
        status = status_of(partition, "m", None)
        assert status is not None
        watch = partition.models["m"].incident_watch
        assert watch is not None
        assert (status.state == "changed") is (watch.open is not None)
        seen.append(status.state)
    assert seen[:29] == ["learning"] * 29
    assert seen[29] == "explained"
    assert "changed" in seen[150:]
    assert set(seen) <= STATES.keys()


def test_a_refused_model_is_told_once() -> None:
    beats = Beats()
    beats.partition.models.refused["n"] = DamagedStateError("torn")
    assert beats.second() == ["n"]
    assert beats.second(seconds=100) == []
    (told,) = beats.topic.sent
    assert (told["state"], told["model_version"], told["n_observations"]) == ("refused", None, None)


def test_of_a_partition_that_has_gone_its_next_owner_tells() -> None:
    beats = Beats()
    handle(beats.partition, 1)
    beats.is_ours = False
    assert beats.second("m") == []
    beats.is_ours = True
    assert beats.second() == []


def test_without_the_topic_the_log_says_once_what_makes_it(caplog: pytest.LogCaptureFixture) -> None:
    beats = Beats(there=False)
    handle(beats.partition, 1)
    for _ in range(100):
        assert beats.second("m") == []
    assert beats.topic.asked == 1
    (line,) = caplog.messages
    assert line.startswith("there is no topic attributary.status.v1, or this user may not describe it, so nobody")
    assert "`attributary topics create`" in line


def test_what_cannot_be_written_is_said_once_until_it_can_be_written_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    beats = Beats()
    handle(beats.partition, 1)
    beats.topic.fails = TopicAuthorizationFailedError("attributary.status.v1")
    for _ in range(100):
        beats.second("m")
    assert len(caplog.messages) == 1
    assert "statuses cannot be written (TopicAuthorizationFailedError" in caplog.messages[0]
    assert "the worker goes on" in caplog.messages[0]
    beats.topic.fails = None
    assert [beats.second("m") for _ in range(40)].count(["m"]) >= 1
    assert caplog.messages[1:] == ["attributary.status.v1: statuses are written again"]


def test_while_some_are_under_way_no_others_are_sent() -> None:
    beats = Beats()
    handle(beats.partition, 1)
    waits = asyncio.Event()
    n_calls = 0

    async def slow(_records: object) -> None:
        nonlocal n_calls
        n_calls += 1
        await waits.wait()

    beats.topic.send = slow  # type: ignore[method-assign, assignment]

    async def run() -> None:
        for _ in range(100):
            beats.now += EVERY_S
            beats.heartbeat.note(beats.partition, ["m"])
            beats.heartbeat.tick(lambda _: True)
            await asyncio.sleep(0)
        await beats.heartbeat.close()

    asyncio.run(run())
    assert n_calls == 1
    assert beats.topic.asked == -1, "the topic is closed"
