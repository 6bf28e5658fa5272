"""The worker process: it checks the configuration, runs until a signal, and says by its exit code how it ended."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

import faust

from .app import create_app
from .config.settings import Config
from .kafka.admin import check_group
from .kafka.topics import check_topics
from .logs import configure_logging
from .models.model_state import check_models
from .models.warm_up import warm_up
from .state.objects import check_objects
from .worker.signals import StopSignals, stop_before_the_start
from .worker.watchdog import Watchdog

logger = logging.getLogger(__name__)


def run_worker(config: Config) -> int:
    """Run until SIGINT or SIGTERM; return the exit code, 0 after a clean stop and 1 after a crash.

    Raises
    ------
    PreflightError
        The broker or the topics are not as configured, or the web address is taken.
    """
    stop_before_the_start()
    configure_logging(config.log.level)
    check_models(config)
    check_topics(config)
    check_group(config)
    check_objects(config)
    warm_up(config)
    application = create_app(config)
    application.web.start()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = _Worker(
        application.app, loop=loop, quiet=True, override_logging=False, redirect_stdouts=False, daemon=True
    )
    worker.spinner = None  # drawn on stdout otherwise
    watchdog = Watchdog(
        config.watchdog, application.worker.view.activity, is_stopping=lambda: application.app.should_stop
    )

    def on_stop(number: signal.Signals) -> None:
        watchdog.begin_stop(number.name)
        loop.call_soon_threadsafe(worker._schedule_shutdown, number)

    worker.stop_signals = StopSignals(on_stop)
    watchdog.start(loop)
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
        application.web.stop()
    return 0


class _Worker(faust.Worker):  # type: ignore[misc]  # Faust is untyped
    """Faust's worker, with signals that a blocked event loop does not delay."""

    stop_signals: Any

    def install_signal_handlers(self) -> None:
        self.stop_signals.install()
