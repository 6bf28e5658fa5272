"""A model that stalls once, when a file says how, on the first observation whose `stall` is 1."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from typing import Any

from river import base

FACTORY = "tests.integration.stalling:stalling_classifier"
VARIABLE = "STALL_FILE"


class StallingClassifier(base.Classifier):
    """The label's share among the observations whose `a` has the same sign."""

    def __init__(self) -> None:
        self.counts = {False: [1, 1], True: [1, 1]}

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if x["stall"]:
            stall_as_told()
        no, yes = self.counts[x["a"] > 0]
        return {False: no / (no + yes), True: yes / (no + yes)}

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        self.counts[x["a"] > 0][bool(y)] += 1


def stalling_classifier() -> StallingClassifier:
    return StallingClassifier()


def stall_as_told() -> None:
    """Take the order away first: a repetition after a crash does not stall."""
    order = Path(os.environ.get(VARIABLE, "/nonexistent"))
    if not order.exists():
        return
    how, seconds = order.read_text().split()
    order.unlink()
    {"sleep": time.sleep, "compute": compute_for, "hold": hold_the_interpreter_for}[how](float(seconds))


def compute_for(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def hold_the_interpreter_for(seconds: float) -> None:
    """In C, with the interpreter's lock: no other thread of the process runs, heartbeats included."""
    ctypes.PyDLL(None).sleep(int(seconds))
