"""Labels that no prediction could match become dead letters, until the first one is right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from tests.agents.stand_ins import TOPIC, balances, header

LOGISTIC = {"class": "river.linear_model.LogisticRegression"}
BAYES = {"class": "river.naive_bayes.GaussianNB"}
LINEAR = {"class": "river.linear_model.LinearRegression"}


def partition_of(model: dict[str, Any], **more: Any) -> Partition:
    return Partition(TOPIC, 0, parse_config({"models": {"m": {"model": model, **more}}}), lambda _key: None)


def record(n: int, y: Any) -> Record:
    return Record(TOPIC, 0, n, 0, b"m", json.dumps({"x": {"a": n % 7 / 7, "b": n % 3 / 3}, "y": y}).encode())


def letters(sent: list[Outgoing]) -> list[tuple[str, str]]:
    return [
        (header(one, "attributary-dlq-reason"), header(one, "attributary-dlq-stage"))
        for one in sent
        if "dead" in one.topic
    ]


@pytest.mark.parametrize("explain", [{}, {"every": 50}])
def test_the_first_label_has_to_fit_the_classes(explain: dict[str, int]) -> None:
    partition = partition_of(LOGISTIC, explain=explain)
    for n, label in enumerate(["yes", "1", "no"]):
        assert letters(partition.handle(record(n, label))) == [("wrong_label", "explain")]
    assert partition.models["m"].n_observations == 0
    for n, label in enumerate([True, False, False, True, True], start=3):
        assert letters(partition.handle(record(n, label))) == []
    assert partition.counters.dead_letters["wrong_label"] == 3
    assert balances(partition.counters)


def test_a_classifier_that_is_to_take_any_label_learns_what_comes(caplog: pytest.LogCaptureFixture) -> None:
    partition = partition_of(BAYES, label="any")
    for n, label in enumerate(["a", "b", 3, "c", True, "a"]):
        assert letters(partition.handle(record(n, label))) == []
    assert partition.models["m"].explainers["pfi"].n_observations == 5
    assert caplog.text == ""


def test_every_target_has_to_be_a_number() -> None:
    partition = partition_of(LINEAR)
    found = [letters(partition.handle(record(n, y))) for n, y in enumerate([1.5, "red", 2, "1.5", True])]
    assert found == [[], [("wrong_label", "explain")], [], [("wrong_type", "decode")], [("wrong_type", "decode")]]


def test_a_restored_state_does_not_ask_for_the_first_label_again() -> None:
    partition = partition_of(LOGISTIC)
    partition.handle(record(0, True))
    blob = encode_state(partition.models["m"])
    again = Partition(TOPIC, 0, partition.config, {b"m": blob}.get)
    for n, label in enumerate([False, False, True], start=1):
        assert again.handle(record(n, label)) == partition.handle(record(n, label))
    assert again.models["m"].n_observations == partition.models["m"].n_observations == 4
