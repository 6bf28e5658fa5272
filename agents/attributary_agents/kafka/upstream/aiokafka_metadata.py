"""Addition to `aiokafka.protocol.metadata`: ids of topics (KIP-516).

Another topic of the same name has another id: nothing else tells for certain that a topic was deleted and made anew.

True for aiokafka 0.14.0, which ends at version 5; `test_aiokafka_consumer.py` says when it is mended.
"""

from __future__ import annotations

from typing import Any

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

NO_ID = "0" * 32


class _Uuid(AbstractType[str]):  # type: ignore[misc]  # aiokafka is untyped
    @classmethod
    def encode(cls, value: str) -> bytes:
        return bytes.fromhex(value)

    @classmethod
    def decode(cls, data: Any) -> str:
        return str(data.read(16).hex())


_TEXT, _TAGS = CompactString("utf-8"), ("tags", TaggedFields)
_BROKER = ("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), _TAGS
_PARTITION = (
    *(("error_code", Int16), ("partition", Int32), ("leader", Int32), ("leader_epoch", Int32)),
    *((name, CompactArray(Int32)) for name in ("replicas", "isr", "offline_replicas")),
    _TAGS,
)
_TOPIC = (
    *(("error_code", Int16), ("topic", _TEXT), ("topic_id", _Uuid), ("is_internal", Boolean)),
    *(("partitions", CompactArray(*_PARTITION)), ("topic_authorized_operations", Int32), _TAGS),
)


class _MetadataResponse_v10(Response):  # type: ignore[misc]  # noqa: N801 - as the client names its own
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        *(("throttle_time_ms", Int32), ("brokers", CompactArray(*_BROKER)), ("cluster_id", _TEXT)),
        *(("controller_id", Int32), ("topics", CompactArray(*_TOPIC)), ("cluster_authorized_operations", Int32), _TAGS),
    )


class _MetadataRequest_v10(RequestStruct):  # type: ignore[misc]  # noqa: N801
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _MetadataResponse_v10
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("topic", _TEXT), _TAGS)),
        *((name, Boolean) for name in ("allow_auto_topic_creation", "include_cluster_authorized_operations")),
        *(("include_topic_authorized_operations", Boolean), _TAGS),
    )


class TopicsRequest(Request[MetadataRequest_v4 | MetadataRequest_v5 | _MetadataRequest_v10]):  # type: ignore[misc]
    """Request for topics by name, with their ids; it creates none of them."""

    API_KEY = 3

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[Any]) -> Any:
        """Return the request in the newest version that the broker knows."""
        if request_struct_class.API_VERSION < 10:
            return request_struct_class(self._names, False)
        return request_struct_class([(NO_ID, name, {}) for name in self._names], False, False, False, {})
