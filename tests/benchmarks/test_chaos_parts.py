"""The comparison of the chaos scenarios sees differences, however small."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
from benchmarks.chaos.compare.compare import events
from benchmarks.chaos.lab.proxy import plan
from benchmarks.chaos.lab.workload import Ballast, observations, raw_config
from support.fingerprint import differences, of_state, plain
from support.undisturbed import Event

from attributary_agents.config.reading import parse_config
from attributary_agents.models.model_state import ModelState
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record


@dataclass
class Found:
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def event(name: str, value: bytes = b"{}", **headers: bytes) -> Found:
    return Found(value, [("ce_id", name.encode()), *headers.items()])


SENT: dict[str, Event] = {name: (b"{}", [("ce_id", name.encode())]) for name in ("1", "2")}


def test_events_may_come_twice_and_in_any_order() -> None:
    assert events("topic.v1", [event("2"), event("1"), event("2")], SENT).passed


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([event("1")], "2 is missing"),
        ([event("1"), event("2"), event("3")], "3 should not be"),
        ([event("1"), event("2", b"[]")], "2 differs"),
        ([event("1"), event("2"), event("2", b"[]")], "2 came twice with other bytes"),
        ([event("1"), event("2", time=b"0")], "2 differs"),
    ],
)
def test_events_that_differ_are_named(found: list[Found], said: str) -> None:
    check = events("topic.v1", found, SENT)
    assert (check.passed, check.detail) == (False, said)


@pytest.fixture(scope="module")
def states() -> dict[str, ModelState]:
    config = parse_config(raw_config("localhost:9092", "parts"))
    partitions = {n: Partition("observations", n, config, lambda _key: None) for n in (0, 3)}
    offsets = dict.fromkeys(partitions, -1)
    for sent in observations(1_500, seed=1):
        if b'"neither"' in (sent.value or b""):
            continue  # learnt in part, and warned of
        offsets[sent.partition] += 1
        record = Record("observations", sent.partition, offsets[sent.partition], 1, sent.key, sent.value, [])
        partitions[sent.partition].handle(record)
    return {name: state for partition in partitions.values() for name, state in partition.models.items()}


def again(state: ModelState) -> ModelState:
    return decode_state(state.model_id, state.config, encode_state(state))


@pytest.mark.parametrize("model_id", ["credit", "churn"])
def test_a_state_that_was_stored_and_loaded_is_equal(model_id: str, states: dict[str, ModelState]) -> None:
    state = states[model_id]
    assert state.n_observations > 300
    assert list(differences(of_state(again(state)), of_state(state))) == []


def test_the_last_bit_of_a_weight_is_a_difference(states: dict[str, ModelState]) -> None:
    other = again(states["credit"])
    regression = other.model["LogisticRegression"]
    regression.intercept = math.nextafter(regression.intercept, 10)
    found = list(differences(of_state(other), of_state(states["credit"])))
    assert found
    assert all(difference.startswith("model") for difference in found), found


def test_an_observation_less_is_a_difference(states: dict[str, ModelState]) -> None:
    other = again(states["churn"])
    x: dict[str, Any] = json.loads('{"a": 0.5, "b": 0.5, "c": 0.5}')
    other.model.learn_one(x, True)
    assert list(differences(of_state(other), of_state(states["churn"])))


def test_cycles_arrays_and_generators_have_fingerprints() -> None:
    one, other = Ballast(5), Ballast(5)
    one.myself = other.myself = None  # type: ignore[attr-defined]
    one.myself, other.myself = one, other  # type: ignore[attr-defined]
    assert plain(one) == plain(other)
    one.learn_one({"a": 1.0}, True)
    assert plain(one) != plain(other)
    assert plain(random.Random(1)) == plain(random.Random(1)) != plain(random.Random(2))


def test_faults_of_the_proxy_are_of_every_kind_and_by_the_seed() -> None:
    made = plan(20, random.Random(1), ["changelog", "events"], 2.0)
    assert made == plan(20, random.Random(1), ["changelog", "events"], 2.0)
    assert {fault.how for fault in made} == {
        "reset before", "reset after", "swallow request", "swallow answer", "delay"
    }  # fmt: skip
    assert sum(fault.topic == "changelog" for fault in made) >= 10
    assert all(fault.seconds <= 2.0 for fault in made)
