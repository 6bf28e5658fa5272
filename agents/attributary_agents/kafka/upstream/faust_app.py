"""Correction of `faust.App`.

- It makes folders for tables where the worker is started, though ours are in memory.
- It commits by its own record of acknowledgements, over gaps where these come out of order.

True for faust-streaming 0.15.3; `test_faust.py` says when it is mended.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import faust
from faust.types import TP

from ..inbox import Intake
from .faust_consumer import ExactConsumer, is_unexplained
from .faust_producer import WaitingProducer
from .faust_recovery import ExactTableManager
from .faust_table import RawTable

logging.getLogger(__name__).addFilter(is_unexplained)


class ExactApp(faust.App):  # type: ignore[misc]  # Faust is untyped
    """A Faust app of the corrected parts."""

    intake: Intake
    """What has been fetched of the observations and waits to be handled."""
    on_fenced: Callable[[], None]
    """Called where another process has taken our name in the group."""
    before_recovery: Callable[[set[TP], float], Awaitable[set[TP]]]
    """Called with the changelog's partitions, and how many seconds it may take, before their ends are asked for.

    Returns those that are to be read from the start.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, TableManager=ExactTableManager, Table=RawTable, **kwargs)

    def _new_transport(self) -> Any:
        transport = super()._new_transport()
        transport.Consumer = ExactConsumer
        transport.Producer = WaitingProducer
        return transport

    def _create_directories(self) -> None:
        pass


async def commit_exactly(app: faust.App, partition: TP, offset: int) -> None:
    """Commit the next offset of a partition, past Faust's record of acks.

    A partition that is no longer ours is left alone: its new owner commits.
    """
    await app.consumer._commit_offsets({partition: offset})


def shut_down(worker: faust.Worker, number: int) -> None:
    """Stop Faust's worker as it does at a signal; no public name does."""
    worker._schedule_shutdown(number)
