"""Several workers: what each is started with, processes that end in every way, and signals."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.interrupts import take_interrupts
from support.waiting import wait_for

from attributary_agents import supervisor
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import AttributaryError
from attributary_agents.models.subprocess.memory import memory_there_is, processors
from attributary_agents.supervisor import FAULT, Worker, as_one_of, run_workers
from tests.agents.stand_ins import FACTORY

WORKER = """
import os, signal, sys, time

folder, word = sys.argv[1:]

def note(text):
    with open(folder + "/events", "a") as file:
        file.write(word + " " + text + chr(10))

def hear(number, _frame):
    note("hears " + signal.Signals(number).name)
    if word != "hangs":
        note("stops")
        sys.exit(0)

signal.signal(signal.SIGTERM, hear)
signal.signal(signal.SIGINT, hear)
note("is given " + os.read(0, 5).decode())
n = open(folder + "/events").read().count(word + " is given")
if n <= {"fails": 2, "dies": 1, "leaves": 1, "always": 99, "fault": 99}.get(word, 0):
    if word == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit({"leaves": 0, "fault": 2}.get(word, 1))
note("stays")
while os.read(0, 1):
    pass
note("is alone")
"""
"""Notes what happens to it: a word that is its name says how it ends, and whether always."""

SUPERVISOR = """
import sys
import attributary_agents.cli
from attributary_agents.logs import configure_logging
from attributary_agents.supervisor import Worker, supervise

folder, program, within, first, *words = sys.argv[1:]
configure_logging("INFO", "supervisor")
argv = [sys.executable, "-S", "-c", program, folder]
sys.exit(supervise([Worker(word, [*argv, word], b"hello", float(first), 4) for word in words], float(within)))
"""


class Machine:
    """A supervisor of small processes, in a session of its own."""

    def __init__(self, folder: Path, *words: str, stop_within_s: float, wait_s: float) -> None:
        self._folder = folder
        argv = [sys.executable, "-c", SUPERVISOR, str(folder), WORKER, str(stop_within_s), str(wait_s), *words]
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(argv, stderr=log, start_new_session=True, preexec_fn=take_interrupts)

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    @property
    def events(self) -> list[str]:
        file = self._folder / "events"
        return file.read_text().splitlines() if file.exists() else []

    def wait_for(self, *events: str) -> None:
        wait_for(f"{events} happen", lambda: set(events) <= set(self.events))


@contextmanager
def machine(folder: Path, *words: str, stop_within_s: float = 60.0, wait_s: float = 0.05) -> Iterator[Machine]:
    started = Machine(folder, *words, stop_within_s=stop_within_s, wait_s=wait_s)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def test_ctrl_c_which_a_terminal_sends_to_a_group_stops_all_and_each_once(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "stays too") as run:
        run.wait_for("stays stays", "stays too stays")
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.process.wait(60) == 0
    told = ("is given hello", "stays", "hears SIGTERM", "stops")
    assert sorted(run.events) == sorted(f"{word} {event}" for word in ("stays", "stays too") for event in told)


def test_what_fails_or_is_killed_or_leaves_is_started_again_and_the_others_go_on(tmp_path: Path) -> None:
    words = ("stays", "fails", "dies", "leaves")
    with machine(tmp_path, *words) as run:
        run.wait_for(*(f"{word} stays" for word in words))
        run.process.terminate()
        assert run.process.wait(60) == 0
    assert [run.events.count(f"{word} is given hello") for word in words] == [1, 3, 2, 2]
    assert "fails ended with exit code 1; it starts again in 0.05 s" in run.log
    assert "fails ended with exit code 1, 2 times in a row; it starts again in 0.1 s" in run.log
    assert "dies was ended by SIGKILL; it starts again in 0.05 s" in run.log
    assert "leaves ended with exit code 0; it starts again in 0.05 s" in run.log


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("always", 1, "ended with exit code 1, 4 times in a row"), ("fault", FAULT, "ended with exit code 2")],
)
def test_what_no_restart_mends_ends_all_and_says_what_to_do(word: str, code: int, said: str, tmp_path: Path) -> None:
    with machine(tmp_path, word, "stays") as run:
        assert run.process.wait(60) == code
    assert f"{word} {said}: all stop. Mend what its log says and start them again; nothing is lost" in run.log
    assert run.events.count(f"{word} is given hello") == (4 if word == "always" else 1)
    assert "stays stops" in run.events or "stays stays" not in run.events


def test_what_does_not_stop_is_killed(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "hangs", stop_within_s=0.1) as run:
        run.wait_for("stays stays", "hangs stays")
        run.process.terminate()
        assert run.process.wait(60) == 1
    assert "hangs was ended by SIGKILL" in run.log
    assert "stays stops" in run.events


@pytest.mark.long
def test_what_a_killed_supervisor_leaves_is_told_by_the_end_of_its_input(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "fails") as run:
        run.wait_for("stays stays", "fails stays")
        run.process.kill()
        run.wait_for("stays is alone", "fails is alone")


@pytest.mark.long
def test_a_stop_while_a_restart_is_due_restarts_nothing_and_is_clean(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "always", wait_s=60.0) as run:
        run.wait_for("stays stays")
        wait_for("a restart is due", lambda: "it starts again in" in run.log)
        run.process.terminate()
        assert run.process.wait(60) == 0
    assert run.events.count("always is given hello") == 1


def waits(ran_s: list[float], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds before each further start of a worker that ran for so long each time."""
    now, found, lasts = [0.0], list[float](), iter(ran_s)

    class Process:
        pid = 0
        stdin = SimpleNamespace(write=lambda _: None, flush=lambda: None)

        def __init__(self, *_: Any, **__: Any) -> None:
            found.append(now[0])

        def poll(self) -> int:
            now[0] += next(lasts)
            return 1

    monkeypatch.setattr(supervisor, "subprocess", SimpleNamespace(Popen=Process, PIPE=-1))
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: now[0]))
    kept = supervisor._keep(Worker("worker", ()), {})
    while not (code := next(kept)):
        now[0] += 0.25
    assert code == 1
    ended = [began + ran for began, ran in zip(found, ran_s, strict=True)]
    return [began - end for end, began in zip(ended[:-1], found[1:], strict=True)]


