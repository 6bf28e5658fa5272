"""AsyncAPI document of an installation: its topics and their records.

It says who writes and who reads each topic.
"""

from __future__ import annotations

from typing import Any

from attributary_topics import RECORD_KINDS

from ..config.settings import Config
from ..kafka.topics.specs import TopicSpec, topic_specs
from .described import Schema
from .schemas import MAJOR, schemas

_BINDING = "0.5.0"
_INTEGERS = ("retention.ms", "max.message.bytes")
_LISTS = ("cleanup.policy",)

_KEY = {"type": "string", "description": "The model id, raw UTF-8."}


def asyncapi(config: Config) -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document of this configuration's topics.

    Only topics that others read or write are in it.
    """
    topics = config.kafka.topics
    specs = {spec.name: spec for spec in topic_specs(config)}
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for name, address, action, kinds in (
        ("observations", topics.observations, "receive", RECORD_KINDS),
        ("models", topics.models, "receive", ("deployment",)),
        ("importances", topics.importances, "send", ("importance", "dependence")),
        ("incidents", topics.incidents, "send", ("incident",)),
        ("dead-letters", topics.dead_letters, "send", ("dead-letter",)),
        ("status", topics.status, "send", ("status",)),
    ):
        channels[name] = {
            "address": address,
            "description": specs[address].purpose,
            "messages": {kind: {"$ref": f"#/components/messages/{kind}"} for kind in kinds},
            "bindings": {"kafka": _topic_binding(specs[address])},
        }
        operations[f"{action}-{name}"] = {
            "action": action,
            "channel": {"$ref": f"#/channels/{name}"},
            "messages": [{"$ref": f"#/channels/{name}/messages/{kind}"} for kind in kinds],
        }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Attributary",
            "version": f"{MAJOR.removeprefix('v')}.0.0",
            "description": "What workers receive from topics and send to them. Within a major version, only optional "
            "fields, further values and further kinds of events are added: readers take what they do not know.",
        },
        "defaultContentType": "application/json",
        "servers": {
            f"broker-{n}": {"host": broker, "protocol": "kafka-secure" if config.kafka.security.tls else "kafka"}
            for n, broker in enumerate(config.kafka.brokers, 1)
        },
        "channels": channels,
        "operations": operations,
        "components": {"messages": _messages(), "schemas": _component_schemas()},
    }


def _topic_binding(spec: TopicSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in spec.settings.items():
        if name in _INTEGERS:
            settings[name] = int(value)
        elif name in _LISTS:
            settings[name] = value.split(",")
    configured = {"topicConfiguration": settings} if settings else {}
    return {"topic": spec.name, "partitions": spec.partitions, **configured, "bindingVersion": _BINDING}


def _messages() -> dict[str, Any]:
    bindings = {"bindings": {"kafka": {"key": _KEY, "bindingVersion": _BINDING}}}
    payloads = (*RECORD_KINDS, "deployment", "importance", "dependence", "incident", "status")
    made: dict[str, Any] = {kind: {"name": kind, "payload": _component(kind), **bindings} for kind in payloads}
    for kind in ("importance", "dependence", "incident"):
        made[kind]["headers"] = _component("event-headers")
    for kind in RECORD_KINDS:
        made[kind]["headers"] = _component("record-headers")
    made["dead-letter"] = {
        "name": "dead-letter",
        "description": "The record as it was, whatever that is: key, value and headers.",
        "contentType": "application/octet-stream",
        "headers": _component("dead-letter-headers"),
        "payload": {},
    }
    return made


def _component(kind: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind}"}


def _component_schemas() -> dict[str, Schema]:
    """Return all schemas side by side, including their parts.

    AsyncAPI's own schemas have no `$defs`.
    """
    made: dict[str, Schema] = {}
    for kind, schema in schemas().items():
        if kind == "webhook":  # on no topic
            continue
        for name, part in schema.get("$defs", {}).items():
            made[name] = _with_refs(part)
        made[kind] = _with_refs(
            {name: part for name, part in schema.items() if name not in ("$schema", "$id", "$defs")}
        )
    return made


def _with_refs(part: Any) -> Any:
    if isinstance(part, dict):
        return {
            name: value.replace("#/$defs/", "#/components/schemas/") if name == "$ref" else _with_refs(value)
            for name, value in part.items()
        }
    return [_with_refs(item) for item in part] if isinstance(part, list) else part
