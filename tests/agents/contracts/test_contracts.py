"""What is really on the topics is as the contracts say, and the committed files are those that the types give."""

from __future__ import annotations

import copy
import json
import re
import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.config.serving import WebhookConfig
from attributary_agents.contracts.asyncapi import asyncapi, contract_files
from attributary_agents.contracts.schemas import schemas
from attributary_agents.kafka.observations import encode_value
from attributary_agents.serve.webhooks.target import Revision, body
from attributary_agents.worker.heartbeat import status_of
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_topics import (
    ORIGIN_HEADER,
    RECORD_HEADER,
    RECORD_KINDS,
    REPLAYED_HEADER,
    DependenceEvent,
    ImportanceEvent,
    IncidentEvent,
    InvalidRecordError,
    ModelStatus,
    Needs,
    Origin,
    decode_arrival,
    decode_deployment,
    decode_observation,
    encode_json,
)
from attributary_topics.arrivals import MAX_ID_LENGTH
from attributary_topics.codec import Values
from tests.agents.monitoring.views import config_of, filled
from tests.agents.stand_ins import BAD, TOPIC, observations

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = schemas()
VALIDATORS = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in SCHEMAS.items()}
NAMES = {ImportanceEvent: "importance", DependenceEvent: "dependence", IncidentEvent: "incident", ModelStatus: "status"}
OFFICIAL = json.loads((Path(__file__).parent / "asyncapi" / "3.0.0.json").read_text())
CONFIG = parse_config(yaml.safe_load(EXAMPLE))


def faults(kind: str, value: Any) -> list[str]:
    return [f"{'/'.join(map(str, error.path))}: {error.message}" for error in VALIDATORS[kind].iter_errors(value)]


