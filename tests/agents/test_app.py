"""The application holds exactly the agents, topics and tables that it is meant to hold, and nothing by discovery."""

import asyncio

import pytest
import yaml

from attributary_agents.app import create_app
from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.errors import StateError
from attributary_agents.kafka.topics import topic_specs
from attributary_agents.kafka.upstream.faust_consumer import ExactConsumer
from attributary_agents.kafka.upstream.faust_recovery import ExactRecovery
from tests.agents.stand_ins import FACTORY

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
