"""The worker process: it checks the configuration, runs until a signal, and says by its exit code how it ended.

Several workers of one machine are such processes, forked from one that has checked and imported all once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Collection, MutableSequence, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import faust
from aiokafka.client import AIOKafkaClient

from attributary_explainers.wording import show_count

from .app import Application, create_app
from .config.settings import Config
from .errors import AttributaryError, BrokersAwayError
from .kafka.admin import check_group
from .kafka.brokers.connection import keep_asking
from .kafka.brokers.producer import unacknowledged
from .kafka.brokers.start import once_brokers_answer
from .kafka.brokers.watch import BROKERS, BrokerLog
from .kafka.membership import check_name
from .kafka.topics import check_topics
from .kafka.transactions import check_transactions
from .logs import configure_logging
from .models.trying import check_models, import_models
from .monitoring.series_limits import check_series
from .monitoring.web import listen_as_configured
from .sources.mappers.preflight import check_read_topics
from .state.objects import check_objects
from .supervise import (
    Role,
    Supervisor,
    Workers,
    WorkersWeb,
    as_one_of,
    count_workers,
    is_forkable,
    run_once,
    set_aside,
    shared_numbers,
)
from .worker.stopping.signals import STOP, StopSignals, stop_before_the_start
from .worker.stopping.watchdog import Watchdog

logger = logging.getLogger(__name__)


def run_worker(config: Config, *, wait: bool = True) -> int:
    """Run until SIGINT or SIGTERM; return the exit code, 0 after a clean stop and 1 after a crash.

    Parameters
    ----------
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
    configure_logging(config.log.level)
    BROKERS.configured = tuple(config.kafka.brokers)
    check_models(config)
    check_series(config)
    return _work(config, wait=wait)


def run_workers(config: Config, asked: int | str, *, wait: bool = True) -> int:
    """Run several workers of the group on this machine, as `run_worker` runs one; return the exit code.

    Parameters
    ----------
    asked
        How many, or `auto`.

    Raises
    ------
    AttributaryError
        As `run_worker` does, whichever worker has met it; there are fewer partitions; or a model starts threads where
        it is imported.
    """
    if (n := count_workers(asked, config)) == 1:
        return run_worker(config, wait=wait)
    began = time.monotonic()
    stop_before_the_start()
    configure_logging(config.log.level, "supervisor")
    BROKERS.configured = tuple(config.kafka.brokers)
    check_series(config, n)
    is_shared = _ends_well(Role("models", partial(_try_models, config)))
    try:
        is_checked = _ends_well(Role("check", partial(_check, config, n)))
    except BrokersAwayError as error:
        if not wait:
            raise
        logger.warning("each worker waits for brokers: %s", error.causes)
        is_checked = False
    if is_shared:
        import_models(config)
    with listen_as_configured(config) as listener, TemporaryDirectory(prefix="attributary-") as folder:
        n_restarts = shared_numbers(n)
        sockets = [Path(folder) / f"{number}" for number in range(n)]
        roles = [
            Role(
                f"worker {number}", partial(_be_one_of, as_one_of(config, number, n), number, at, listener, is_checked)
            )
            for number, at in enumerate(sockets)
        ]
        roles.append(Role("web", partial(_serve, config, sockets, n_restarts, listener), outlives_others=True))
        supervisor = Supervisor(roles, config.watchdog.stop_within_s, partial(_note, n_restarts))
        set_aside()
        code = supervisor.run()
    lasted, again = time.monotonic() - began, supervisor.n_restarts
    logger.info("stopped after %.0f s: %d workers; processes that were started again: %d", lasted, n, again)
    return code


def _ends_well(role: Role) -> bool:
    """Do a role's work in a process of its own, which leaves nothing here; return whether it says that all is well.

    Raises
    ------
    AttributaryError
        It has met a user's fault.
    """
    ending = run_once(role)
    if ending.fault is not None:
        message, causes = ending.fault
        raise AttributaryError(message) if causes is None else BrokersAwayError(message, causes)
    if ending.code not in (0, _NOT_WELL):
        raise AttributaryError(f"the {role.name} could not be looked at: the process {ending}; its log is above")
    return ending.code == 0


