"""A new address is a new version: compared with the old one while that answers, and not waiting for it otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from support.models.served_models import ServedModels

from attributary_agents.config.settings import Config
from attributary_agents.errors import NotAllowedError
from attributary_agents.models.factory import build_model
from tests.agents.stand_ins import MODELS
from tests.agents.worker.lookahead.served import Serving, config_of, probabilities, served_model, values
from tests.agents.worker.test_assigned import event, in_a_loop, record


def contrary(rows: list[dict[str, Any]]) -> list[list[float]]:
    return [one[::-1] for one in probabilities(rows)]


@pytest.fixture
def servers() -> Iterator[tuple[ServedModels, ServedModels]]:
    with ServedModels({"rule": probabilities}) as old, ServedModels({"rule": contrary, "next": contrary}) as new:
        yield old, new


def records(first: int, last: int) -> list[Any]:
    return [record(first + n, value) for n, value in enumerate(values(last, last)[first:])]


def at(server: ServedModels, version: str, **control: Any) -> Config:
    config = config_of({"m": served_model(server)})
    model = config.models["m"].model_copy(update={"version": version})
    given: dict[str, Any] = {"models": {"m": model}}
    if control:
        given["control"] = config.control.model_copy(update=control)
    return config.model_copy(update=given)


async def begun(server: ServedModels) -> Serving:
    running = Serving(at(server, "1"))
    await running.own(1)
    await running.take(records(0, 100))
    await running.settle()
    await running.worker.release()
    return running


@in_a_loop
async def test_an_old_version_that_may_still_be_asked_is_compared_with_the_new_one(
    servers: tuple[ServedModels, ServedModels],
) -> None:
    old, new = servers
    first = await begun(old)
    config = at(new, "2", allowed=["river.", old.url])
    second = Serving(config, first.broker)
    (assigned,) = await second.own(1)
    before = old.n_requests.total()
    await second.take(records(100, 300))
    await second.settle()
    assert assigned.partition.counters.dead_letters.total() == 0
    assert old.n_requests.total() > before
    told = [orjson.loads(value) for _, value in second.broker.sent if b'"what":"version"' in value]
    assert (told[0]["revision"], told[0]["explanation"]) == (1, None)
    compared = told[1]["explanation"]
    assert (compared["model_version_before"], compared["model_version"], compared["route"]) == ("1", "2", "version")
    assert second.unforeseen() == 0


@in_a_loop
async def test_an_old_version_that_is_gone_and_not_named_any_more_holds_up_nothing(
    servers: tuple[ServedModels, ServedModels],
) -> None:
    old, new = servers
    first = await begun(old)
    old.stop()
    second = Serving(at(new, "2"), first.broker)
    (assigned,) = await second.own(1)
    await second.take(records(100, 300))
    await second.settle()
    counters = assigned.partition.counters
    assert (counters.used, dict(+counters.dead_letters)) == (300, {})
    assert assigned.partition.models["m"].version == "2"


@in_a_loop
async def test_a_record_of_the_models_topic_deploys_an_address_that_operators_allow(
    servers: tuple[ServedModels, ServedModels],
) -> None:
    old, new = servers
    config = at(old, "1", allowed=["river.", new.address("next")])
    running = Serving(config)
    (assigned,) = await running.own(1)
    running.broker.assigned.add(assigned.tp)
    await running.take(records(0, 50))
    await running.settle()
    spec = {"served": new.address("next"), "output": "predictions", "classes": [False, True]}
    for offset, url in enumerate((new.address("rule"), new.address("next"))):
        value = orjson.dumps({"version": f"next{offset}", "model": {**spec, "served": url}})
        await running.worker.handle_control(event(MODELS, offset, value))
    refused = [value for _, value in running.broker.sent if new.address("rule").encode() in value]
    assert len(refused) == 1, "a dead letter"
    await running.take(records(50, 120))
    await running.settle()
    state = assigned.partition.models["m"]
    assert (state.version, state.n_observations) == ("next1", 120)
    assert new.n_requests["next"] > 0
    assert new.n_requests["rule"] == running.unforeseen() == 0


@pytest.mark.parametrize("name", ["token_env", "token_file", "headers_env", "ca_file", "retries"])
def test_a_record_says_nothing_of_how_and_by_whom_a_model_is_asked(name: str) -> None:
    spec = {"model": {"served": "http://h/v2/models/m", "features": ["a"], name: "x"}}
    with pytest.raises(NotAllowedError, match=f"model.{name}: a record of the models topic says served, protocol"):
        build_model(spec, ["http://h/v2/models"])
