"""Processes that end in every way, and signals that come once, twice, and to all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.interrupts import take_interrupts
from support.waiting import wait_for


class Machine:
    """The program `machine.py` in a session of its own."""

    def __init__(self, folder: Path, words: tuple[str, ...], stop_within_s: float, first_s: float) -> None:
        self.folder = folder
        times = map(str, (stop_within_s, first_s))
        argv = [sys.executable, "-m", "tests.agents.supervise.machine", str(folder), *times, *words]
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(argv, stderr=log, start_new_session=True, preexec_fn=take_interrupts)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def events(self) -> list[str]:
        file = self.folder / "events"
        return file.read_text().splitlines() if file.exists() else []

    def wait_for(self, *events: str) -> None:
        wait_for(f"{events} happen", lambda: set(events) <= set(self.events))

    def pids(self, word: str) -> list[int]:
        return [int(event.split()[-1]) for event in self.events if event.startswith(f"{word} begins")]

    def ended(self) -> tuple[int, str]:
        """Exit code and log."""
        return self.process.wait(60), self.log


@contextmanager
def machine(folder: Path, *words: str, stop_within_s: float = 60.0, first_s: float = 0.05) -> Iterator[Machine]:
    started = Machine(folder, words, stop_within_s, first_s)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_stops_all_and_that_is_a_clean_stop(number: signal.Signals, tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "waits", "last") as run:
        run.wait_for("stays stays", "waits stays", "last stays")
        run.process.send_signal(number)
        run.wait_for("stays stops", "waits hears SIGTERM")
        assert "last hears SIGTERM" not in run.events, "the others have not all stopped"
        (tmp_path / "go").touch()
        code, log = run.ended()
    assert (code, run.events[-1]) == (0, "last stops")
    assert f"{number.name}: all stop" in log
    assert not any(map(is_there, run.pids("stays") + run.pids("waits") + run.pids("last")))


@pytest.mark.long
def test_ctrl_c_which_a_terminal_sends_to_all_processes_comes_to_each_once(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "waits") as run:
        run.wait_for("stays stays", "waits stays")
        for _ in range(2):  # the second one as somebody presses it who does not want to wait
            os.killpg(run.process.pid, signal.SIGINT)
            run.wait_for("waits hears SIGTERM")
        (tmp_path / "go").touch()
        assert run.ended()[0] == 0
    assert sorted(event for event in run.events if "hears" in event) == ["stays hears SIGTERM", "waits hears SIGTERM"]


def test_what_fails_or_is_killed_or_leaves_is_started_again_and_the_others_go_on(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "fails", "dies", "leaves") as run:
        run.wait_for(*(f"{word} stays" for word in ("stays", "fails", "dies", "leaves")))
        run.process.terminate()
        code, log = run.ended()
    assert code == 0
    assert [len(run.pids(word)) for word in ("stays", "fails", "dies", "leaves")] == [1, 3, 2, 2]
    assert [event for event in run.events if "fails again" in event] == ["fails again 1", "fails again 2"]
    assert "fails ended with exit code 1; it starts again in" in log
    assert "fails ended with exit code 1, 2 times in a row; it starts again in" in log
    assert "dies was killed (SIGKILL): by hand, or by the system where memory is short; it starts again" in log
    assert "leaves ended with exit code 0, by a signal that it alone has got; it starts again" in log
    assert all(line.startswith("[supervisor] ") for line in log.splitlines())


@pytest.mark.long
def test_a_fault_that_no_restart_mends_ends_all_with_its_message(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "fault") as run:
        code, log = run.ended()
    assert (code, log.splitlines()[-1]) == (2, "set web.port to another one")
    assert len(run.pids("fault")) == 1
    assert not is_there(run.pids("stays")[0])


def test_what_does_not_stay_is_given_up_and_ends_all_with_exit_code_1(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "always") as run:
        code, log = run.ended()
    assert code == 1
    assert len(run.pids("always")) == 4
    assert "always ended with exit code 1, the 4. time in a row: it is not started again, and all stop" in log
    assert "stays stops" in run.events or "stays stays" not in run.events


@pytest.mark.long
def test_what_does_not_stop_is_killed(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "hangs", stop_within_s=0.1) as run:
        run.wait_for("stays stays", "hangs stays")
        run.process.terminate()
        code, log = run.ended()
    assert code == 1
    assert f"hangs (process {run.pids('hangs')[0]}) has not stopped and is killed" in log
    assert not is_there(run.pids("hangs")[0])


@pytest.mark.long
def test_processes_whose_supervisor_is_killed_stop_by_themselves(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "fails", "last") as run:
        run.wait_for("stays stays", "fails stays", "last stays")
        run.process.kill()
        run.wait_for("stays stops", "fails stops", "last stops")
        for pid in (run.pids("stays")[0], run.pids("fails")[-1], run.pids("last")[0]):
            wait_for("it has ended", lambda pid=pid: not is_there(pid))


@pytest.mark.long
def test_a_stop_while_a_restart_is_due_restarts_nothing_and_is_clean(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "always", first_s=1e6) as run:
        run.wait_for("stays stays")
        wait_for("a restart is due", lambda: "it starts again in" in run.log)
        run.process.terminate()
        assert run.ended()[0] == 0
    assert len(run.pids("always")) == 1


@pytest.mark.long
def test_nothing_is_started_again_while_others_take_long_to_stop(tmp_path: Path) -> None:
    with machine(tmp_path, "waits", "always", first_s=2.0) as run:
        run.wait_for("waits stays")
        wait_for("a restart is due", lambda: "it starts again in" in run.log)
        run.process.terminate()
        run.wait_for("waits hears SIGTERM")
        begun = run.pids("always")
        time.sleep(2.5)  # it would have been started again by then
        (tmp_path / "go").touch()
        run.ended()
    assert run.pids("always") == begun


@pytest.mark.long
def test_a_stop_that_one_spoils_is_not_clean(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "spoils") as run:
        run.wait_for("stays stays", "spoils stays")
        run.process.terminate()
        code, log = run.ended()
    assert code == 1
    assert "spoils ended with exit code 1" in log


@pytest.mark.long
def test_a_signal_to_one_process_alone_stops_no_other(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "waits") as run:
        run.wait_for("stays stays", "waits stays")
        os.kill(run.pids("stays")[0], signal.SIGTERM)
        run.wait_for("stays again 1")
        wait_for("it has begun again", lambda: run.events.count("stays stays") == 2)
        assert "waits hears SIGTERM" not in run.events
        (tmp_path / "go").touch()
        run.process.terminate()
        assert run.ended()[0] == 0


@pytest.mark.long
def test_sigusr1_comes_to_all(tmp_path: Path) -> None:
    with machine(tmp_path, "stays", "waits") as run:
        run.wait_for("stays stays", "waits stays")
        run.process.send_signal(signal.SIGUSR1)
        run.wait_for("stays hears SIGUSR1", "waits hears SIGUSR1")
        (tmp_path / "go").touch()
