"""Steps that last: longer than the session, than the patience of /livez, than the time to stop; on Apache Kafka.

`session_timeout_s` is 6, the broker's minimum.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.kafka import produce, read_all
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics
from tests.integration.configs import logistic_config
from tests.integration.stalling import FACTORY, VARIABLE

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 600
STALLS_AT = 250
STALL_S = 12
EXPELLED = "member_id was not recognized"
"""What aiokafka says when the broker has given a member's partitions away."""


class Scene:
    """A topic of observations, the model that stalls in the middle, and what an undisturbed run leaves."""

    def __init__(self, broker: Broker, folder: Path, monkeypatch: pytest.MonkeyPatch, **sections: Any) -> None:
        self.raw = stalling_config(broker.bootstrap, **sections)
        self.config = parse_config(self.raw)
        self.order = folder / "stall"
        self.folder = folder
        self.bootstrap = broker.bootstrap
        monkeypatch.setenv(VARIABLE, str(self.order))
        create_topics(self.config)
        records = [(b"credit", _observation(i), []) for i in range(N)]
        produce(broker.bootstrap, self.config.kafka.topics.observations, records, partition=0)

    def worker(self) -> WorkerProcess:
        return WorkerProcess(self.raw, self.folder)

    def stall(self, how: str, seconds: float) -> None:
        self.order.write_text(f"{how} {seconds}")

    def wait_until_it_stalls(self) -> None:
        wait_for("the step begins", lambda: not self.order.exists(), 90)

    def check_next_owner(self) -> None:
        """Another worker does what is left, and repeats what no checkpoint has."""
        self.worker().run_until(N)
        self.check_result(repeated=True)

    def check_result(self, *, repeated: bool) -> None:
        """The events, the counters and the state are those of an undisturbed run, in this process."""
        self.order.unlink(missing_ok=True)
        expected = check_equal(self.bootstrap, self.config)
        topics = self.config.kafka.topics
        assert {topic for topic, sent in expected.sent.items() if sent} == {topics.importances}
        if not repeated:
            assert len(read_all(self.bootstrap, topics.importances)) == len(expected.sent[topics.importances])
        counters, offset = expected.partitions[0].counters, expected.partitions[0].offset
        assert (counters.consumed, counters.used, offset) == (N, N, N - 1)


def stalling_config(bootstrap: str, **sections: Any) -> dict[str, Any]:
    raw = logistic_config(bootstrap)
    model = {**raw["models"]["credit"], "factory": FACTORY, "features": dict.fromkeys(("a", "b", "stall"), "number")}
    del model["model"]
    # A checkpoint just before the stall would leave nothing to repeat: they come with the stop, or after everything.
    return {**raw, "models": {"credit": model}, "checkpoint": {"interval_s": 3600}, **sections}


def _observation(i: int) -> bytes:
    a, b = ((i * k % 101) / 50 - 1 for k in (37, 53))
    return json.dumps({"x": {"a": a, "b": b, "stall": int(i == STALLS_AT)}, "y": a > 0}).encode()


def livez(worker: WorkerProcess) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/livez", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, repr(error)


@pytest.fixture
def scene(kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scene]:
    """A scene on the shared broker; its arguments are sections of the configuration."""
    return partial(Scene, kafka_broker, tmp_path, monkeypatch)


@pytest.mark.parametrize(("how", "seconds"), [("sleep", 18), ("compute", 12)])
def test_a_step_of_several_sessions_loses_no_partition_and_is_told(
    how: str, seconds: float, scene: Callable[..., Scene]
) -> None:
    told = scene(watchdog={"warn_after_s": 3}, web={"stuck_after_s": 4})
    told.stall(how, seconds)
    with told.worker() as worker:
        step = f"observation of model 'credit' at {told.config.kafka.topics.observations}[0]@{STALLS_AT}"

        def names_the_step() -> bool:
            status, text = livez(worker)
            return status == 503 and step in text

        wait_for("/livez says in which step it is stuck", names_the_step, 90)
        assert worker.metrics()["attributary_worker_step_seconds"][()] > 3
        worker.wait_consumed(N, timeout_s=120)
        wait_for("/livez says that it goes on", lambda: livez(worker)[0] == 200, 90)
        assert worker.total("worker_stalls_total") == 1
        assert worker.stop() == 0
    log = worker.log.read_text()
    assert log.count("ready: partitions") == 1
    assert "stall_as_told" in log
    assert "moved again after" in log
    told.check_result(repeated=False)


