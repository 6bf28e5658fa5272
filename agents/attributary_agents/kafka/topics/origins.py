"""Checks that topics of others exist, without creating them.

They say which topics do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiokafka.admin import AIOKafkaAdminClient

from attributary_explainers.wording import closest, show_names

from ...config.settings import Config, KafkaConfig
from ...errors import ConfigError
from ..admin import with_admin
from .topic_ids import ask_with_ids


def origin_topics(config: Config) -> dict[str, str]:
    """Return the topics of sources and labels, with a key that names each.

    It is the first such key.
    """
    found: dict[str, str] = {}
    for name, source in config.sources.items():
        found = {**dict.fromkeys(source.topic, f"sources.{name}.topic"), **found}
    for name, section in config.labels.items():
        found = {**dict.fromkeys(section.topic, f"labels.{name}.topic"), **found}
    return found


def find_origin_topics(kafka: KafkaConfig, wanted: Mapping[str, str]) -> dict[str, int]:
    """Return the number of partitions of topics that are not ours.

    Parameters
    ----------
    wanted
        Topic to the key of the configuration, or the argument, that names it.

    Raises
    ------
    ConfigError
        Some are not there: each with the one that may be meant.
    PreflightError
        The brokers cannot be reached or refuse.
    """

    async def work(admin: AIOKafkaAdminClient) -> dict[str, int]:
        found = await ask_with_ids(admin._client, sorted(wanted))
        if missing := [topic for topic in wanted if topic not in found]:
            there = await admin.list_topics()
            raise ConfigError("; ".join(no_such_topic(kafka, wanted[topic], topic, there) for topic in missing))
        return {name: len(topic.partitions) for name, topic in found.items()}

    return with_admin(kafka, work) if wanted else {}


def no_such_topic(kafka: KafkaConfig, key: str, topic: str, there: Iterable[str]) -> str:
    """Say that a topic does not exist, and which topic may be meant.

    Parameters
    ----------
    key
        What names it: a key of the configuration, or an argument.
    there
        The topics that there are, as far as this user may see them.
    """
    known = sorted(name for name in there if not name.startswith("__"))
    near = closest(topic, known)
    own = {*kafka.topics.names, kafka.changelog, kafka.shards}
    foreign = [name for name in known if name not in own]
    others = f"did you mean {near!r}?" if near else f"there are {show_names(foreign)}" if foreign else "there is none"
    hidden = "" if kafka.security.protocol == "PLAINTEXT" or near else ", as far as this user may see them"
    return f"{key}: no topic {topic!r} on {', '.join(kafka.brokers)}; {others}{hidden}"
