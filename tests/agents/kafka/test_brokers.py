"""When brokers count as away, and how often the log says so."""

from __future__ import annotations

import errno
import logging
import math
import socket
from functools import partial

import pytest

from attributary_agents.kafka.brokers import (
    AWAY_AFTER_S,
    FIRST_WAIT_S,
    LONGEST_WAIT_S,
    PROBED_FOR_S,
    SETTLED_AFTER_S,
    WELL_S,
    Backoff,
    BrokerLog,
    BrokerWatch,
    cause_of,
)

ONE, TWO, THREE = "kafka-1:9092", "kafka-2:9092", "kafka-3:9092"
REFUSED = "Connection refused"


class Seen:
    """A watch whose clock stands still until it is moved, and whose log is looked at once a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.watch = BrokerWatch(lambda: self.now)

    def pass_s(self, seconds: int, *failing: str, answering: str = "") -> None:
        for _ in range(seconds):
            for node in failing:
                self.watch.attempt()
                self.watch.fail(node, REFUSED)
            if answering:
                self.watch.answer(answering)
            self.now += 1
            self.watch.say_due()


def test_nothing_is_known_before_the_first_answer() -> None:
    watch = BrokerWatch()
    assert not watch.is_known
    assert watch.silent_s == math.inf
    assert watch.away_s is watch.last_answer_s is None


def test_brokers_are_away_when_they_fail_for_a_time_and_none_answers() -> None:
    seen = Seen()
    seen.watch.answer(ONE)
    seen.now = 100.0
    assert seen.watch.away_s is None, "silence alone is none: nothing may have been asked"
    seen.watch.fail(ONE, REFUSED)
    seen.now += AWAY_AFTER_S / 2
    assert seen.watch.away_s is None
    seen.now += AWAY_AFTER_S
    assert seen.watch.away_s == 1.5 * AWAY_AFTER_S
    assert seen.watch.nodes == ONE
    seen.watch.answer(ONE)
    assert seen.watch.away_s is None
    assert seen.watch.is_known
    assert not seen.watch.is_failing
    assert not seen.watch.is_settled, "clients still fail by what was before"
    seen.now += SETTLED_AFTER_S + 1
    assert seen.watch.is_settled


def test_an_outage_has_one_line_at_its_beginning_one_a_minute_and_one_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    seen.watch.answer(ONE)
    seen.pass_s(600, ONE)
    seen.watch.answer(ONE)
    seen.pass_s(10, answering=ONE)
    first, *further, last = caplog.messages
    assert first.startswith(f"no broker answers ({ONE}: {REFUSED})")
    assert len(further) == 9
    assert all(line.startswith("no broker has answered for ") for line in further)
    assert last == "a broker answers again, after 601 s and 599 attempts to connect"


def test_of_several_brokers_the_one_that_fails_is_named_and_the_rest_answers(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.pass_s(130, TWO, answering=ONE)
    assert seen.watch.away_s is None
    seen.watch.answer(TWO)
    seen.pass_s(5, answering=ONE)
    *lines, last = caplog.messages
    assert len(lines) == 3
    assert all(line.startswith(f"the broker at {TWO} has not answered for ") for line in lines)
    assert last == f"the broker at {TWO} answers again, after 130 s"


def test_brokers_are_not_away_while_one_is_gone_and_another_answers_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    seen.watch.answer(ONE)
    for _ in range(20):
        seen.watch.answer(TWO)
        for _ in range(6):
            seen.pass_s(1, THREE)
            assert seen.watch.away_s is None
            assert not seen.watch.is_lost
    assert not any("no broker" in line for line in caplog.messages)
    seen.pass_s(1, ONE, TWO)
    seen.pass_s(2)
    assert seen.watch.away_s is not None, "all have failed since they answered"
    seen.watch.answer(ONE)
    seen.pass_s(int(WELL_S) + 3, THREE)
    assert seen.watch.away_s is not None, "nobody has heard of the first for long"
    seen.watch.answer(ONE)
    seen.pass_s(1, TWO, THREE)
    assert caplog.messages[-1].startswith("a broker answers again"), "while others still fail"


def test_a_broker_that_has_left_the_cluster_is_told_of_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.pass_s(3, TWO, answering=ONE)
    seen.pass_s(600, answering=ONE)
    assert len(caplog.messages) <= 2
    assert not seen.watch.is_failing


def test_short_failures_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = Seen()
    for _ in range(50):
        seen.pass_s(1, ONE, TWO)
        seen.watch.answer(ONE)
        seen.watch.answer(TWO)
    assert caplog.messages == []


def test_a_cause_is_what_the_system_says_and_names_no_address_again() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9092)")
    assert cause_of(refused) == "Connection refused"
    assert cause_of(socket.gaierror(-2, "Name or service not known")) == "Name or service not known"
    assert cause_of(TimeoutError("not connected within 10 s")) == "not connected within 10 s"
    assert cause_of(EOFError()) == "EOFError"


def test_the_configured_addresses_are_named_where_those_that_fail_are_others(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.watch.configured = (ONE, TWO)
    seen.pass_s(70, "10.0.0.1:9092")
    assert seen.watch.nodes == f"10.0.0.1:9092; kafka.brokers is {ONE}, {TWO}"
    first, further = caplog.messages
    assert first.startswith(f"no broker answers (10.0.0.1:9092: {REFUSED}; kafka.brokers is {ONE}, {TWO}): the worker")
    assert f"(10.0.0.1:9092: {REFUSED}; kafka.brokers is {ONE}, {TWO})" in further
    seen.watch.configured = ("10.0.0.1:9092",)
    assert seen.watch.nodes == "10.0.0.1:9092"


def test_the_thread_that_tells_of_brokers_outlives_what_it_fails_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = iter([ValueError("once"), None])

    def look() -> None:
        if (error := next(looks)) is not None:
            raise error
        log.close()

    log = BrokerLog(BrokerWatch(), look)
    monkeypatch.setattr(log._closed, "wait", lambda _s: log._closed.is_set())
    log._run()
    (line,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "is looked at again" in line.getMessage()


def test_a_broker_that_clients_leave_out_is_probed_and_found_back(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.pass_s(5, TWO, answering=ONE)
    assert seen.watch.to_probe == []
    seen.pass_s(10, answering=ONE)
    assert seen.watch.to_probe == [TWO], "no client tries it any more"
    for _ in range(6):
        seen.watch.fail(TWO, REFUSED)  # as the probe does
        seen.pass_s(10, answering=ONE)
    assert len([line for line in caplog.messages if f"{TWO} has not answered" in line]) == 2, "another once a minute"
    seen.watch.answer(TWO)
    assert f"the broker at {TWO} answers again, after 75 s" in caplog.messages
    assert seen.watch.to_probe == []


def test_a_broker_that_has_left_the_cluster_is_said_to_be_asked_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.pass_s(5, TWO, answering=ONE)
    while seen.now < PROBED_FOR_S:
        if seen.watch.to_probe:
            seen.watch.fail(TWO, REFUSED)
        seen.pass_s(10, answering=ONE)
    seen.pass_s(100, answering=ONE)
    assert caplog.messages[-1].endswith("and is asked no longer")
    n = len(caplog.messages)
    seen.pass_s(300, answering=ONE)
    assert (len(caplog.messages), seen.watch.is_failing) == (n, False)


def test_waits_double_from_the_least_to_the_longest_with_jitter_and_begin_anew() -> None:
    for draw in (0.0, 1.0):
        backoff = Backoff(float, partial(float, draw))
        assert backoff.wait_s == 0
        waits = []
        for _ in range(2000):
            backoff.note(connected=False)
            waits.append(backoff.wait_s)
        wanted = [min(FIRST_WAIT_S * 2**n, LONGEST_WAIT_S) * (1 + draw) / 2 for n in range(8)]
        assert waits[:8] == wanted
        assert waits[-1] == LONGEST_WAIT_S * (1 + draw) / 2
        backoff.note(connected=True)
        assert backoff.wait_s == 0
        backoff.note(connected=False)
        assert backoff.wait_s == wanted[0]
