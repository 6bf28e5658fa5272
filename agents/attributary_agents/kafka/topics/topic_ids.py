"""Questions to brokers about topics of others: ids and partitions.

A topic may not be there at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.client import ConnectionGroup
from aiokafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError, for_code
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest_v4, MetadataRequest_v5
from aiokafka.protocol.types import (
    AbstractType,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

_NO_ID = "0" * 32


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


class _Uuid(AbstractType[str]):  # type: ignore[misc]  # aiokafka is untyped
    @classmethod
    def encode(cls, value: str) -> bytes:
        return bytes.fromhex(value)

    @classmethod
    def decode(cls, data: Any) -> str:
        return str(data.read(16).hex())


class _MetadataResponse_v10(Response):  # type: ignore[misc]  # noqa: N801 - as the client names its own
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString("utf-8")),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("topic_authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _MetadataRequest_v10(RequestStruct):  # type: ignore[misc]  # noqa: N801
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _MetadataResponse_v10
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", _Uuid), ("topic", CompactString("utf-8")), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicsRequest(Request[MetadataRequest_v4 | MetadataRequest_v5 | _MetadataRequest_v10]):  # type: ignore[misc]
    """Request for topics by name, with ids from brokers that know ids.

    It creates none of them.
    """

    API_KEY = 3

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[Any]) -> Any:
        if request_struct_class.API_VERSION < 10:
            return request_struct_class(self._names, False)
        return request_struct_class([(_NO_ID, name, {}) for name in self._names], False, False, False, {})


async def ask_retention_ms(client: Any, topic: str) -> int | None:
    """Return a topic's retention in milliseconds, or None.

    None means that records are never deleted, or that brokers do not tell.

    Parameters
    ----------
    client
        aiokafka's client, which is connected.
    """
    request = DescribeConfigsRequest([(ConfigResourceType.TOPIC, topic, ["retention.ms"])])
    answer = await client.send(client.get_random_node(), request)
    for code, _said, _type, _name, entries in answer.resources:
        for entry in entries if not code else ():
            return int(entry[1]) if int(entry[1]) >= 0 else None
    return None


async def ask_with_ids(client: Any, names: list[str], node: int | None = None) -> dict[str, OriginTopic]:
    """Return the topics of these names that there are.

    Parameters
    ----------
    client
        aiokafka's client, which is connected.
    node
        The broker that is asked; None: any.

    Raises
    ------
    KafkaError
        No broker answers, or this user may not see one of them.
    """
    request, group = _TopicsRequest(list(names)), ConnectionGroup.DEFAULT
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
        found[name] = OriginTopic(name, "" if topic_id == _NO_ID else topic_id, numbers)
    return found
