"""The application holds exactly the agents, topics and tables that it is meant to hold, and nothing by discovery."""

import asyncio
import importlib.metadata
import inspect
import logging
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP
from mode.utils.logging import flight_recorder

from attributary_agents.app import create_app
from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.errors import StateError
from attributary_agents.kafka import faust_fixes
from attributary_agents.kafka.aiokafka_fixes import PromptFetcher
from attributary_agents.kafka.brokers import connection
from attributary_agents.kafka.brokers.watch import BrokerWatch
from attributary_agents.kafka.faust_fixes import PROVED_VERSIONS, CommittedThread, ExactConsumer, ExactRecovery
from attributary_agents.kafka.topics import topic_specs
from tests.agents.stand_ins import FACTORY

ROOT = Path(__file__).resolve().parents[2]
CONFIG = parse_config(yaml.safe_load(EXAMPLE))


def test_agents_topics_and_tables_are_exactly_these() -> None:
    application = create_app(CONFIG)
    app = application.app
    assert set(app.agents) == {"attributary.observations", "attributary.models"}
    assert set(app.tables) == {"state"}
    assert {name: list(agent.channel.topics) for name, agent in app.agents.items()} == {
        "attributary.observations": ["attributary.observations.v1"],
        "attributary.models": ["attributary.models.v1"],
    }
    assert set(application.worker.outputs) == {
        "attributary.importances.v1",
        "attributary.incidents.v1",
        "attributary.dead-letters.v1",
    }
    assert app.tables["state"].changelog_topic.get_topic_name() == "attributary-state-changelog"


def test_what_the_app_uses_is_what_topics_create_makes() -> None:
    application = create_app(CONFIG)
    used = {"attributary.observations.v1", "attributary.models.v1", *application.worker.outputs, CONFIG.kafka.changelog}
    # The topic of statuses has a producer of its own, and is the only one that a worker can do without.
    assert {spec.name for spec in topic_specs(CONFIG) if spec.is_needed} == used
    assert [spec.name for spec in topic_specs(CONFIG) if not spec.is_needed] == ["attributary.status.v1"]


def test_two_apps_in_one_process_share_nothing() -> None:
    first, second = create_app(CONFIG), create_app(CONFIG)
    assert first.app is not second.app
    assert first.worker is not second.worker


def test_the_settings_that_exact_state_rests_on() -> None:
    app = create_app(CONFIG).app
    assert not app.conf.stream_wait_empty
    assert not app.conf.web_enabled
    assert not app.conf.topic_allow_declare
    assert app.conf.consumer_auto_offset_reset == "earliest"
    assert isinstance(app.tables.recovery, ExactRecovery)
    assert app._new_transport().Consumer is ExactConsumer


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
    consumer = ExactConsumer.__new__(ExactConsumer)  # upstream would look at its assignment, and at clocks
    asyncio.run(consumer.verify_all_partitions_active())
    consumer.verify_recovery_event_path(1e9, TP("t", 0))

    class Silent(CommittedThread):
        """A thread whose loop has been in a step for a minute."""

        should_stop = False
        n_wakeups = 0

        def __init__(self) -> None:
            self.last_wakeup_at = time.monotonic() - 60

        async def sleep(self, *_: object) -> None:
            self.should_stop = True

        async def _wakeup_timer_in_thread(self) -> None:
            self.n_wakeups += 1

    thread = Silent()
    asyncio.run(thread._keepalive2())
    assert thread.n_wakeups == 1
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


def test_a_heartbeat_that_is_told_of_a_rebalance_is_no_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BROKERS", BrokerWatch())  # in this process another test's broker may be away
    create_app(CONFIG)
    upstream = inspect.getsource(GroupCoordinator._do_heartbeat)
    assert f'"{faust_fixes._REBALANCING}"' in upstream, "the words have changed"
    log = logging.getLogger("aiokafka.consumer.group_coordinator")
    log.warning(faust_fixes._REBALANCING, "attributary")
    log.warning("Heartbeat failed for group %s: generation id is not  current.", "attributary")
    assert [record.getMessage() for record in caplog.records] == [
        "Heartbeat failed for group attributary: generation id is not  current."
    ]


def test_a_commit_that_waits_for_brokers_is_told_by_their_watch_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = BrokerWatch()
    monkeypatch.setattr(faust_fixes, "BROKERS", watch)
    consumer = create_app(CONFIG).app.consumer

    def logged() -> list[str]:
        caplog.clear()
        flight_recorder(consumer.log, timeout=1).blush()  # what Faust does when a commit lasts for 300 s
        return caplog.messages

    assert [line.partition("]: ")[2] for line in logged()] == list(faust_fixes._ABOUT_WAITING)
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
    # When this fails: run the restart tests with and without faust_fixes on the new versions, read upstream's
    # changes to the methods that are overridden there, and only then move PROVED_VERSIONS.
    pins = (ROOT / "pyproject.toml").read_text()
    for package, version in PROVED_VERSIONS.items():
        assert importlib.metadata.version(package) == version
        assert re.search(rf'"{package}(\[[\w,]+\])?=={re.escape(version)}"', pins)


@pytest.mark.parametrize("error", [StateError("of another release"), RuntimeError("no broker")])
def test_what_has_failed_between_the_last_tick_and_a_stop_is_not_forgotten(error: Exception) -> None:
    application = create_app(parse_config({"models": {"m": {"factory": FACTORY}}}))

    async def fails() -> None:
        raise error

    async def run() -> None:
        application.worker.under_way.start("handle", fails)
        await application.worker.under_way.settle()
        await application.app.on_before_shutdown.send()

    asyncio.run(run())
    is_of_user = isinstance(error, StateError)
    assert application.failure is (None if is_of_user else error)
    assert application.unusable == ("what is stored cannot be used: of another release" if is_of_user else "")
