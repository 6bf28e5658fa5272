"""What a worker makes of a served model equals what it makes of the same model in its own process, whatever fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.models.served_models import ServedModels

from attributary_agents.models.artefacts.served.model import ServedModel
from attributary_agents.models.artefacts.served.served import Served
from attributary_agents.rehearsal.rehearsal import are_equal
from attributary_agents.worker import lookahead, observations
from attributary_agents.worker.poison import Endings
from tests.agents.stand_ins import TOPIC, balances
from tests.agents.worker.lookahead.served import (
    FACTORY,
    Serving,
    config_of,
    in_process,
    probabilities,
    served_model,
    state_of,
    values,
)
from tests.agents.worker.test_assigned import in_a_loop, record

N = 200


@pytest.fixture
def server() -> Iterator[ServedModels]:
    with ServedModels({"rule": probabilities}) as one:
        yield one


def records(n: int = N, key: bytes = b"m", partition: int = 0) -> list[Any]:
    return [record(offset, value, partition, key) for offset, value in enumerate(values(n, n // 2))]


async def handled(running: Serving, given: list[Any]) -> None:
    await running.take(given)
    await running.settle()


async def waits(running: Serving, model_id: str = "m") -> None:
    """Wait until observations of a model wait for its endpoint, which gives no answer."""
    view = running.worker.view.endpoints
    before = view.of(model_id).outcomes["retried"]
    async with asyncio.timeout(20):
        while not (view.waiting_s(model_id) and view.of(model_id).outcomes["retried"] > before):
            await asyncio.sleep(0.01)


@in_a_loop
async def test_events_and_state_are_those_of_the_same_model_in_process(server: ServedModels) -> None:
    running = Serving(config_of({"m": served_model(server)}))
    (assigned,) = await running.own(1)
    await handled(running, records())
    own, sent = in_process({"m": {"factory": FACTORY}}, records())
    assert running.broker.sent == sent
    assert any(b'"sentence"' in value for _, value in sent), "a change was explained, for which more rows are asked"
    assert any(b'"dependence"' in value for _, value in sent)
    assert are_equal(state_of(assigned), state_of(own))
    assert running.unforeseen() == 0
    assert server.n_requests["rule"] < N / 4, "the rows of many observations go into one request"
    assert not running.worker.view.endpoints.waiting_s("m")


@in_a_loop
async def test_a_fifth_of_the_requests_fails_and_nothing_is_lost(server: ServedModels) -> None:
    server.plan = [None, 500, "reset", None, "hang", 429]
    server.failures = {500: 0.08, "reset": 0.08, "hang": 0.02, 429: 0.02}
    running = Serving(config_of({"m": served_model(server, timeout=0.25, max_rows=200)}))
    (assigned,) = await running.own(1)
    await handled(running, records())
    own, sent = in_process({"m": {"factory": FACTORY}}, records())
    assert running.broker.sent == sent
    assert are_equal(state_of(assigned), state_of(own))
    assert set(server.failed) == {500, "reset", "hang", 429}, "each way to fail was met"
    counts = running.worker.view.endpoints.counts["m"].outcomes
    assert counts["retried"] == server.failed.total()
    assert counts["ok"] == server.n_requests["rule"]
    assert counts["refused"] == running.unforeseen() == 0


@pytest.mark.long
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    share=st.floats(0.0, 0.5),
    max_rows=st.integers(20, 2000),
    seed=st.integers(0, 1000),
    at_a_time=st.integers(1, 64),
)
def test_whatever_fails_however_the_records_come(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], share: float, max_rows: int, seed: int, at_a_time: int
) -> None:
    made = [record(offset, value) for offset, value in enumerate(values(sum(sizes), sum(sizes) // 2, seed))]
    monkeypatch.setattr(observations, "MOST_RECORDS", at_a_time)

    async def run() -> tuple[Any, Any]:
        with ServedModels({"rule": probabilities}, seed=seed) as server:
            server.failures = {503: share / 2, "reset": share / 2}
            running = Serving(config_of({"m": served_model(server, max_rows=max_rows)}))
            (assigned,) = await running.own(1)
            rest = list(made)
            for size in sizes:
                await running.take(rest[:size])
                del rest[:size]
                await asyncio.sleep(0.002)
                running.worker.tick()
            await running.settle()
            assert running.unforeseen() == 0
            return running.broker.sent, state_of(assigned)

    sent, state = asyncio.run(run())
    own, expected = in_process({"m": {"factory": FACTORY}}, made)
    assert sent == expected
    assert are_equal(state, state_of(own))


@in_a_loop
async def test_while_an_endpoint_is_away_its_partition_waits_and_nothing_else(server: ServedModels) -> None:
    models = {"m": served_model(server), "own": {"factory": FACTORY}}
    running = Serving(config_of(models))
    waiting, other = await running.own(2)
    more = records(N)
    await handled(running, more[:50])
    server.stop()
    await running.take(more[50:])
    await waits(running)
    await running.take([record(offset, one.value, 1, b"own") for offset, one in enumerate(more)])
    async with asyncio.timeout(20):
        while other.partition.offset < N - 1:
            await asyncio.sleep(0.01)
    assert waiting.partition.offset < N - 1
    at = waiting.partition.offset
    await waiting._storing.finish()
    async with waiting._steps:
        await waiting._storing.store_rest()
    assert waiting.partition.checkpointed == at, "a checkpoint is made while it waits"
    assert not waiting.partition.counters.dead_letters.total()
    server.start()
    await running.settle()
    assert waiting.partition.offset == N - 1
    own, sent = in_process({"m": {"factory": FACTORY}}, more)
    assert [one for one in running.broker.sent if one[0] == b"m"] == sent
    assert are_equal(state_of(waiting), state_of(own))
    assert not running.worker.view.endpoints.waiting_s("m")


@in_a_loop
async def test_a_worker_that_waits_for_an_endpoint_stops_at_once_and_the_next_one_goes_on(
    server: ServedModels,
) -> None:
    config = config_of({"m": served_model(server)})
    first = Serving(config)
    (assigned,) = await first.own(1)
    await handled(first, records()[:50])
    server.stop()
    await first.take(records()[50:])
    await waits(first)
    at = assigned.partition.offset
    async with asyncio.timeout(5):
        await first.worker.release()
    assert first.broker.log[-2] == f"commit {TOPIC}[0] {at + 1}"
    assert not first.worker.view.endpoints.waiting_s("m")
    server.start()
    second = Serving(config, first.broker)
    (assigned,) = await second.own(1)
    await handled(second, records()[at + 1 :])
    own, sent = in_process({"m": {"factory": FACTORY}}, records())
    assert second.broker.sent == sent
    assert are_equal(state_of(assigned), state_of(own))


@in_a_loop
async def test_a_token_that_is_gone_while_a_worker_asks_is_waited_for(
    server: ServedModels, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = Serving(config_of({"m": served_model(server, token_file=str(tmp_path / "token"))}))
    (assigned,) = await running.own(1)
    with caplog.at_level(logging.INFO, "attributary_agents"):
        await running.take(records(5))
        async with asyncio.timeout(20):
            while "does not answer" not in caplog.text:
                await asyncio.sleep(0.01)
        assert assigned.partition.offset == -1
        (tmp_path / "token").write_text("t")
        await running.settle()
    assert assigned.partition.counters.used == 5
    assert server.seen[-1]["Authorization"] == "Bearer t"
    messages = [record.getMessage() for record in caplog.records if server.url in record.getMessage()]
    url, gone = server.address("rule"), f"model.token_file: cannot read {tmp_path / 'token'}: No such file or directory"
    assert messages == [
        f"{url} does not answer ({gone}): observations of its models wait until it does",
        f"{url} answers again: its observations wait no longer",
    ]


@in_a_loop
async def test_an_observation_that_is_refused_takes_no_other_with_it(server: ServedModels) -> None:
    given = records(60)
    bad = {7, 31}
    for one in given:
        if one.offset in bad:
            one.value = orjson.dumps({**orjson.loads(one.value), "x": {"a": 0.1, "b": -77.5, "c": 0.2}})
    server.refuses = lambda row: row["b"] < -50
    running = Serving(config_of({"m": served_model(server)}))
    (assigned,) = await running.own(1)
    await handled(running, given)
    counters = assigned.partition.counters
    assert (counters.used, counters.dead_letters["model_failed"]) == (58, 2)
    assert balances(counters)
    letters = [value for _, value in running.broker.sent if b"-77.5" in value]
    assert len(letters) == 2
    own, _ = in_process({"m": {"factory": FACTORY}}, [one for one in given if one.offset not in bad])
    assert own.models["m"].model_loss.value == assigned.partition.models["m"].model_loss.value
    assert running.worker.view.endpoints.counts["m"].outcomes["refused"] > 0


@in_a_loop
@pytest.mark.parametrize("value", [None, float("nan")], ids=["no number", "no JSON"])
async def test_no_number_and_no_json_are_final_for_those_who_asked(server: ServedModels, value: float | None) -> None:
    def odd(rows: list[dict[str, Any]]) -> list[list[Any]]:
        found = probabilities(rows)
        return [[value, 1.0] if row["b"] < -50 else one for row, one in zip(rows, found, strict=True)]

    given = records(40)
    given[9].value = orjson.dumps({"x": {"a": 0.1, "b": -77.5, "c": 0.2}, "y": True})
    server.models["rule"] = odd
    running = Serving(config_of({"m": served_model(server)}))
    (assigned,) = await running.own(1)
    await handled(running, given)
    # The whole answer is of no use, and each observation is asked for alone; json.dumps writes NaN, which is no JSON.
    assert assigned.partition.counters.dead_letters["model_failed"] == 1
    assert assigned.partition.counters.used == 39
    counts = running.worker.view.endpoints.counts["m"].outcomes
    assert counts["refused"] > 0
    assert counts["ok"] + counts["refused"] == server.n_requests["rule"]


@in_a_loop
async def test_all_partitions_together_ask_so_many_at_a_time(server: ServedModels) -> None:
    server.takes_s = 0.01
    model = served_model(server, max_in_flight=2, max_rows=40)
    running = Serving(config_of({f"m{number}": model for number in range(3)}))
    owned = await running.own(3)
    for number in range(3):
        await running.take([record(n, one.value, number, b"m%d" % number) for n, one in enumerate(records(60))])
    await running.settle()
    assert server.most_at_once == 2
    assert [one.partition.offset for one in owned] == [59] * 3


@in_a_loop
async def test_observations_of_another_model_on_the_partition_keep_their_place(server: ServedModels) -> None:
    given = records(90)
    for one in given:
        one.key = b"own" if one.offset % 3 == 1 else b"m"
    running = Serving(config_of({"m": served_model(server), "own": {"factory": FACTORY}}))
    (assigned,) = await running.own(1)
    await handled(running, given)
    both = {"m": {"factory": FACTORY}, "own": {"factory": FACTORY}}
    own, sent = in_process(both, given)
    assert running.broker.sent == sent
    for model_id in both:
        assert are_equal(state_of(assigned, model_id), state_of(own, model_id))
    assert running.unforeseen() == 0


@in_a_loop
@pytest.mark.parametrize("is_served", [True, False], ids=["another address", "no address at all"])
async def test_an_address_that_neither_configuration_nor_operators_name_is_not_asked(
    server: ServedModels, is_served: bool
) -> None:
    configured = config_of({"m": served_model(server)})
    own = configured if is_served else config_of({"m": {"factory": FACTORY}})
    running = Serving(own)
    (assigned,) = await running.own(1)
    await handled(running, records(5))
    state = assigned.partition.models["m"]
    given: Any = configured.models["m"].model
    forged = ServedModel(replace(Served.of(given), url=server.address("other")))
    object.__setattr__(state.current, "model", forged)
    for explainer in state.explainers.values():
        explainer.model = forged
    state._together = None
    server.models["other"] = probabilities
    await handled(running, records(8)[5:])
    assert server.n_requests["other"] == 0
    assert assigned.partition.counters.dead_letters["model_failed"] == 3
    said = [one["attributary-dlq-message"] for one in running.broker.headers if "attributary-dlq-message" in one]
    refused = f"{server.address('other')} is neither the model's address in the configuration nor in control.allowed"
    assert said == [refused.encode()] * 3


def test_nothing_that_a_copy_does_is_logged() -> None:
    known = logging.root.manager.loggerDict
    # Those of a level of their own, and all of `upstream`, are of clients of Kafka, of which a copy has none.
    ours = [name for name in known if name.startswith("attributary_") and ".kafka.upstream" not in name]
    names = [name for name in ours if not logging.getLogger(name).level]
    assert {name.partition(".")[0] for name in names} >= {"attributary_agents", "attributary_explainers"}
    before = [logging.getLogger(name).getEffectiveLevel() for name in names]
    with lookahead._quiet():
        assert [name for name in names if logging.getLogger(name).isEnabledFor(logging.CRITICAL)] == []
    assert [logging.getLogger(name).getEffectiveLevel() for name in names] == before


@in_a_loop
async def test_an_observation_that_is_handled_with_care_has_its_answers_first(
    server: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    async def allows(_endings: Endings, _offset: int, _checkpointed: int, trial: Any) -> bool:
        tried.append(trial)
        return True

    monkeypatch.setattr(Endings, "concerns", lambda _endings, offset, _checkpointed: offset == 3)
    monkeypatch.setattr(Endings, "allows", allows)
    running = Serving(config_of({"m": served_model(server)}))
    (assigned,) = await running.own(1)
    await handled(running, records(20))
    own, sent = in_process({"m": {"factory": FACTORY}}, records(20))
    assert running.broker.sent == sent
    assert are_equal(state_of(assigned), state_of(own))
    assert (len(tried), running.unforeseen()) == (1, 0)
