"""Kernels are compiled once for the machine: by a process of its own, while others wait for it."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from attributary_agents.models import for_machine
from attributary_agents.models.for_machine import are_missing, compile_for_machine
from attributary_agents.models.machine_lock import machine_lock

Said = list[tuple[int, int]]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[int, int]]:
    """How many kernels are kept, of how many: what is asked first, until one is left."""
    answers = [(2, 9)]
    monkeypatch.setattr(for_machine, "count_kept", lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    monkeypatch.setattr(for_machine, "cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(for_machine, "_EVERY_S", 0.0)
    return answers


def test_a_process_compiles_and_the_log_and_the_caller_hear_how_far_it_is(
    kept: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    kept[:] = [(2, 9)] * 3 + [(9, 9)]
    said: Said = []
    monkeypatch.setattr(for_machine, "_CODE", "print(3, 9, flush=True); print(9, 9)")
    with caplog.at_level(logging.INFO):
        compile_for_machine(lambda *ready: said.append(ready))
        compile_for_machine(lambda *ready: said.append(ready))
    assert said == [(2, 9), (3, 9), (9, 9)]
    first, last = caplog.messages
    assert first == "compiling kernels, once on this machine: 3 of 9"
    assert last.endswith(f" s, once on this machine, kept in {tmp_path}")


@pytest.mark.parametrize(("code", "ended"), [("raise SystemExit(3)", 3), ("print(3, 9)", 0)])
def test_what_is_not_compiled_ahead_is_told_and_left_to_the_models(
    code: str,
    ended: int,
    kept: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept[:] = [(2, 9)] * 3 + [(3, 9)]
    monkeypatch.setattr(for_machine, "_CODE", code)
    caplog.set_level(logging.WARNING, logger=for_machine.logger.name)  # tests before may have it say more
    compile_for_machine(lambda *_: None)
    assert caplog.messages == [
        f"3 of 9 kernels are compiled ahead, the rest as models need it: the process that compiles ended with {ended}"
    ]


def test_who_is_stopped_meanwhile_leaves_no_process(
    kept: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def start(*args: object, **options: object) -> subprocess.Popen[str]:
        started.append(popen(*args, **options))  # type: ignore[call-overload]
        return started[-1]

    def stop(ready: int, _: int) -> None:
        if ready == 3:
            raise SystemExit(0)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(for_machine, "_CODE", "import time; print(3, 9, flush=True); time.sleep(600)")
    with pytest.raises(SystemExit):
        compile_for_machine(stop)
    assert started[0].returncode is not None


HOLD = """
import sys
from attributary_agents.models.machine_lock import machine_lock
with machine_lock(sys.argv[1], lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_of_a_machine_compiles_and_another_one_takes_what_it_has_kept(
    kept: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(for_machine, "_compile_apart", lambda _: pytest.fail("the other one has compiled all"))
    waits = threading.Event()
    said: Said = []

    def say(*ready: int) -> None:
        said.append((ready[0], ready[1]))
        waits.set()

    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        waiting = threading.Thread(target=compile_for_machine, args=(say,))
        with caplog.at_level(logging.INFO):
            waiting.start()
            assert waits.wait(60)
        assert said == [(0, 0)]
        kept[:] = [(9, 9)]
        other.stdin.close()
        waiting.join(60)
        assert not waiting.is_alive()
    assert caplog.messages == ["another process of this machine compiles kernels, which is waited for"]


def test_a_lock_that_nobody_holds_is_not_waited_for(tmp_path: Path) -> None:
    for _ in range(2):
        with machine_lock(str(tmp_path / "new"), lambda: pytest.fail("nobody holds it")):
            assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize(("name", "answer"), [("is_compiling", False), ("cache_folder", None)])
def test_nothing_is_compiled_ahead_where_it_could_not_be_kept(
    name: str, answer: object, kept: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert are_missing()
    monkeypatch.setattr(for_machine, name, lambda: answer)
    assert not are_missing()
    compile_for_machine(lambda *_: pytest.fail("nothing is to be said"))


def test_a_folder_that_cannot_be_locked_is_told(
    kept: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(for_machine, "cache_folder", lambda: str(tmp_path / "file"))
    compile_for_machine(lambda *_: None)
    (told,) = caplog.messages
    assert told.startswith("kernels are not compiled ahead, but by each worker as its models need them: ")
