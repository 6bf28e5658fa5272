"""What is corrected of Faust, and the defects for which it is."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
import yaml
from aiokafka.consumer.fetcher import Fetcher
from faust.tables.recovery import Recovery
from faust.transport.consumer import ThreadDelegateConsumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from mode.threads import ServiceThread
from mode.utils.logging import flight_recorder

from attributary_agents.app import create_app
from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.kafka.upstream import PROVED_VERSIONS, faust_consumer
from attributary_agents.kafka.upstream.aiokafka_fetcher import PromptFetcher
from attributary_agents.kafka.upstream.faust_consumer import CommittedThread
from attributary_agents.kafka.upstream.faust_recovery import ExactRecovery

ROOT = Path(__file__).resolve().parents[4]
CONFIG = parse_config(yaml.safe_load(EXAMPLE))


def test_a_rebalance_ends_the_second_reading_of_the_changelog() -> None:
    table = create_app(CONFIG).app.tables["state"]
    ended: list[str] = []

    async def read_again() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("by the rebalance")
            raise
        ended.append("too late: the next recovery has begun")

    async def rebalance() -> None:
        table.read_again = read_again
        completed = asyncio.ensure_future(table.on_recovery_completed(set(), set()))
        for _ in range(5):
            await asyncio.sleep(0)
        await table.on_rebalance(set(), set(), set(), 2)
        await asyncio.wait([completed], timeout=5)
        assert completed.cancelled()

    asyncio.run(rebalance())
    assert ended == ["by the rebalance"]


def test_faust_judges_no_partition_and_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    consumer = create_app(CONFIG).app.consumer
    asyncio.run(consumer.verify_all_partitions_active())
    consumer.verify_recovery_event_path(1e9, TP("t", 0))

    assert "keepalive is not responding" in inspect.getsource(ServiceThread._keepalive2), "the words have changed"
    CommittedThread(consumer, loop=None).log.error("Thread keepalive is not responding...")
    assert caplog.records == []


def test_the_client_of_faust_fetches_promptly(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Fetcher.__new__(Fetcher)
    consumer = SimpleNamespace(_fetcher=made, _coordinator=SimpleNamespace(_group_instance_id=None))

    async def starts(thread: CommittedThread) -> None:
        thread._consumer = consumer

    monkeypatch.setattr(AIOKafkaConsumerThread, "on_start", starts)
    asyncio.run(CommittedThread.__new__(CommittedThread).on_start())
    assert type(made) is PromptFetcher


def test_a_recovery_that_waits_for_what_the_sink_needs_is_no_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    recovery = create_app(CONFIG).app.tables.recovery
    recovery.in_recovery, recovery._recovery_started_at = True, time.monotonic() - 3600

    async def once(*_: object, **__: object) -> AsyncIterator[float]:
        yield 0.0

    recovery.itertimer, recovery.sleep = once, lambda *_: asyncio.sleep(0)
    asyncio.run(ExactRecovery._publish_stats.fun(recovery))
    assert caplog.records == []


def test_a_commit_that_waits_for_brokers_is_told_by_their_watch_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = BrokerWatch()
    monkeypatch.setattr(faust_consumer, "BROKERS", watch)
    consumer = create_app(CONFIG).app.consumer

    def logged() -> list[str]:
        caplog.clear()
        flight_recorder(consumer.log, timeout=1).blush()  # what Faust does when a commit lasts for 300 s
        return caplog.messages

    assert [line.partition("]: ")[2] for line in logged()] == list(faust_consumer._ABOUT_WAITING)
    watch.writes.look({"credit.state[0]": time.monotonic() - 300})
    assert logged() == []
    watch.writes.look({})
    watch.fail("kafka:9092", "refused")
    assert logged() == []


def test_a_worker_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = create_app(CONFIG).app
    app._create_directories()  # what Faust calls when it starts
    assert list(tmp_path.iterdir()) == []


def test_faust_and_aiokafka_are_the_versions_that_the_fixes_were_proved_with() -> None:
    # When this fails: run the restart tests on the new versions, read the tests of this folder that fail, and
    # upstream's changes to the methods that are overridden, and only then move PROVED_VERSIONS.
    pins = (ROOT / "pyproject.toml").read_text()
    for package, version in PROVED_VERSIONS.items():
        assert importlib.metadata.version(package) == version
        assert re.search(rf'"{package}(\[[\w,]+\])?=={re.escape(version)}"', pins)


def test_upstream_reads_what_was_aborted_unless_the_whole_app_is_exact() -> None:
    source = inspect.getsource(AIOKafkaConsumerThread._create_worker_consumer)
    assert 'isolation_level: str = "read_uncommitted"' in source
    assert "if self.consumer.in_transaction" in source


def test_upstream_polls_the_live_set_of_partitions() -> None:
    assert "getmany(active_partitions, timeout)" in inspect.getsource(ThreadDelegateConsumer._getmany)


def test_upstream_resumes_partitions_before_it_seeks() -> None:
    source = inspect.getsource(Recovery._resume_streams)
    assert source.index("resume_partitions") < source.index("perform_seek")


def test_upstream_waits_for_the_record_before_the_end() -> None:
    source = inspect.getsource(Recovery._build_highwaters)
    assert "consumer.highwaters" in source
    assert "value - 1" in source


def test_upstream_raises_at_a_record_without_a_key_in_the_middle_of_a_batch() -> None:
    table = create_app(CONFIG).app.tables["state"]
    event: Any = SimpleNamespace(
        key=None, value=None, message=SimpleNamespace(key=None, value=None, tp=TP("t", 0), offset=0)
    )
    with pytest.raises((AttributeError, KeyError, TypeError)):
        faust.Table.apply_changelog_batch(table, [event])


def test_upstream_makes_folders() -> None:
    assert "mkdir" in inspect.getsource(faust.App._create_directories)