def events_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Events with any values that their types, and what is said of their values, allow."""
    hints = get_type_hints(kind, include_extras=True)
    varying = [field.name for field in fields(kind) if field.default in (MISSING, None)]
    return st.builds(kind, **{name: values_of(hints[name]) for name in varying})


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(st.characters(exclude_categories=("Cs",)), max_size=4),
        float: st.floats(allow_nan=False, allow_infinity=False),
        int: st.integers(-(2**53), 2**53),
        bool: st.booleans(),
        type(None): st.none(),
    }
    if hint in plain:
        return plain[hint]
    if get_origin(hint) is Annotated:
        (values,) = hint.__metadata__
        assert isinstance(values, Values)
        return st.sampled_from(values)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return events_of(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of(*map(values_of, get_args(hint)))
    if get_origin(hint) is list:
        return st.lists(values_of(get_args(hint)[0]), max_size=2)
    assert get_origin(hint) is dict
    return st.dictionaries(plain[str], values_of(get_args(hint)[1]), max_size=2)


def encoded(event: Any) -> Any:
    return json.loads(encode_json(event))


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.__name__)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_the_type_of_an_event_can_be_is_as_its_schema_says(kind: type[Any], data: st.DataObject) -> None:
    value = encoded(data.draw(events_of(kind)))
    assert faults(NAMES[kind], value) == []
    # What its schema requires can be told: an event without it, or with another type there, is refused.
    name = data.draw(st.sampled_from(SCHEMAS[NAMES[kind]]["required"]))
    assert faults(NAMES[kind], {key: part for key, part in value.items() if key != name})
    assert faults(NAMES[kind], {**value, name: {"other": [1]}})
    # Readers take what they do not know.
    assert faults(NAMES[kind], {**value, "new_field": 1}) == []


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_a_webhook_is_sent_is_as_its_schema_says(data: st.DataObject) -> None:
    event = data.draw(events_of(IncidentEvent))
    time = data.draw(st.sampled_from(["2026-11-01T10:00:00.000Z", None]))
    revision = Revision("m:t:0:1:1", "/attributary/t", "attributary.incident.v1", "m", time, encoded(event))
    value = json.loads(body(WebhookConfig.model_validate({"url": "http://x/"}), revision))
    assert faults("webhook", value) == []
    name = data.draw(st.sampled_from(SCHEMAS["webhook"]["required"]))
    assert faults("webhook", {key: part for key, part in value.items() if key != name})


@pytest.fixture(scope="module")
def sent() -> list[Outgoing]:
    """What a worker has sent of a stream with a change, and of every kind of bad record."""
    found: list[Outgoing] = []
    filled(config_of("m", publish={"every": 50}), {0: ["m"]}, n=300, flip_at=150, sent=found)
    partition = Partition(TOPIC, 1, config_of("m", features={"a": "number", "b": "number"}), lambda _key: None)
    for offset, (key, value, _) in enumerate(BAD.values()):
        found += partition.handle(Record(TOPIC, 1, offset, 1_700_000_000_000, key, value, [("trace", b"1")]))
    return found


def test_what_a_worker_sends_is_as_the_schemas_say(sent: list[Outgoing]) -> None:
    seen: set[str] = set()
    for one in sent:
        headers = {name: (text or b"").decode() for name, text in one.headers}
        if one.topic.endswith("dead-letters.v1"):
            seen.add("dead letter")
            assert faults("dead-letter-headers", headers) == []
            continue
        value = json.loads(one.value or b"")
        kind = "incident" if one.topic.endswith("incidents.v1") else "importance"
        seen |= {kind, value.get("life", kind), "explained" if value.get("explanation") else kind}
        assert faults(kind, value) == []
        assert value["source"]["topic"] == TOPIC, "the schema lets it be absent, and a worker always gives it"
        assert faults("event-headers", headers) == []
        assert headers["ce_type"] == f"attributary.{kind}.v1"
    assert seen >= {"importance", "suspected", "confirmed", "explained", "dead letter"}


def test_the_status_of_a_model_is_as_its_schema_says() -> None:
    partition = Partition(TOPIC, 0, config_of("m"), lambda _key: None)
    for offset, one in enumerate(observations(3)):
        partition.handle(Record(TOPIC, 0, offset, 0, b"m", encode_value({"x": one.x, "y": one.y})))
    status = status_of(partition, "m", 0.5)
    assert status is not None
    value = json.loads(encode_json(status))
    assert faults("status", value) == []
    assert faults("status", {**value, "n_waiting": None}), "what does not apply is absent"
    assert faults("status", {**value, "n_waiting": 7, "n_expired": 0}) == []
    guarded = {"since": 256, "waits_for": None, "reach": {"before": 0.2, "after": 0.3, "n": 500, "unit": "share"}}
    assert faults("status", {**value, "guard": {**guarded, "sentence": "guarded since observation 256"}}) == []


def examples() -> Iterator[Any]:
    page = (ROOT / "docs" / "topics.md").read_text()
    for block in re.findall(r"^```json\n(\{.*?\})\n```$", page, re.MULTILINE | re.DOTALL):
        yield pytest.param(json.loads(block), id=block[:40])


@pytest.mark.parametrize("value", list(examples()))
def test_what_the_page_about_topics_shows_is_as_the_schemas_say(value: dict[str, Any]) -> None:
    told_by = {"values": "dependence", "event": "incident", "explainer": "importance"}
    told_by |= {"x": "observation", "version": "deployment"}
    kind = next((kind for name, kind in told_by.items() if name in value), "status")
    assert faults(kind, value) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyab"), inner, max_size=3),
    max_leaves=6,
)


FIELDS = st.dictionaries(st.sampled_from(["x", "y", "model_id", "other", "id", "y_pred", "time"]), JSON)

OF_THE_MODEL = {"missing_feature", "missing_label"}
"""Reasons of which a schema cannot know: how many features there have to be, whether labels come by themselves."""


@given(FIELDS)
def test_what_a_worker_takes_as_an_observation_is_one_by_the_schema(value: Any) -> None:
    try:
        decode_observation(b"a", json.dumps(value).encode())
    except InvalidRecordError as error:
        if not (error.reason in OF_THE_MODEL and "x" in value) and error.field != "model_id":
            assert faults("observation", value)
    else:
        assert faults("observation", value) == []


@pytest.mark.parametrize("kind", ["label", "request", "response"])
@given(FIELDS)
def test_what_a_worker_takes_of_what_comes_apart_is_it_by_the_schema(kind: str, value: Any) -> None:
    needs = Needs(id=True, label=False, kinds=frozenset(RECORD_KINDS))
    try:
        decode_arrival("a", json.dumps(value).encode(), kind, needs)
    except InvalidRecordError as error:
        is_of_model = error.field == "model_id" or (error.reason in OF_THE_MODEL and "x" in value)
        # To a schema 1.0 is an integer.
        is_whole = isinstance(value.get("id"), float) and value["id"].is_integer()
        if not (is_of_model or is_whole) and error.reason not in ("unexpected_label", "wrong_time"):
            assert faults(kind, value)
    else:
        assert faults(kind, value) == []


def test_the_headers_of_a_record_that_was_mapped_or_sent_again_are_as_the_schema_says() -> None:
    origin = Origin("rentals", 1, 7, 0, True, 0).encode().decode()
    headers = {ORIGIN_HEADER: origin, RECORD_HEADER: "label", REPLAYED_HEADER: "t:0:1", "trace": "1"}
    assert faults("record-headers", headers) == []
    assert faults("record-headers", {RECORD_HEADER: "other"})
    assert [*SCHEMAS["record-headers"]["properties"]] == [RECORD_HEADER, ORIGIN_HEADER, REPLAYED_HEADER]
    assert SCHEMAS["record-headers"]["properties"][RECORD_HEADER]["enum"] == [*RECORD_KINDS]


@pytest.mark.parametrize("length", [MAX_ID_LENGTH, MAX_ID_LENGTH + 1])
def test_an_id_is_as_long_as_a_worker_takes_it(length: int) -> None:
    value = {"id": length * "a", "y": 1}
    needs = Needs(id=True, label=False, kinds=frozenset(RECORD_KINDS))
    try:
        decode_arrival("a", json.dumps(value).encode(), "label", needs)
    except InvalidRecordError:
        assert faults("label", value)
    else:
        assert faults("label", value) == []


MODEL = {"class": "river.naive_bayes.GaussianNB"}
SHA = "0" * 64


@pytest.mark.parametrize(
    "value",
    [
        {"version": "2", "model": MODEL},
        {"version": "2", "model": [MODEL, {**MODEL, "params": {"a": [1]}}], "model_id": "m"},
        {"version": "2", "model": {"factory": "m:f", "params": {"depth": 6}}},
        {"version": "2", "factory": "m:f"},
        {"version": "2", "artefact": "a.skops", "sha256": SHA},
        {"version": "2"},
        {"model": MODEL},
        {"version": "", "model": MODEL},
        {"version": "v" * 201, "model": MODEL},
        {"version": 2, "model": MODEL},
        {"version": "2", "model": MODEL, "factory": "m:f"},
        {"version": "2", "model": []},
        {"version": "2", "model": {"params": {}}},
        {"version": "2", "model": {**MODEL, "more": 1}},
        {"version": "2", "model": {"class": "a b"}},
        {"version": "2", "factory": "m"},
        {"version": "2", "artefact": "a.skops"},
        {"version": "2", "artefact": "a.skops", "sha256": "F" * 64},
        {"version": "2", "factory": "m:f", "params": {}},
        [],
    ],
    ids=json.dumps,
)
def test_what_a_worker_takes_as_a_version_is_one_by_the_schema_and_nothing_else(value: Any) -> None:
    try:
        decode_deployment(b"m", json.dumps(value).encode())
    except InvalidRecordError:
        assert faults("deployment", value)
    else:
        assert faults("deployment", value) == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_each_schema_is_one_of_2020_12(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[kind])
    assert SCHEMAS[kind]["$id"] == f"urn:attributary:v1:{kind}"


def dangling(document: dict[str, Any]) -> list[str]:
    """Return the references of a document that lead nowhere: AsyncAPI's schema does not look."""

    def refs(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            for inner in part.values():
                yield from refs(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from refs(inner)

    def leads_somewhere(ref: str) -> bool:
        found: Any = document
        for name in ref.removeprefix("#/").split("/"):
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return ref.startswith("#/")

    return [ref for ref in refs(document) if not leads_somewhere(ref)]


def official_faults(document: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(OFFICIAL).iter_errors(document)]


def test_the_document_is_one_of_asyncapi_3_and_no_reference_leads_nowhere() -> None:
    document = asyncapi(CONFIG)
    assert official_faults(document) == []
    assert dangling(document) == []
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft7Validator.check_schema(schema)
        assert "$defs" not in json.dumps(schema), name


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("operations", "send-importances", "action"), "publish"),
        (("channels", "importances", "adress"), "x"),
        (("components", "schemas", "importance", "type"), "objekt"),
        (("asyncapi",), "2.0.0"),
    ],
)
def test_a_wrong_document_is_told(path: tuple[str, ...], value: Any) -> None:
    document = copy.deepcopy(asyncapi(CONFIG))
    part: Any = document
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    assert official_faults(document)


