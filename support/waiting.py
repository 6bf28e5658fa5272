"""Waiting for a condition, in plain, synchronous code."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, ask: Callable[[], T], timeout_s: float = 60.0, *, every_s: float = 0.1) -> T:
    """Ask until the answer is true, and return it; fail with `what` and the last answer after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout_s:g} s; the last answer was {answer!r}")
        time.sleep(every_s)
    return answer
