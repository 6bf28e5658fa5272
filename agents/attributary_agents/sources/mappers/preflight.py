"""Checks at the start on the topics of sources and labels.

The topics must be there, with the partitions that they must have.
"""

from __future__ import annotations

from ...config.settings import Config
from ...errors import ConfigError
from ...kafka.topics.origins import find_origin_topics, origin_topics


def check_origin_topics(config: Config) -> None:
    """Raise ConfigError for missing topics or mismatched partition counts.

    It names every fault. Partitions must match for `key: direct`, so that workers can read the topics.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse.
    """
    partitions = find_origin_topics(config.kafka, origin_topics(config))
    ours = config.kafka.partitions
    faults = [
        f"sources.{name}: {n} partition{'' if n == 1 else 's'}, kafka.partitions is {ours}: set kafka.partitions: {n}, "
        "or key: copy"
        for name, source in config.sources.items()
        for n in (partitions[topic] for topic in source.topic)
        if source.key == "direct" and n != ours
    ]
    if faults:
        raise ConfigError("; ".join(faults))


def check_read_topics(config: Config) -> None:
    """Raise ConfigError unless the foreign topics that a worker reads exist.

    There are none to check where others map them.

    Who writes to the observations topic by themselves has sections of sources and labels for topics that nobody reads.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse.
    """
    if config.run.mapper or any(source.key == "direct" for source in config.sources.values()):
        check_origin_topics(config)