def test_each_wait_is_twice_the_last_one_up_to_the_longest_and_then_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert waits([0.0] * 10, monkeypatch) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_one_that_ran_for_long_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits([0.0, 0.0, 299.0, 300.0, *[0.0] * 9], monkeypatch) == [1, 2, 4, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def config(**sections: Any) -> Config:
    return parse_config({"models": {"m": {"factory": FACTORY}}, **sections})


def test_more_workers_than_partitions_are_refused_with_what_to_do() -> None:
    with pytest.raises(AttributaryError, match=r"--workers 5: kafka.partitions is 3.* 2 of them would have nothing"):
        run_workers(config(kafka={"partitions": 3}), 5)


def test_auto_is_one_for_each_processor_and_at_most_one_for_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "processors", lambda: 6)
    monkeypatch.setattr(supervisor, "run_worker", lambda _config, wait: -1)
    monkeypatch.setattr(supervisor, "configure_logging", lambda *_: None)
    monkeypatch.setattr(supervisor, "supervise", lambda workers, _: len(workers))
    assert [run_workers(config(kafka={"partitions": n}), "auto") for n in (1, 4, 60)] == [-1, 4, 6]


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 9), ("250000 100000", 2), ("50000 100000", 1), ("", 9), (None, 9)]
)
def test_a_container_has_the_processors_of_its_quota(
    quota: str | None, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(9)), raising=False)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    if quota is not None:
        (tmp_path / "sys/fs/cgroup/cpu.max").write_text(quota)
    assert processors(tmp_path) == expected


def test_each_worker_has_a_port_and_where_the_machine_has_one_a_name_of_its_own() -> None:
    assert [as_one_of(config(), n, 2).web.port for n in (0, 1)] == [6066, 6067]
    assert [as_one_of(config(web={"port": 0}), n, 2).web.port for n in (0, 1)] == [0, 0]
    assert [as_one_of(config(), n, 2).kafka.instance_id for n in (0, 1)] == [None, None]
    named = config(kafka={"instance_id": "rack-7"})
    assert [as_one_of(named, n, 2).kafka.instance_id for n in (0, 1)] == ["rack-7.0", "rack-7.1"]
    assert as_one_of(named, 0, 2).kafka.topics == named.kafka.topics


def test_memory_to_build_a_version_is_divided_unless_it_is_configured() -> None:
    there_is = memory_there_is()
    assert there_is is not None
    assert as_one_of(config(), 1, 2).control.build_memory == max(there_is // 4, 300_000_000)
    own = config(control={"build_memory": 400_000_000})
    assert as_one_of(own, 1, 2).control.build_memory == 400_000_000


def test_a_worker_is_given_the_configuration_with_its_secrets_and_hold_out_rows(tmp_path: Path) -> None:
    holdout = tmp_path / "holdout.csv"
    holdout.write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
    model = {"model": {"class": "river.naive_bayes.GaussianNB"}, "learn": False}
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": "hunter2"}
    whole = parse_config(
        {
            "kafka": {"brokers": ["b:9092"], "security": security},
            "models": {"m": {**model, "watch_loss": {"reference": str(holdout)}}, "store-*": model},
        }
    )
    given = pickle.loads(pickle.dumps(whole))
    assert given == whole
    assert given.kafka.security.password.get_secret_value() == "hunter2"
    rows = [one.models["m"].settings.holdout.rows for one in (whole, given)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 40
    assert given.find("store-7") == whole.find("store-7") is not None
