"""For how long brokers have left a write without an acknowledgement, and how often the log says so."""

from __future__ import annotations

import pytest

from attributary_agents.kafka.brokers import AWAY_AFTER_S, NOT_READY_AFTER_S, SAY_AFTER_S, BrokerWatch

NODE, STATE, EVENTS = "kafka:9092", "credit.state[0]", "credit.importances[0]"


class Seen:
    """A watch whose clock stands still until it is moved, and which is told what waits once a second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.watch = BrokerWatch(lambda: self.now)
        self.watch.answer(NODE)
        self.writes = self.watch.writes

    def pass_s(self, seconds: float, *, is_heard: bool = True, is_away: bool = False, **waiting: float) -> None:
        for _ in range(int(seconds)):
            self.now += 1
            if is_away:
                self.watch.fail(NODE, "Connection refused")
            else:
                self.watch.answer(NODE)
            named = {name.replace("_", "."): since for name, since in waiting.items()}
            self.writes.look(named, is_heard=is_heard)
            self.watch.say_due()


def test_no_write_waits_at_first_and_none_is_late_that_is_acknowledged_in_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    assert seen.writes.age_s == seen.writes.withheld_s == 0
    for _ in range(100):
        seen.pass_s(1, state=seen.now)
        assert seen.writes.age_s == 1
    seen.pass_s(1)
    assert seen.writes.age_s == 0
    assert not seen.watch.is_told
    assert caplog.messages == []


def test_a_write_that_waits_is_told_after_some_seconds_once_a_minute_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    seen.pass_s(SAY_AFTER_S - 1, state=0.0)
    assert caplog.messages == []
    seen.pass_s(600, state=0.0, events=5.0)
    assert seen.writes.age_s == seen.writes.withheld_s == 600 + SAY_AFTER_S - 1
    assert seen.watch.is_told
    seen.pass_s(30)
    first, *further, last = caplog.messages
    assert first.startswith(
        "brokers answer, and have not acknowledged writes for 10 s (state, events): the worker waits"
    )
    assert (
        "min.insync.replicas: `attributary topics list` shows the replicas in sync, and the brokers that do not"
        in first
    )
    assert len(further) == 9
    assert further[0].startswith("brokers have not acknowledged writes for 70 s (state, events), though they answer: `")
    assert last == "brokers acknowledge writes again, after 610 s"
    assert not seen.watch.is_told


def test_a_later_write_that_waits_as_ever_does_not_hold_the_last_line_back(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.pass_s(20, state=0.0)
    seen.pass_s(1, state=20.9)
    assert caplog.messages[1:] == ["brokers acknowledge writes again, after 21 s"]


def test_a_step_that_blocks_the_loop_makes_no_write_older() -> None:
    seen = Seen()
    seen.pass_s(4, state=0.0)
    seen.pass_s(300, state=0.0, is_heard=False)
    assert seen.writes.age_s == 4
    seen.pass_s(3, state=0.0)
    assert seen.writes.age_s == 7, "it goes on where nothing was acknowledged"
    seen.pass_s(1, state=200.0)
    assert seen.writes.age_s == 8, "one that came meanwhile is no older than what the loop could read of it"


def test_brokers_that_are_away_are_told_alone_and_their_return_gives_time(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    seen.pass_s(300, state=0.0, is_away=True)
    assert seen.watch.away_s is not None
    assert seen.writes.age_s == 300, "the metric says how old what waits is, whatever the reason"
    assert all("acknowledged" not in line for line in caplog.messages)
    caplog.clear()
    seen.pass_s(SAY_AFTER_S, state=0.0)
    assert [line.split(",")[0] for line in caplog.messages] == ["a broker answers again"]
    assert seen.writes.withheld_s < NOT_READY_AFTER_S
    seen.pass_s(2, state=0.0)
    assert caplog.messages[1].startswith("brokers answer, and have not acknowledged writes for 10 s (state)")


def test_a_write_that_brokers_leave_before_they_go_is_over_when_it_is_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    seen.pass_s(20, state=0.0)
    seen.pass_s(100 + AWAY_AFTER_S, state=0.0, is_away=True)
    seen.pass_s(1)
    assert [line for line in caplog.messages if "acknowledge writes again" in line] == [
        "brokers acknowledge writes again, after 123 s"
    ]


def test_of_many_things_that_wait_some_are_named() -> None:
    seen = Seen()
    seen.writes.look({f"credit.state[{n}]": float(-n) for n in range(5)})
    assert seen.writes.names == "credit.state[4], credit.state[3], credit.state[2] and 2 more"
