"""Checks at the start that the topics of sources and labels are there."""

from __future__ import annotations

from ...config.settings import Config
from ...kafka.topics.origins import find_origin_topics, origin_topics


def check_origin_topics(config: Config) -> None:
    """Raise ConfigError, naming every fault, unless the topics are there.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse.
    """
    find_origin_topics(config.kafka, origin_topics(config))
