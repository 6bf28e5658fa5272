"""What is told to break a contract, on made-up changes; and that the contracts of v1 are as they were first."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.contracts.schemas import schemas
from tests.agents.contracts.breaking import breaking

BASELINE = Path(__file__).parent / "v1"

OLD: dict[str, Any] = {
    "title": "Event",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "value": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "event": {"const": "alarm"},
        "part": {"$ref": "#/$defs/Part"},
        "more": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Part"}},
        "list": {"type": "array", "items": {"type": "integer"}},
        "hash": {"type": "string", "pattern": "^[0-9a-f]+$"},
        "mode": {"type": "string"},
    },
    "required": ["name", "kind", "value", "event", "part", "more", "list"],
    "$defs": {
        "Part": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "self": {"$ref": "#/$defs/Part"}},
            "required": ["n"],
        }
    },
}


def changed(change: Callable[[dict[str, Any]], object]) -> list[str]:
    new = copy.deepcopy(OLD)
    change(new)
    assert new != OLD
    return breaking(OLD, new)


def remove_with_required(new: dict[str, Any]) -> None:
    del new["properties"]["name"]
    new["required"].remove("name")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda new: new["properties"].pop("mode"), ["/mode: has gone"]),
        (remove_with_required, ["/name: has gone", "/name: is not always there any more"]),
        (lambda new: new["required"].append("mode"), ["/mode: is required now"]),
        (
            lambda new: (new["properties"].update(extra={"type": "string"}), new["required"].append("extra")),
            ["/extra: is required now"],
        ),
        (lambda new: new["required"].remove("value"), ["/value: is not always there any more"]),
        (lambda new: new["properties"]["kind"].update(enum=["a", "c"]), ["/kind/enum: 'b' has gone"]),
        (lambda new: new["properties"]["name"].update(type="integer"), ["/name/type: was 'string', is 'integer'"]),
        (
            lambda new: new["properties"]["name"].update(type=["string", "null"]),
            ["/name/type: was 'string', is ['string', 'null']"],
        ),
        (
            lambda new: new["properties"].update(value={"type": "number"}),
            ["/value/anyOf: has gone", "/value/type: is new"],
        ),
        (lambda new: new["properties"]["value"]["anyOf"].pop(), ["/value/anyOf: 1 alternatives have gone"]),
        (
            lambda new: new["properties"]["value"]["anyOf"].append({"type": "string"}),
            ["/value/anyOf: {'type': 'string'} is new"],
        ),
        (lambda new: new["properties"]["event"].update(const="alert"), ["/event/const: was 'alarm', is 'alert'"]),
        (lambda new: new["properties"]["name"].update(maxLength=9), ["/name/maxLength: is new"]),
        (lambda new: new["properties"]["name"].update(enum=["a"]), ["/name/enum: is new"]),
        (lambda new: new["properties"]["hash"].update(pattern="^x$"), ["/hash/pattern: was '^[0-9a-f]+$', is '^x$'"]),
        (
            lambda new: new["properties"]["list"]["items"].update(type="number"),
            ["/list/items/type: was 'integer', is 'number'"],
        ),
        (lambda new: new.update(additionalProperties=False), ["/additionalProperties: is new"]),
        (
            lambda new: new["$defs"]["Part"]["required"].append("self"),
            ["/more/additionalProperties/self: is required now"],
        ),
        (lambda new: new["$defs"]["Part"]["properties"].pop("n"), ["/more/additionalProperties/n: has gone"]),
        (lambda new: new["properties"].update(part={"type": "string"}), ["/part/n: has gone"]),
        (
            lambda new: new["properties"]["more"].update(additionalProperties={"type": "string"}),
            ["/more/additionalProperties/n: has gone"],
        ),
    ],
)  # fmt: skip
def test_what_breaks_is_told_with_its_place(change: Callable[[dict[str, Any]], object], said: list[str]) -> None:
    found = changed(change)
    assert [line for line in said if line not in found] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda new: new["properties"].update(extra={"type": "string"}),
        lambda new: new["$defs"]["Part"]["properties"].update(extra={"type": "string"}),
        lambda new: new["properties"]["kind"]["enum"].append("c"),
        lambda new: new["properties"]["name"].update(description="Whose.", examples=["x"]),
        lambda new: new.update(title="Other"),
        lambda new: new["$defs"].update(Other={"type": "object"}),
        lambda new: new["required"].reverse(),
    ],
)
def test_optional_additions_and_texts_break_nothing(change: Callable[[dict[str, Any]], object]) -> None:
    assert changed(change) == []


def test_a_further_kind_of_event_breaks_nothing_and_one_fewer_does() -> None:
    parts = {name: {"type": "object", "properties": {"event": {"const": name}}} for name in ("a", "b")}
    one: dict[str, Any] = {"oneOf": [{"$ref": "#/$defs/a"}], "$defs": parts}
    two = {**one, "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}
    assert breaking(one, two) == []
    assert breaking(two, one) == ["/oneOf: 1 alternatives have gone"]
    assert breaking(one, {**one, "oneOf": [{"$ref": "#/$defs/b"}]}) == ["/oneOf/0/event/const: was 'a', is 'b'"]


RELAXED = "/source: is not always there any more"
"""The one exception: workers send it as before, and a service that has no records is without it."""


@pytest.mark.parametrize("path", sorted(BASELINE.glob("*.json")), ids=lambda path: path.name)
def test_v1_has_only_optional_additions(path: Path) -> None:
    kind = path.name.removesuffix(".schema.json")
    found = breaking(json.loads(path.read_text()), schemas()[kind])
    assert [line for line in found if not line.endswith(RELAXED)] == []
    assert bool(found) == (kind in ("importance", "change")), "the exception is of these alone"


def test_there_is_a_first_version_of_each_kind() -> None:
    assert {path.name.removesuffix(".schema.json") for path in BASELINE.glob("*.json")} == schemas().keys()
