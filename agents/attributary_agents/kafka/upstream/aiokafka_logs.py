"""Correction of the lines that aiokafka logs.

- At DEBUG it logs each request; with PLAIN one of them is the password itself.
- A heartbeat that is told of a rebalance has not failed: it is how each member hears of it.
- At ERROR it logs each attempt to reach a broker that is away, which `BROKERS` says once, and each request that it
  repeats.

True for aiokafka 0.14.0; `test_aiokafka_logs.py` says when it is mended.
"""

from __future__ import annotations

import logging

from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NotCoordinatorForGroupError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
)

from ..brokers import BROKERS

_REBALANCING = "Heartbeat failed for group %s because it is rebalancing"

_ABOUT_CONNECTING = (
    "Unable connect to",
    "Unable to request metadata",
    "Unable to update metadata",
    "Heartbeat session expired",
)

_PASSING = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaConnectionError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NotCoordinatorForGroupError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
)
"""Errors of requests to a broker that has gone, or that is no longer or not yet responsible: clients ask again."""

_CLIENTS = (
    "aiokafka",
    "aiokafka.cluster",
    "aiokafka.conn",
    "aiokafka.consumer.consumer",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.producer",
    "aiokafka.producer.sender",
)
"""Loggers of aiokafka: a filter does not concern the loggers below its own."""


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a client's log line is to be written."""
    if record.levelno >= logging.CRITICAL:
        return True
    if record.msg == _REBALANCING:
        return False
    arguments = record.args if isinstance(record.args, tuple) else ()
    if any(type(argument).__name__.startswith("SaslAuthenticateRequest") for argument in arguments):
        return False
    is_passing = any(isinstance(argument, _PASSING) or argument in _PASSING for argument in arguments)
    if BROKERS.is_failing and (is_passing or str(record.msg).startswith(_ABOUT_CONNECTING)):
        return False
    if is_passing and record.levelno == logging.ERROR:
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return BROKERS.is_settled


def correct_logs() -> None:
    """Filter the log lines of all clients of this process."""
    for name in _CLIENTS:
        logging.getLogger(name).addFilter(_is_news)