@pytest.mark.parametrize("how", ["sleep", "compute"])
def test_a_worker_asked_to_stop_in_a_step_that_hangs_ends_in_time(how: str, scene: Callable[..., Scene]) -> None:
    hanging = scene(watchdog={"warn_after_s": 600, "stop_within_s": 9})
    hanging.stall(how, 60)
    with hanging.worker() as worker:
        hanging.wait_until_it_stalls()
        # Without the watchdog the harness would kill it after 60 s, with another status.
        assert worker.stop() == 1
    log = worker.log.read_text()
    assert "s after SIGTERM; ends now" in log
    assert "stall_as_told" in log
    hanging.check_next_owner()


@pytest.mark.parametrize(
    ("how", "logged"),
    [
        ("sleep", ["watchdog.end_after_s is 4: the worker ends"]),
        ("hold", ["Timeout", "hold_the_interpreter_for"]),  # faulthandler's word: no thread of ours can run
    ],
)
def test_a_step_that_does_not_end_is_ended_and_repeated(
    how: str, logged: list[str], scene: Callable[..., Scene]
) -> None:
    endless = scene(watchdog={"warn_after_s": 2, "end_after_s": 4})
    endless.stall(how, 600)
    with endless.worker() as worker:
        assert worker.wait(60) == 1
    log = worker.log.read_text()
    assert [text for text in logged if text not in log] == []
    endless.check_next_owner()


def test_what_a_worker_stores_that_was_thought_dead_for_three_sessions_is_not_taken(
    scene: Callable[..., Scene],
) -> None:
    """It holds the interpreter, so that its heartbeats stop; another worker takes over, and is done before it wakes."""
    held = scene(checkpoint={"interval_s": 1, "max_observations": 100})
    held.stall("hold", 40)  # more than three sessions: the other has to be done, however slowly it starts
    with held.worker() as worker:
        held.wait_until_it_stalls()
        with held.worker() as other:
            other.wait_consumed(N, timeout_s=120)
            assert EXPELLED not in worker.log.read_text(), "the other should be done before it wakes"
            again = "it is a member again", lambda: "ready: partitions" in worker.log.read_text().partition(EXPELLED)[2]
            wait_for(*again, 90)
            assert [each.stop() for each in (worker, other)] == [0, 0]
    held.check_result(repeated=True)


def test_a_rebalance_waits_for_a_long_step(scene: Callable[..., Scene]) -> None:
    waited = scene()
    waited.stall("sleep", STALL_S)
    with waited.worker() as worker:
        waited.wait_until_it_stalls()
        with waited.worker() as joining:
            both = (worker, joining)
            wait_for("all is read", lambda: sum(each.total("records_consumed_total") for each in both) == N, 180)
            assert [each.stop() for each in both] == [0, 0]
    waited.check_result(repeated=False)


def test_a_worker_asked_to_stop_while_the_broker_is_gone_ends_in_time(
    kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with type(kafka_broker)() as own:
        scene = Scene(own, tmp_path, monkeypatch, watchdog={"stop_within_s": 9})
        with scene.worker() as worker:
            worker.wait_consumed(N, timeout_s=120)
            own.kill()
            assert worker.stop() == 1
        log = worker.log.read_text()
        assert "s after SIGTERM, because no broker answers (" in log
        assert " ERROR " not in log, "nothing is wrong with the worker"
        own.start()
        scene.check_next_owner()
