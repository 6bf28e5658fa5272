"""What the running process tells the watch of its brokers, and what the watchdog asks of it."""

from __future__ import annotations

import gc
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.structs import TopicPartition

from attributary_agents import run
from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.worker.activity import Activity, Step

STATE, EVENTS = TopicPartition("credit.state", 0), TopicPartition("credit.importances", 1)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> BrokerWatch:
    """The process's own, of this test alone."""
    fresh = BrokerWatch()
    monkeypatch.setattr(run, "BROKERS", fresh)
    return fresh


def application(activity: Activity, *batches: Any, pending: tuple[Any, ...] = ()) -> Any:
    queues = {batch.tp: deque([batch]) for batch in batches}
    accumulator = SimpleNamespace(_batches=queues, _pending_batches=set(pending))
    producer = SimpleNamespace(_producer=SimpleNamespace(_message_accumulator=accumulator))
    view = SimpleNamespace(activity=activity)
    return SimpleNamespace(app=SimpleNamespace(producer=producer), worker=SimpleNamespace(view=view))


class Batch:
    """A producer's, of so many seconds ago."""

    def __init__(self, tp: TopicPartition, age_s: float) -> None:
        self.tp, self._ctime = tp, time.monotonic() - age_s


def test_batches_that_are_queued_or_sent_wait(watch: BrokerWatch) -> None:
    run._look_at_writes(application(Activity(), Batch(STATE, 20), Batch(EVENTS, 40), pending=(Batch(STATE, 90),)))
    assert watch.writes.names == "credit.state[0], credit.importances[1]"
    assert 90 <= watch.writes.age_s < 95
    assert run._waits_for_brokers()
    run._look_at_writes(application(Activity(), Batch(STATE, 0.5)))
    assert not run._waits_for_brokers(), "it is under way"


def test_a_commit_of_offsets_that_nobody_acknowledges_is_no_stall(watch: BrokerWatch) -> None:
    activity = Activity()
    with activity.doing(step := Step("checkpoint", ("credit.observations", 0), 7)):
        step.n_kafka_waits, step.waits_since = 1, time.monotonic() - 60
        run._look_at_writes(application(activity))
        assert watch.writes.names == "checkpoint at credit.observations[0]@7"
        assert run._waits_for_brokers()
    run._look_at_writes(application(activity))
    assert not run._waits_for_brokers()


def test_before_the_producer_there_is_nothing_to_wait_for(watch: BrokerWatch) -> None:
    early = application(Activity())
    early.app.producer._producer = None
    run._look_at_writes(early)
    assert watch.writes.age_s == 0


def test_a_worker_begins_with_what_was_imported_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each full collection looks through it, while the event loop stands still."""
    left: list[int] = []
    monkeypatch.setattr(run, "_run", lambda *_: left.append(len(gc.get_objects())) or 0)
    monkeypatch.setattr(run, "_prepare", lambda *_, **__: None)
    config = parse_config({"models": {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}, "web": {"port": 0}})
    gc.unfreeze()
    before = len(gc.get_objects())
    try:
        assert run._work(config, wait=True) == 0
    finally:
        gc.unfreeze()
    assert left[0] < before / 100
