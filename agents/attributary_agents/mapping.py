"""Process of `attributary map`, which only maps the sources.

It runs until a signal, or until the ends of their topics.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from attributary_explainers.wording import show_count

from .config.settings import Config
from .errors import ConfigError
from .kafka.brokers import once_brokers_answer
from .kafka.topics import check_topics
from .logs import configure_logging
from .monitoring.web import WebServer
from .sources.mappers.board import OUTCOMES, SourcesBoard
from .sources.mappers.preflight import check_origin_topics
from .sources.mappers.service import MapperService, map_once
from .worker.signals import STOP, stop_before_the_start, was_stop_lost
from .worker.view import WorkerView

logger = logging.getLogger(__name__)

_BEAT_S = 0.5
_STOPS_WITHIN_S = 10.0


def run_mapper(
    config: Config,
    *,
    once: bool = False,
    wait: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> SourcesBoard:
    """Map until SIGINT or SIGTERM; return the counts.

    With `once`, map until the ends of all topics.

    Parameters
    ----------
    wait
        Whether a start waits for brokers that do not answer.
    progress
        With `once`: called with how many offsets are mapped, and how many there were.

    Raises
    ------
    ConfigError
        There are no sources to map, or a topic is not there.
    PreflightError
        The brokers or our topics are not as configured, or the web address is taken.
    """
    if not config.sources:
        raise ConfigError("sources: there are none to map: name a topic, as `attributary sources suggest` does")
    if any(source.key == "direct" for source in config.sources.values()):
        raise ConfigError("sources: with key: direct workers read the topic themselves: there is nothing to map")
    stop_before_the_start()
    configure_logging(config.log.level)
    board, view = SourcesBoard(), WorkerView({})
    web = WebServer(config, view, board)

    def check() -> None:
        check_origin_topics(config)
        check_topics(config)

    began = time.monotonic()
    try:
        once_brokers_answer(check, lambda: None if once else web.start(), wait=wait)
        if once:
            asyncio.run(_until_stopped(partial(map_once, config, board, progress), view))
        else:
            web.start()
            service = MapperService(config, board)
            asyncio.run(_until_stopped(service.run, view, service.stop))
    finally:
        web.stop()
    told = ", ".join(f"{show_count(board.total[outcome])} {outcome}" for outcome in OUTCOMES)
    logger.info("stopped after %.0f s: records %s", time.monotonic() - began, told)
    return board


async def _until_stopped(
    work: Callable[[], Coroutine[Any, Any, None]], view: WorkerView, stop: Callable[[], None] | None = None
) -> None:
    """Do the work until it ends; stop it at a signal.

    It is cancelled where stopping takes long.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work())

    def on_signal() -> None:
        if stop is None:
            task.cancel()
            return
        stop()
        loop.call_later(_STOPS_WITHIN_S, task.cancel)

    for number in STOP:
        loop.add_signal_handler(number, on_signal)
    if was_stop_lost():
        on_signal()
    beat = asyncio.ensure_future(_beat(view))
    view.activity.ready = True
    try:
        await task
    except asyncio.CancelledError:
        logger.warning("stopped in the middle: what was committed is mapped, the rest is mapped by the next run")
    finally:
        beat.cancel()
        for number in STOP:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)


async def _beat(view: WorkerView) -> None:
    while True:
        view.activity.beat()
        await asyncio.sleep(_BEAT_S)
