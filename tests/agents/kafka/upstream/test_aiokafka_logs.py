"""Which lines of aiokafka's loggers are written."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil

import aiokafka
import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import NodeNotReadyError, NotLeaderForPartitionError, TopicAuthorizationFailedError

from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.kafka.upstream import aiokafka_logs


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> BrokerWatch:
    """What this test's clients see."""
    aiokafka_logs.correct_logs()
    fresh = BrokerWatch()
    monkeypatch.setattr(aiokafka_logs, "BROKERS", fresh)
    return fresh


def test_the_lines_of_clients_are_ours_while_brokers_are_away(
    watch: BrokerWatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, group = logging.getLogger("aiokafka"), logging.getLogger("aiokafka.consumer.group_coordinator")

    def log() -> int:
        caplog.clear()
        client.error("Unable connect to node with id %s: %s", 1, "refused")
        group.error("Heartbeat failed")
        return len(caplog.messages)

    assert log() == 2, "nothing is known to be away"
    watch.fail("one", "refused")
    assert log() == 0
    watch.answer("two")
    assert log() == 1, "one broker of two is away: only lines about connecting are ours"
    watch.answer("one")
    assert log() == 2


def test_a_request_that_is_repeated_is_no_error_and_one_of_a_broker_that_is_away_no_news(
    watch: BrokerWatch, caplog: pytest.LogCaptureFixture
) -> None:
    group = logging.getLogger("aiokafka.consumer.group_coordinator")

    def log(error: Exception | type[Exception]) -> list[str]:
        caplog.clear()
        group.error("Group Coordinator Request failed: %s", error)
        return [record.levelname for record in caplog.records]

    moving, wrong = NotLeaderForPartitionError(), TopicAuthorizationFailedError()
    assert log(moving) == ["WARNING"]
    assert log(wrong) == ["ERROR"]
    watch.fail("one", "refused")
    watch.answer("two")
    assert log(NodeNotReadyError()) == log(NodeNotReadyError) == [], "one of two brokers is away, which is told already"
    assert log(wrong) == ["ERROR"]
    watch.answer("one")
    assert log(NodeNotReadyError()) == ["WARNING"]


def test_every_logger_of_the_clients_is_known() -> None:
    """A filter of a logger does not concern those below it."""
    names = [module.name for module in pkgutil.walk_packages(aiokafka.__path__, "aiokafka.")]
    modules = [
        importlib.import_module(name) for name in names if not name.startswith(("aiokafka.record", "aiokafka.helpers"))
    ]
    loggers = {value.name for each in modules for value in vars(each).values() if isinstance(value, logging.Logger)}
    others = ("aiokafka.admin", "aiokafka.coordinator", "aiokafka.consumer.subscription_state")
    assert {name for name in loggers if not name.startswith(others)} == set(aiokafka_logs._CLIENTS)


@pytest.mark.usefixtures("watch")
def test_a_heartbeat_that_is_told_of_a_rebalance_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    upstream = inspect.getsource(GroupCoordinator._do_heartbeat)
    assert f'"{aiokafka_logs._REBALANCING}"' in upstream, "the words have changed"
    log = logging.getLogger("aiokafka.consumer.group_coordinator")
    log.warning(aiokafka_logs._REBALANCING, "attributary")
    log.warning("Heartbeat failed for group %s: generation id is not  current.", "attributary")
    assert [record.getMessage() for record in caplog.records] == [
        "Heartbeat failed for group attributary: generation id is not  current."
    ]
