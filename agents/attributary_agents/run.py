"""Worker process: checks, run until a signal, and exit code.

The exit code says how it ended.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from functools import partial
from typing import Any

import faust
from aiokafka.client import AIOKafkaClient

from attributary_explainers.wording import show_count

from .app import Application, create_app
from .config.settings import Config
from .errors import AttributaryError
from .kafka.admin import check_group
from .kafka.brokers import BROKERS, BrokerLog, once_brokers_answer
from .kafka.liveness import keep_asking
from .kafka.membership import check_name
from .kafka.topics import check_topics
from .kafka.transactions import check_transactions
from .kafka.upstream.aiokafka_producer import unacknowledged
from .kafka.upstream.faust_app import shut_down
from .kafka.upstream.faust_producer import producer_of
from .logs import configure_logging
from .models.trial import check_models
from .monitoring.series_limits import check_series
from .sources.mappers.preflight import check_read_topics
from .state.objects import check_objects
from .worker.signals import StopSignals, stop_before_the_start
from .worker.watchdog import Watchdog

logger = logging.getLogger(__name__)


def run_worker(config: Config, name: str = "", *, wait: bool = True) -> int:
    """Run until SIGINT or SIGTERM; return the exit code.

    The code is 0 after a clean stop and 1 after a crash.

    Parameters
    ----------
    name
        Stands in each line of the log, where several workers write to one.
    wait
        Whether a start waits for brokers that do not answer.

    Raises
    ------
    PreflightError
        The brokers or the topics are not as configured, the web address is taken, or no broker answers and none is to
        be waited for.
    AttributaryError
        What is stored cannot be used by this release, or as configured: the message says what to do.
    """
    stop_before_the_start()
    configure_logging(config.log.level, name)
    BROKERS.configured = tuple(config.kafka.brokers)
    check_models(config)
    check_series(config)
    return _work(config, wait=wait)


def _work(config: Config, *, wait: bool) -> int:
    began = time.monotonic()
    application = create_app(config)
    try:
        _prepare(config, application, wait=wait)
        application.web.start()
        gc.freeze()  # modules and the application stay: each full collection would look through them, 120 ms long
        return _run(config, application, began)
    finally:
        application.web.stop()


def _prepare(config: Config, application: Application, *, wait: bool) -> None:
    """Check brokers, topics and object storage before the start.

    The worker's pages are there as soon as brokers are waited for.
    """

    def check_brokers() -> None:
        check_read_topics(config)
        check_topics(config)
        check_group(config)
        check_name(config)
        if config.is_exact:
            asyncio.run(check_transactions(config))

    once_brokers_answer(check_brokers, application.web.start, wait=wait)
    check_objects(config)


def _run(config: Config, application: Application, began: float) -> int:
    if config.state.doubt:  # what ends the start is said alone
        logger.warning("%s", config.state.doubt)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = _Worker(
        application.app, loop=loop, quiet=True, override_logging=False, redirect_stdouts=False, daemon=True
    )
    worker.spinner = None  # drawn on stdout otherwise
    watchdog = Watchdog(
        config.watchdog,
        application.worker.view.activity,
        is_stopping=lambda: application.app.should_stop,
        waits_for_brokers=_waits_for_brokers,
    )

    def on_stop(number: signal.Signals) -> None:
        watchdog.begin_stop(number.name)
        loop.call_soon_threadsafe(shut_down, worker, number)

    worker.stop_signals = StopSignals(on_stop)
    application.stop = lambda: on_stop(signal.SIGTERM)
    watchdog.start(loop)
    telling = BrokerLog(BROKERS, partial(_look_at_writes, application))
    telling.start()
    asking = loop.create_task(keep_asking(partial(_client_of, application)))
    try:
        worker.execute_from_commandline()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
        if code:
            # Last, after Faust's own traces: the message says what to do.
            reason = application.app.crash_reason or worker.crash_reason
            logger.error("the worker stopped; a restart resumes from the last checkpoint. %r", reason)
            return code
    finally:
        watchdog.close()
        telling.close()
        if not loop.is_closed():
            asking.cancel()
    if application.failure is not None:
        logger.error("the worker stopped; a restart resumes from the last checkpoint. %r", application.failure)
        return 1
    if application.unusable:
        raise AttributaryError(application.unusable)
    logger.info("%s", _farewell(application, time.monotonic() - began))
    return 0


def _farewell(application: Application, seconds: float) -> str:
    """Return a line about the run: work done, positions and repeats.

    The positions are those at which the partitions stand.
    """
    view, left = application.worker.view, sorted(application.left, key=lambda assigned: assigned.tp.partition)
    handled = show_count(sum(view.observation_times.counts))
    minutes, rest = divmod(round(seconds), 60)
    lasted = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s" * (minutes > 0)
    topic = application.worker.config.kafka.topics.observations
    stands = ", ".join(f"[{one.tp.partition}] {one.partition.checkpointed + 1}" for one in left[:_SHOWN])
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    pending = sum(one.partition.n_pending for one in left)
    stored = f"{show_count(pending)} of them are repeated by the next owner" if pending else "all of them are stored"
    where = f"; {topic} goes on at offset {stands}{more}" if left else ""
    did = f"{handled} observations handled, {stored}" if handled != "0" else "no observation came"
    return f"stopped after {lasted or f'{rest} s'}: {did}{where}"


def _client_of(application: Application) -> AIOKafkaClient | None:
    """Return the client of the running producer; None before its start."""
    producer = producer_of(application.app)
    return None if producer is None else producer.client


def _waits_for_brokers() -> str:
    """Return the reason for waiting for brokers; empty if there is none.

    Brokers are away, or leave a batch or a commit of offsets without an acknowledgement.
    """
    if BROKERS.away_s is not None:
        return f"no broker answers ({BROKERS.nodes})"
    late = BROKERS.writes.age_s > _LATE_S
    return f"brokers have not acknowledged writes ({BROKERS.writes.names})" if late else ""


def _look_at_writes(application: Application) -> None:
    """Tell the watch which batches and steps await an acknowledgement.

    The steps wait for a commit of offsets.
    """
    producer, activity = producer_of(application.app), application.worker.view.activity
    waiting = activity.kafka_waits
    if producer is not None:
        waiting |= unacknowledged(producer)
    BROKERS.writes.look(waiting, is_heard=activity.silent_s < _BLOCKED_S)


_BLOCKED_S = 1.5  # without a sign of life of the event loop, which gives one every half second
_LATE_S = 5.0  # age from which on a write is not only under way
_SHOWN = 8  # partitions that the last line names


class _Worker(faust.Worker):  # type: ignore[misc]  # Faust is untyped
    """Faust's worker, with signals that a blocked event loop does not delay."""

    stop_signals: Any

    def install_signal_handlers(self) -> None:
        self.stop_signals.install()
