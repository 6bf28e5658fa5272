"""Signals before the worker listens to them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, time
from attributary_agents.worker.signals import stop_before_the_start
stop_before_the_start()
os.kill(os.getpid(), {number})
time.sleep(30)
raise AssertionError("the signal was not heard")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_start_is_a_clean_stop(number: signal.Signals) -> None:
    script = SCRIPT.format(number=int(number))
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr) == (0, "")


LOST = """
import os, signal, threading
from attributary_agents.worker.signals import StopSignals, stop_before_the_start, was_stop_lost
stop_before_the_start()

class Closes:
    def __del__(self):
        os.kill(os.getpid(), {number})

closes = Closes()
del closes
assert was_stop_lost()
heard = threading.Event()
StopSignals(lambda number: heard.set()).install()
assert heard.wait(20), "nobody is told"
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_a_destructor_before_the_start_is_heard_when_the_worker_listens(number: signal.Signals) -> None:
    """Python prints such an exception and goes on: a worker that is told to stop while it starts would never do so."""
    script = LOST.format(number=int(number))
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 0, found.stderr
    assert "SystemExit: 0" in found.stderr
