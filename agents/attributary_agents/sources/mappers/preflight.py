"""Checks at the start that the topics of sources and labels are there."""

from __future__ import annotations

from ...config.settings import Config
from ...kafka.topics.origins import find_origin_topics


def check_origin_topics(config: Config) -> None:
    """Check that the topics are there.

    Raises
    ------
    PreflightError
        Some are not, or the brokers cannot be reached.
    """
    sections = (("sources", config.sources), ("labels", config.labels))
    find_origin_topics(
        config.kafka,
        {topic: f"{kind}.{name}.topic" for kind, all_ in sections for name, one in all_.items() for topic in one.topic},
    )
