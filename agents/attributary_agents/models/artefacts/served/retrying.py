"""Retries of unanswered requests, with growing, jittered delays.

The endpoint may say itself when to try again.
"""

from __future__ import annotations

from typing import Any

from ....config.served import ServedConfig
from .errors import NotNowError

FIRST_S, LONGEST_S, JITTER_S = 0.1, 5.0, 0.25


def attempts(config: ServedConfig, retries: int | None = None) -> Any:
    """Return the attempts at a request, for `async for` or `for`.

    Parameters
    ----------
    retries
        How often it is sent again; None: as the configuration says.
    """
    import stamina
    from stamina.instrumentation import set_on_retry_hooks

    # Its own hooks would write a line for each attempt, and count in a registry of metrics that nobody reads.
    set_on_retry_hooks(())
    return stamina.retry_context(
        on=_pause,
        attempts=1 + (config.retries if retries is None else retries),
        timeout=None,
        wait_initial=FIRST_S,
        wait_max=LONGEST_S,
        wait_jitter=JITTER_S,
    )


def _pause(error: Exception) -> bool | float:
    """Say whether a request is sent again, or after how many seconds."""
    if not isinstance(error, NotNowError):
        return False
    return True if error.after_s is None else error.after_s
