"""The application holds exactly the agents, topics and tables that it is meant to hold, and nothing by discovery."""

import asyncio
import importlib.metadata
import re
from pathlib import Path

import pytest
import yaml

from attributary_agents.app import create_app
from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.kafka.faust_fixes import PROVED_VERSIONS, ExactConsumer, ExactRecovery
from attributary_agents.kafka.topics import topic_specs

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
        "attributary.changes.v1",
        "attributary.dead-letters.v1",
    }
    assert app.tables["state"].changelog_topic.get_topic_name() == "attributary-state-changelog"


def test_what_the_app_uses_is_what_topics_create_makes() -> None:
    application = create_app(CONFIG)
    used = {"attributary.observations.v1", "attributary.models.v1", *application.worker.outputs, CONFIG.kafka.changelog}
    assert {spec.name for spec in topic_specs(CONFIG)} == used


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
