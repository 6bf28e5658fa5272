"""Signals before the worker listens to them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, time
from attributary_agents.worker.stopping.signals import stop_before_the_start
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