def _try_models(config: Config) -> int:
    configure_logging(config.log.level, "models")
    check_models(config)
    return 0 if is_forkable() else _NOT_WELL


def _check(config: Config, n: int) -> int:
    configure_logging(config.log.level, "check")
    check_read_topics(config)
    check_topics(config)
    check_group(config)
    for number in range(n):
        check_name(as_one_of(config, number, n))
    check_objects(config)
    return 0


def _be_one_of(config: Config, number: int, at: Path, listener: socket.socket, is_checked: bool) -> int:
    """Be a worker of several, in a forked process: its pages are at a path of this machine."""
    listener.close()
    configure_logging(config.log.level, f"worker {number}")
    return _work(config, at=at, is_checked=is_checked, signals=(signal.SIGTERM,))


def _serve(config: Config, sockets: list[Path], n_restarts: Sequence[float], listener: socket.socket) -> int:
    configure_logging(config.log.level, "web")
    web = WorkersWeb(Workers(sockets), lambda number: int(n_restarts[number]), config.web.stuck_after_s)
    return web.serve(listener)


def _note(n_restarts: MutableSequence[float], number: int, n: int) -> None:
    if number < len(n_restarts):  # of the workers alone
        n_restarts[number] = n


def _work(
    config: Config,
    *,
    wait: bool = True,
    at: Path | None = None,
    is_checked: bool = False,
    signals: Collection[signal.Signals] = STOP,
) -> int:
    """Do a worker's work until it is to stop.

    Parameters
    ----------
    wait
        As for `run_worker`.
    at
        Path of the socket at which its pages are; None: the configured address.
    is_checked
        Whether brokers, topics and stores have been looked at.
    signals
        What it stops at.
    """
    began = time.monotonic()
    application = create_app(config)
    try:
        if not is_checked:
            _prepare(config, application, at, wait=wait)
        application.web.start(at)
        gc.freeze()  # modules and the application stay: each full collection would look through them, 120 ms long
        return _run(config, application, began, signals)
    finally:
        application.web.stop()


def _prepare(config: Config, application: Application, at: Path | None, *, wait: bool) -> None:
    """Check what the worker needs; its pages are there as soon as brokers are waited for."""

    def check_brokers() -> None:
        check_read_topics(config)
        check_topics(config)
        check_group(config)
        check_name(config)
        if config.is_exact:
            asyncio.run(check_transactions(config))

    once_brokers_answer(check_brokers, partial(application.web.start, at), wait=wait)
    check_objects(config)


def _run(config: Config, application: Application, began: float, signals: Collection[signal.Signals]) -> int:
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
        loop.call_soon_threadsafe(worker._schedule_shutdown, number)

    worker.stop_signals = StopSignals(on_stop, signals)
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
    """Say in one line what was handled, where the partitions stand, and what is repeated."""
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
    """Return the client of the running producer, which is of the worker's event loop; None before its start."""
    producer = application.app.producer._producer
    return None if producer is None else producer.client


def _waits_for_brokers() -> str:
    """Say that brokers are away, or leave a batch or a commit of offsets without an acknowledgement; else nothing."""
    if BROKERS.away_s is not None:
        return f"no broker answers ({BROKERS.nodes})"
    late = BROKERS.writes.age_s > _LATE_S
    return f"brokers have not acknowledged writes ({BROKERS.writes.names})" if late else ""


def _look_at_writes(application: Application) -> None:
    """Tell the watch what waits for an acknowledgement: batches, and steps that wait for a commit of offsets."""
    producer, activity = application.app.producer._producer, application.worker.view.activity
    waiting = activity.kafka_waits
    if producer is not None:
        waiting |= unacknowledged(producer)
    BROKERS.writes.look(waiting, is_heard=activity.silent_s < _BLOCKED_S)


_NOT_WELL = 3  # exit code of a process that has looked at something, and would not have it done here
_BLOCKED_S = 1.5  # without a sign of life of the event loop, which gives one every half second
_LATE_S = 5.0  # age from which on a write is not only under way
_SHOWN = 8  # partitions that the last line names


class _Worker(faust.Worker):  # type: ignore[misc]  # Faust is untyped
    """Faust's worker, with signals that a blocked event loop does not delay."""

    stop_signals: Any

    def install_signal_handlers(self) -> None:
        self.stop_signals.install()
