"""What the watchdog says and does at which moment. On real Kafka: tests/integration/test_long_steps.py."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
import time
from random import Random
from types import SimpleNamespace

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import WatchdogConfig
from attributary_agents.errors import ConfigError
from attributary_agents.worker import activity as activity_module
from attributary_agents.worker.activity import Activity, Step
from attributary_agents.worker.watchdog import POLL_S, Watchdog
from tests.agents.stand_ins import FACTORY

CONFIG = WatchdogConfig(warn_after_s=30, end_after_s=100, stop_within_s=20)
STEP = "observation of model 'credit' at t[3]@17"


@pytest.fixture(autouse=True)
def whole_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps begin at whole seconds: a sum with another number of seconds and its difference are exact."""
    monkeypatch.setattr(activity_module, "time", SimpleNamespace(monotonic=lambda: math.floor(time.monotonic())))


class Watched:
    """A watchdog over an activity, with the exit codes instead of exits."""

    def __init__(self, stops: bool = False, waits: bool = False) -> None:
        self.activity = Activity()
        self.codes: list[int] = []
        self.waits = waits
        self.dog = Watchdog(
            CONFIG,
            self.activity,
            lambda: stops,
            lambda: "no broker answers (kafka:9092)" if self.waits else "",
            end=self.codes.append,
        )


def step() -> Step:
    return Step("observation", ("t", 3), 17, b"credit")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_long_step_is_logged_once_and_again_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    long = step()
    with watched.activity.doing(long):
        for after in (1, 29.9, 30, 31, 60):
            watched.dog.check(long.began + after)
    watched.dog.check(long.began + 61)
    watched.dog.check(long.began + 62)
    logged, over = warnings(caplog)
    assert logged.startswith(f"{STEP} has lasted for 30 s")
    assert over == f"{STEP}: moved again after 61 s"
    assert watched.activity.n_stalls == 1
    assert watched.codes == []


@pytest.mark.parametrize(("lasting", "n", "logged"), [(40, 2, 2), (29, 100, 0)])
def test_each_long_step_in_succession_is_logged_and_short_ones_are_no_stall(
    lasting: int, n: int, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched()
    for _ in range(n):
        one = step()
        with watched.activity.doing(one):
            watched.dog.check(one.began + lasting)
    assert watched.activity.n_stalls == logged
    assert sum(f"has lasted for {lasting} s" in line for line in warnings(caplog)) == logged
    assert logged or warnings(caplog) == []


def test_of_several_steps_the_one_that_has_waited_longest_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    first, second = Step("checkpoint", ("t", 0), 5), step()
    second.began = first.began + 20
    with watched.activity.doing(first), watched.activity.doing(second):
        watched.dog.check(first.began + 35)
    assert [line.split(" has")[0] for line in warnings(caplog)] == ["checkpoint at t[0]@5"]


def test_a_step_that_does_not_end_ends_the_process(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    long = step()
    with watched.activity.doing(long):
        watched.dog.check(long.began + 99)
        assert watched.codes == []
        watched.dog.check(long.began + 100)
    assert watched.codes == [1]
    assert re.search(r"end_after_s is 100: the worker ends, the next owner repeats", caplog.text)


def test_a_step_that_waits_for_brokers_is_no_stall_and_counts_from_their_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched(waits=True)
    long = step()
    long.n_kafka_waits = 1
    with watched.activity.doing(long):
        for after in (40, 101, 1000):
            watched.dog.check(long.began + after)
        watched.waits = False
        returned = long.since
        watched.dog.check(returned + 29)
        assert (watched.codes, watched.activity.n_stalls) == ([], 0)
        watched.dog.check(returned + 31)
        watched.dog.check(returned + 100)
    assert (watched.codes, watched.activity.n_stalls) == ([1], 1), "it waits for something else"
    assert "waiting; the event loop moves" in caplog.text


def test_what_is_logged_has_not_moved_when_brokers_go(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    long, other = step(), Step("restore", ("t", 1), 5)
    with watched.activity.doing(long), watched.activity.doing(other):
        watched.dog.check(long.began + 31)
        watched.waits, long.n_kafka_waits = True, 1
        watched.dog.check(long.began + 32)
    assert "moved again" not in caplog.text


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_step_that_waits_for_something_else_is_ended_however_much_is_written_beside_it(share: float) -> None:
    watched = Watched()
    draws = Random(1)
    hanging, busy = Step("restore", ("t", 0), 5), step()
    busy.n_kafka_waits = 1
    with watched.activity.doing(hanging), watched.activity.doing(busy):
        for look in range(1, 200):
            watched.waits = draws.random() < share
            watched.dog.check(hanging.began + look)
            if watched.codes:
                break
    assert (watched.codes, look) == ([1], 100)


def test_a_stop_has_its_time_from_the_first_request(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    watched.dog.begin_stop("SIGTERM")
    stop_by = watched.activity.stop_by
    assert stop_by is not None
    watched.dog.begin_stop("SIGINT")
    assert watched.activity.stop_by == stop_by
    watched.dog.check(stop_by - 0.1)
    assert watched.codes == []
    watched.dog.check(stop_by)
    assert watched.codes == [1]
    assert "not stopped 20 s after SIGTERM; ends now" in caplog.text


def test_a_stop_that_waits_for_brokers_says_so_and_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(waits=True)
    watched.dog.begin_stop("SIGTERM")
    assert watched.activity.stop_by is not None
    watched.dog.check(watched.activity.stop_by + 1)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "after SIGTERM, because no broker answers (kafka:9092); ends now" in record.getMessage()
    assert watched.codes == [1]


def test_a_crash_that_does_not_end_is_ended_too() -> None:
    watched = Watched(stops=True)
    watched.dog.check(time.monotonic())
    assert watched.activity.stop_by is not None
    watched.dog.check(watched.activity.stop_by)
    assert watched.codes == [1]


def test_a_blocked_loop_is_logged_with_the_innermost_function_and_no_values(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    secret = "not for the log"
    warned = threading.Event()
    watched = Watched()
    watched.dog = Watchdog(WatchdogConfig(warn_after_s=2 * POLL_S), watched.activity, end=watched.codes.append)
    caplog.handler.addFilter(lambda record: warned.set() or True if "has lasted" in record.getMessage() else True)

    async def run() -> None:
        watched.dog.start(asyncio.get_running_loop())
        hangs(secret, warned)
        await asyncio.sleep(4 * POLL_S)

    try:
        asyncio.run(run())
    finally:
        watched.dog.close()
    logged, over = warnings(caplog)
    assert logged.startswith("the event loop has lasted")
    assert "in hangs" in logged
    assert "asyncio" not in logged
    assert secret not in logged
    assert "moved again" in over


def hangs(_secret: str, warned: threading.Event) -> None:
    assert warned.wait(60)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"warn_after_s": 0}, "warn_after_s"),
        ({"warn_after_s": 50, "end_after_s": 50}, "must be more than warn_after_s"),
        ({"stop_within_s": 8}, "stop_within_s"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_config({"models": {"m": {"factory": FACTORY}}, "watchdog": wrong})
