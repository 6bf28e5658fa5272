"""Waits, at the start of a worker, for brokers that are not there yet."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ...errors import BrokersAwayError
from .connection import Backoff
from .watch import SAY_EVERY_S

logger = logging.getLogger(__name__)


def once_brokers_answer(work: Callable[[], None], on_wait: Callable[[], None], *, wait: bool = True) -> None:
    """Do `work`, again and again while no broker answers it.

    Parameters
    ----------
    work
        Asks the brokers something.
    on_wait
        Called once, where the waiting begins.
    wait
        Whether to wait at all.

    Raises
    ------
    BrokersAwayError
        No broker answers, and it is not to be waited for.
    AttributaryError
        Whatever else `work` raises: no waiting mends it.
    """
    backoff, began, said_at = Backoff(), time.monotonic(), None
    while True:
        try:
            work()
            break
        except BrokersAwayError as error:
            if not wait:
                raise
            now = time.monotonic()
            if said_at is None:
                on_wait()
                logger.warning("the start waits for brokers: %s", error.causes)
                said_at = now
            elif now - said_at >= SAY_EVERY_S:
                logger.warning("the start has waited for brokers for %.0f s: %s", now - began, error.causes)
                said_at = now
        backoff.note(connected=False)
        time.sleep(backoff.wait_s)
    if said_at is not None:
        logger.warning("the brokers answer, after %.0f s: the start goes on", time.monotonic() - began)
