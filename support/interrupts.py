"""Ctrl-C for processes that tests start."""

from __future__ import annotations

import signal


def take_interrupts() -> None:
    """Have the child end on Ctrl-C, as `preexec_fn`: what a shell runs in the background ignores it, children too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
