"""Topics of others: existence, ids, partitions and retention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError, for_code
from aiokafka.protocol.admin import DescribeConfigsRequest

from attributary_explainers.wording import closest, show_names

from ...config.settings import Config, KafkaConfig
from ...errors import ConfigError
from ..admin import with_admin
from ..upstream.aiokafka_admin import client_of_admin
from ..upstream.aiokafka_metadata import NO_ID, TopicsRequest


@dataclass(frozen=True)
class OriginTopic:
    """A topic of others as brokers have it.

    Attributes
    ----------
    id
        Kafka's id of it, which another topic of the same name does not have; empty where brokers have none.
    """

    name: str
    id: str
    partitions: tuple[int, ...]


async def ask_retention_ms(client: AIOKafkaClient, topic: str) -> int | None:
    """Return a topic's retention in milliseconds; None if unlimited, unknown."""
    request = DescribeConfigsRequest([(ConfigResourceType.TOPIC, topic, ["retention.ms"])])
    answer = await client.send(client.get_random_node(), request)
    for code, _said, _type, _name, entries in answer.resources:
        for entry in entries if not code else ():
            return int(entry[1]) if int(entry[1]) >= 0 else None
    return None


async def ask_with_ids(client: AIOKafkaClient, names: list[str], node: int | None = None) -> dict[str, OriginTopic]:
    """Return the topics of these names that there are.

    Parameters
    ----------
    node
        The broker that is asked; None: any.

    Raises
    ------
    KafkaError
        No broker answers, or this user may not see one of them.
    """
    request, group = TopicsRequest(list(names)), ConnectionGroup.DEFAULT
    if node is None:
        node = client.get_random_node()
    else:  # over a connection of its own: on that of the data a fetch waits for more, and all that comes after it
        group = ConnectionGroup.COORDINATION
    answer = await client.send(node, request, group=group)
    found: dict[str, OriginTopic] = {}
    for topic in answer.to_object()["topics"]:
        code, name = topic["error_code"], topic["topic"]
        if code == TopicAuthorizationFailedError.errno:
            raise TopicAuthorizationFailedError(name)
        if code == UnknownTopicOrPartitionError.errno:
            continue
        if code:
            raise for_code(code)(name)
        topic_id = topic.get("topic_id", "")
        numbers = tuple(sorted(part["partition"] for part in topic["partitions"]))
        found[name] = OriginTopic(name, "" if topic_id == NO_ID else topic_id, numbers)
    return found


def origin_topics(config: Config) -> dict[str, str]:
    """Return the topics of sources and labels, each with its first key."""
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
        found = await ask_with_ids(client_of_admin(admin), sorted(wanted))
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
