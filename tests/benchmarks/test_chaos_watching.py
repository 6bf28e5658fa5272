"""What the chaos scenarios watch with: the liveness probe, the slopes of the soak, the lines of the log."""

from __future__ import annotations

import http.server
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.chaos.__main__ import default
from benchmarks.chaos.compare.growth import BLOCKS, slope
from benchmarks.chaos.lab.brokers import ChaosBroker, Nodes
from benchmarks.chaos.lab.fleet import Member
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.probe import FAILURES, Probe
from benchmarks.chaos.scenarios.registry import ON_REQUEST, SCENARIOS
from benchmarks.chaos.scenarios.soak import count_lines
from benchmarks.process import footprint, of_all_cpu_s, peak_bytes, processor_s
from support.waiting import wait_for


class Answering:
    """A worker as far as the probe goes: a port that answers, and a process that can be killed."""

    def __init__(self) -> None:
        self.statuses = {"/livez": 200, "/readyz": 503}
        self.n_asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.n_asked += self.path == "/livez"
                self.send_response(outer.statuses[self.path])
                self.end_headers()
                self.wfile.write(b"no broker answers")

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def exit_code(self) -> int | None:
        return self.child.poll()

    def close(self) -> None:
        self.server.shutdown()
        self.child.kill()
        self.child.wait()


@pytest.fixture
def worker() -> Iterator[Answering]:
    made = Answering()
    yield made
    made.close()


@pytest.fixture
def probe(worker: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Probe]:
    monkeypatch.setattr("benchmarks.chaos.lab.probe.PERIOD_S", 0.01)
    member = Member(worker)  # type: ignore[arg-type]
    member.wanted, member.n_starts = True, 1
    lab = Lab("probe", ChaosBroker(tmp_path), Nodes(tmp_path), tmp_path, 1, True, lambda _text: None)
    made = Probe(lab, [member])
    made.start()
    yield made
    made.stop()


def test_a_worker_that_is_alive_is_left_alone_however_long_it_is_not_ready(worker: Answering, probe: Probe) -> None:
    wait_for("ten looks", lambda: len(probe.seen) >= 10)
    assert (probe.kills, worker.exit_code) == ([], None)
    assert {(one.live, one.ready, one.said) for one in probe.seen} == {(200, 503, "no broker answers")}


def test_three_failures_in_a_row_kill_a_worker_that_has_answered_before(worker: Answering, probe: Probe) -> None:
    wait_for("a look", lambda: probe.seen)
    worker.statuses["/livez"] = 503
    assert wait_for("the end", lambda: worker.exit_code) == -signal.SIGKILL
    assert [one.live for one in probe.seen[-FAILURES:]] == [503] * FAILURES
    assert len(probe.kills) == 1
    assert "503 no broker answers" in probe.kills[0]


def test_a_worker_that_has_not_answered_since_its_start_is_still_starting(worker: Answering, probe: Probe) -> None:
    wait_for("a look", lambda: probe.seen)
    first = worker.child
    worker.statuses["/livez"] = 503
    wait_for("its end", lambda: first.poll() is not None)
    n = len(probe.seen)
    worker.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    wait_for("many looks at the next", lambda: len(probe.seen) > n + 3 * FAILURES)
    assert worker.exit_code is None


def noisy(n: int, per_hour: float, spread: float, seed: int = 1) -> tuple[list[float], list[float]]:
    """Samples of every five seconds, whose noise lasts for a minute."""
    rng = np.random.default_rng(seed)
    seconds = 5.0 * np.arange(n)
    noise = np.convolve(rng.normal(0, spread, n + 11), np.ones(12) / 12**0.5, "valid")
    return list(seconds), list(100 + per_hour * seconds / 3600 + noise)


def test_a_slope_is_known_by_its_error_although_neighbouring_samples_depend_on_each_other() -> None:
    found = [slope(*noisy(720, 3.0, 2.0, seed)) for seed in range(200)]
    off = [(one.per_hour - 3.0) / one.error for one in found]
    assert np.mean(np.abs(off) < 2.23) == pytest.approx(0.95, abs=0.06)  # Student's t, ten degrees of freedom


def test_what_grows_is_named_and_what_does_not_is_not() -> None:
    assert all(slope(*noisy(720, 20.0, 2.0, seed)).grows for seed in range(50))
    assert sum(slope(*noisy(720, 0.0, 2.0, seed)).grows for seed in range(500)) <= 5
    assert slope(*noisy(720, 20.0, 2.0)).share_per_hour == pytest.approx(0.18, abs=0.05)


@pytest.mark.parametrize(
    ("seconds", "values"),
    [([], []), ([1.0], [2.0]), ([1.0, 2.0, 3.0], [2.0] * 3), ([1.0, 2.0], [math.nan] * 2), ([1.0, 9.0], [1.0, 2.0])],
    ids=["none", "one", "equal", "unknown", "two"],
)
def test_too_little_is_no_growth(seconds: list[float], values: list[float]) -> None:
    assert not slope(seconds, values).grows


def test_samples_that_are_missing_leave_the_slope_as_it_is() -> None:
    seconds, values = noisy(720, 20.0, 0.0)
    values[::3] = [math.nan] * len(values[::3])
    assert slope(seconds, values, BLOCKS).per_hour == pytest.approx(20.0)


def test_lines_are_counted_by_level_and_only_where_they_begin_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "2026-11-23 18:00:45,029 WARNING aiokafka.producer: one\n"
        "2026-11-23 18:00:45,030 ERROR mode.timers: another\n"
        "  a frame of ERROR \n"
        "2026-11-23 18:00:45,031 INFO attributary_agents: says ERROR \n"
    )
    assert count_lines([log, log]) == {"WARNING": 2, "ERROR": 2, "INFO": 2}


def test_the_kernel_says_what_this_process_takes() -> None:
    found = footprint(os.getpid())
    assert 1e6 < found.rss <= peak_bytes(os.getpid())
    assert found.files >= 3
    assert found.threads >= 1
    assert processor_s(os.getpid()) > 0


BUSY = """
import time
while time.process_time() < 0.3:
    pass
"""
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
exec(sys.argv[1])
print(flush=True)
time.sleep(600)
"""


def test_processor_time_is_that_of_children_and_of_theirs_while_they_run_and_afterwards() -> None:
    before_s = of_all_cpu_s()
    with subprocess.Popen([sys.executable, "-c", PARENT, BUSY], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        running_s = of_all_cpu_s() - before_s
        child.kill()
    assert running_s > 0.55
    assert of_all_cpu_s() - before_s > 0.55


def test_what_takes_as_long_as_wanted_is_only_run_where_it_is_named_or_in_small() -> None:
    assert default(short=True) == list(SCENARIOS)
    assert [name for name in SCENARIOS if name not in default(short=False)] == list(ON_REQUEST)