def test_a_reference_that_leads_nowhere_is_told() -> None:
    document = copy.deepcopy(asyncapi(CONFIG))
    document["operations"]["send-importances"]["channel"]["$ref"] = "#/channels/nothing"
    assert dangling(document) == ["#/channels/nothing"]


def test_the_document_has_the_topics_of_the_configuration() -> None:
    config = parse_config(
        {
            "kafka": {"brokers": ["a:1", "b:2"], "topic_prefix": "shop", "partitions": 7},
            "models": {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}},
        }
    )
    document = asyncapi(config)
    assert {channel["address"] for channel in document["channels"].values()} == {
        f"shop.{name}.v1" for name in ("observations", "models", "importances", "incidents", "dead-letters", "status")
    }
    assert [server["host"] for server in document["servers"].values()] == ["a:1", "b:2"]
    assert {channel["bindings"]["kafka"]["partitions"] for channel in document["channels"].values()} == {7}
    assert official_faults(document) == []


def test_the_committed_files_are_current(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(EXAMPLE)
    result = CliRunner().invoke(cli, ["contracts", "export", "--config", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    written = {file.name: file.read_text() for file in (tmp_path / "out").iterdir()}
    assert written == contract_files(CONFIG)
    committed = {file.name: file.read_text() for file in (ROOT / "docs" / "contracts").iterdir()}
    assert committed == written, "run `make contracts` and commit docs/contracts"


def test_a_folder_that_cannot_be_written_is_a_user_s_fault(tmp_path: Path) -> None:
    config, file = tmp_path / "attributary.yaml", tmp_path / "file"
    config.write_text(EXAMPLE)
    file.write_text("")
    result = CliRunner().invoke(cli, ["contracts", "export", "--config", str(config), "--out", str(file / "in")])
    assert "cannot write (" in str(result.exception)
