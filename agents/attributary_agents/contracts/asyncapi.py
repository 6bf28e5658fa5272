"""AsyncAPI document of an installation, and all contracts as files.

The document says who writes and who reads each topic.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

from attributary_topics import RECORD_KINDS

from ..config.settings import Config
from ..kafka.topics.specs import TopicSpec, topic_specs
from .schemas import EVENTS, MAJOR, Schema, schemas

OPENAPI = "openapi.json"
"""The description of what `attributary serve` answers; it is made where the extra `serve` is installed."""

_BINDING = "0.5.0"
_INTEGERS = ("retention.ms", "max.message.bytes")
_LISTS = ("cleanup.policy",)

_KEY = {"type": "string", "description": "The model id, raw UTF-8."}


def contract_files(config: Config) -> dict[str, str]:
    """Return name and content of each contract file.

    The files are AsyncAPI, OpenAPI where the extra `serve` is installed, and a JSON Schema of each kind of record.
    """
    made = {"asyncapi.json": asyncapi(config)}
    if can_describe_rest():
        from ..serve.http.app import make_api  # which takes a second, and needs the extra

        made[OPENAPI] = make_api().openapi()
    made |= {f"{kind}.schema.json": schema for kind, schema in schemas().items()}
    return {name: json.dumps(data, indent=2, ensure_ascii=False) + "\n" for name, data in made.items()}


def can_describe_rest() -> bool:
    """Return whether the packages of the extra `serve` are installed."""
    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))


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
    payloads = (*RECORD_KINDS, "deployment", *EVENTS)
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
