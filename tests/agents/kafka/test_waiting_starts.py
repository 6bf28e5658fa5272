"""A start whose broker is not there yet: it waits, says so, and ends at what no waiting mends."""

from __future__ import annotations

import pytest

from attributary_agents.errors import BrokersAwayError, PreflightError
from attributary_agents.kafka import brokers
from attributary_agents.kafka.brokers import once_brokers_answer


class Checks:
    """Fails some times, as if no broker answered, and then as it is told."""

    def __init__(self, n_away: int, then: Exception | None = None) -> None:
        self.n_left, self.then = n_away, then
        self.opened = 0

    def work(self) -> None:
        if self.n_left:
            self.n_left -= 1
            raise BrokersAwayError("no Kafka at kafka:9092", "kafka:9092: Connection refused")
        if self.then is not None:
            raise self.then

    def open(self) -> None:
        self.opened += 1


def test_it_waits_until_a_broker_answers_and_says_so_at_once(caplog: pytest.LogCaptureFixture) -> None:
    checks = Checks(4)
    once_brokers_answer(checks.work, checks.open)
    assert checks.opened == 1
    first, last = caplog.messages
    assert first == "the start waits for brokers: kafka:9092: Connection refused"
    assert last.startswith("the brokers answer, after ")


def test_it_says_so_once_a_minute(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(brokers, "SAY_EVERY_S", 0.0)
    checks = Checks(4)
    once_brokers_answer(checks.work, checks.open)
    assert [line.partition(" for ")[0] for line in caplog.messages[1:-1]] == ["the start has waited"] * 3


def test_a_script_does_not_wait() -> None:
    checks = Checks(1)
    with pytest.raises(BrokersAwayError, match="no Kafka at kafka:9092"):
        once_brokers_answer(checks.work, checks.open, wait=False)
    assert checks.opened == 0


@pytest.mark.parametrize("n_away", [0, 2])
def test_what_no_waiting_mends_ends_the_start(n_away: int) -> None:
    checks = Checks(n_away, PreflightError("missing topics: a"))
    with pytest.raises(PreflightError, match="missing topics"):
        once_brokers_answer(checks.work, checks.open)
