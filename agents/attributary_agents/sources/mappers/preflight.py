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


def check_read_topics(config: Config) -> None:
    """Raise ConfigError unless the topics are there that a worker reads beside ours: none where others map them.

    Who writes to the observations topic by themselves has sections of sources and labels for topics that nobody reads.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse.
    """
    if config.run.mapper or any(source.key == "direct" for source in config.sources.values()):
        check_origin_topics(config)
