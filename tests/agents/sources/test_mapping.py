"""What a record of another topic becomes, by every role and every form of it; errors are in `test_mapping_errors`."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import jmespath
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.mapping import Mapping
from attributary_topics import REASONS, InvalidRecordError

from .made import NOW_MS, REGRESSOR, config_of, mapped, mapped_object, mapping_of, record_of

RENTAL = {
    "id": "s1-7", "ts": 1_699_999_000_000, "station": "s1", "temp": 12.5, "holiday": False, "season": "autumn",
    "wind": None, "count": 31, "nested": {"a": 1, "b": {"c": 2}}, "list": [1], "zip-code": "00187",
}  # fmt: skip
ENVELOPE = {"op": "c", "before": None, "after": {"id": 5, "age": 41, "job": "clerk"}, "source": {"ts_ms": NOW_MS - 9}}


def x_of(source: dict[str, Any], value: dict[str, Any] = RENTAL, **kwargs: Any) -> dict[str, Any]:
    (one,) = mapped(mapping_of(source, **kwargs), value)
    return one.fields["x"]  # type: ignore[no-any-return]


def test_the_five_lines() -> None:
    (one,) = mapped(mapping_of({"y": "count", "x": {"all_but": ["id", "ts"]}}), RENTAL)
    assert (one.model_id, one.kind, one.time_ms) == ("bikes", "observation", NOW_MS)
    assert one.fields == {
        "x": {"station": "s1", "temp": 12.5, "holiday": False, "season": "autumn", "wind": None, "zip-code": "00187"},
        "y": 31,
        "time": NOW_MS,
    }


def test_all_roles() -> None:
    source = {"y": "count", "y_pred": "temp", "id": "id", "time": "ts", "x": {"only": ["holiday", "absent"]}}
    (one,) = mapped(mapping_of(source), RENTAL)
    assert one.fields == {
        "x": {"holiday": False, "absent": None}, "y": 31, "y_pred": 12.5, "id": "s1-7", "time": 1_699_999_000_000,
    }  # fmt: skip
    assert list(one.fields) == ["x", "y", "y_pred", "id", "time"]


@pytest.mark.parametrize(
    ("source", "gone"),
    [
        ({}, {"count"}),
        ({"id": "id", "time": "ts"}, {"id", "ts"}),
        ({"y_pred": "temp"}, {"temp"}),
        ({"model": "store-{station}"}, {"station"}),
        ({"model": "store-{$topic}"}, set()),
        ({"where": "holiday == `false`"}, {"holiday"}),
        ({"y": "to_number(count)"}, {"count"}),
        ({"y": '"zip-code"'}, {"zip-code"}),
        ({"y": "nested.a"}, set()),
        ({"x": {"all_but": ["temp", "zip-code", "unknown"]}}, {"temp", "zip-code"}),
    ],
)
def test_without_x_it_is_every_plain_field_without_another_role(source: dict[str, Any], gone: set[str]) -> None:
    plain = {"id", "ts", "station", "temp", "holiday", "season", "wind", "count", "zip-code"}
    y = {"count"} if "y" not in source else set()
    models = {"store-*": REGRESSOR} if "model" in source else {"bikes": REGRESSOR}
    assert set(x_of(source, models=models)) == plain - gone - y


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ({"only": ["zip-code", "temp"]}, {"zip-code": "00187", "temp": 12.5}),
        ({"t": "temp", "c": "nested.b.c"}, {"t": 12.5, "c": 2}),
        ({"key": "$key", "hot": "temp > `10`", "none": "absent"}, {"key": "s1", "hot": True, "none": None}),
        ({"only": "temp"}, {"only": 12.5}),
        ("{a: nested.a, t: temp}", {"a": 1, "t": 12.5}),
    ],
)
def test_forms_of_x(x: Any, expected: dict[str, Any]) -> None:
    assert x_of({"x": x}) == expected


def test_an_object_as_x_has_no_label_in_it() -> None:
    value = {"row": {"a": 1, "b": 2, "outcome": True, "number": 7}}
    source = {"x": "row", "y": "row.outcome", "id": "row.number"}
    assert x_of(source, value) == {"a": 1, "b": 2}
    assert x_of(source | {"x": "row | @"}, value) == value["row"], "what is no path is taken as it is"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("text", 187, "187"),
        ("text", 1.5, "1.5"),
        ("text", True, "true"),
        ("text", None, None),
        ("number", "12", 12),
        ("number", " 1.5", 1.5),
        ("number", True, 1),
        ("number", "nan", None),
        ("boolean", "Yes", True),
        ("boolean", "false", False),
        ("boolean", 0, False),
        ("boolean", 1.0, True),
    ],
)
def test_casts(kind: str, value: Any, expected: Any) -> None:
    found = x_of({"cast": {"a": kind}}, {"a": value, "b": 1, "count": 2})["a"]
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        (Decimal("1.25"), 1.25),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 1_700_000_000_000),
        (datetime(2023, 11, 14, 22, 13, 20), 1_700_000_000_000),
        (date(1970, 1, 2), 86_400_000),
        (2**64 - 1, 2**64 - 1),
    ],
)
def test_values_of_other_formats(value: Any, expected: Any) -> None:
    for x in (None, {"only": ["a"]}, {"a": "a"}, "@"):
        mapping = mapping_of({"x": x, "y": "a"} if x == "@" else {"x": x, "y": "y"})
        if x == "@" and expected is None:
            continue  # it is the label, too
        (one,) = mapped_object(mapping, Decoded({"a": value, "y": 1}))
        assert one.fields["x"].get("a", expected) == expected


def test_bytes_and_nested_fields_are_left_out_where_they_are_not_named() -> None:
    (one,) = mapped_object(mapping_of({}), Decoded({"a": b"\x00", "b": 1, "c": [1], "count": 2}))
    assert one.fields["x"] == {"b": 1}


def test_debezium() -> None:
    source = {"unwrap": "debezium", "id": "id", "y": "job"}
    (one,) = mapped(mapping_of(source), ENVELOPE)
    assert (one.fields, one.time_ms) == ({"x": {"age": 41}, "y": "clerk", "id": 5, "time": NOW_MS - 9}, NOW_MS - 9)
    (read,) = mapped(mapping_of(source), {**ENVELOPE, "op": "r"})
    assert read.fields["x"] == {"age": 41}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"unwrap": "debezium"}, {**ENVELOPE, "op": "u"}),
        ({"unwrap": "debezium"}, {**ENVELOPE, "op": "d", "after": None}),
        ({"unwrap": "debezium", "where": "before == null"}, {**ENVELOPE, "op": "d", "after": None}),
        ({"unwrap": "debezium"}, None),
        ({}, None),
        ({}, b""),
        ({"where": "count > `100`"}, RENTAL),
        ({"where": "absent"}, RENTAL),
        ({"where": "station"}, RENTAL),
        ({"where": "temp"}, RENTAL),
    ],
)
def test_what_is_passed_over(source: dict[str, Any], value: Any) -> None:
    assert mapped(mapping_of(source), value) == []


def test_only_true_passes() -> None:
    assert len(mapped(mapping_of({"where": "temp > `10` && station == 's1'"}), RENTAL)) == 1


def test_roles_read_the_record_and_where_and_time_the_whole_value() -> None:
    value = {"meta": {"at": 1_699_999_999, "ok": True}, "payload": {"a": 1, "at": "not the time", "count": 3}}
    source = {"record": "payload", "time": "meta.at", "where": "meta.ok"}
    (one,) = mapped(mapping_of(source), value)
    assert one.fields == {"x": {"a": 1, "at": "not the time"}, "y": 3, "time": 1_699_999_999_000}
    inner = {"record": "payload", "time": "payload.at"}
    (one,) = mapped(mapping_of(inner), {"payload": {"a": 1, "at": 1_699_999_999, "count": 3}})
    assert one.fields["x"] == {"a": 1}, "the time is no feature, where it is in the record"


@pytest.mark.parametrize(
    ("model", "ids"),
    [
        ("store-{station}", ["store-s1"]),
        ("{$key}", ["s1"]),
        (["store-1", "{$key}"], ["store-1", "s1"]),
        ("store-{nested.a}", ["store-1"]),
    ],
)
def test_model_ids(model: Any, ids: list[str]) -> None:
    models = dict.fromkeys(("store-*", "s1"), REGRESSOR)
    assert [one.model_id for one in mapped(mapping_of({"model": model}, models=models), RENTAL)] == ids


def test_shadows_have_roles_of_their_own_and_no_label_of_another_as_feature() -> None:
    source = {"y": "count", "model": {"a": {}, "b": {"y": "temp"}, "c": {"x": {"t": "temp"}, "y_pred": "season"}}}
    a, b, c = mapped(mapping_of(source, models=("a", "b", "c")), RENTAL)
    assert [one.fields["y"] for one in (a, b, c)] == [31, 12.5, 31]
    assert set(a.fields["x"]) == {"id", "ts", "station", "holiday", "wind", "zip-code"} == set(b.fields["x"])
    assert (c.fields["x"], c.fields["y_pred"]) == ({"t": 12.5}, "autumn")
    assert "y_pred" not in a.fields


@pytest.mark.parametrize("y_pred", [31, 1.5, "yes", True, {"yes": 0.25, "no": 0.75}])
def test_logged_predictions(y_pred: Any) -> None:
    (one,) = mapped(mapping_of({"y_pred": "p"}), {**RENTAL, "p": y_pred})
    assert one.fields["y_pred"] == y_pred


def test_what_no_label_waits_for_may_lack_an_id_and_a_prediction() -> None:
    (one,) = mapped(mapping_of({"id": "absent", "y_pred": "absent"}), RENTAL)
    assert set(one.fields) == {"x", "y", "time"}


def test_labels() -> None:
    late = {"topic": "counts", "ttl": "3h", "id": "id", "y": "n", "time": "ts"}
    config = config_of({"id": "id"}, labels=late)
    observations = Mapping("rentals", config.sources["rentals"], config)
    (one,) = mapped(observations, RENTAL)
    assert (one.kind, one.fields["id"], "y" in one.fields) == ("observation", "s1-7", False)
    (label,) = mapped(Mapping("counts", config.labels["counts"], config), {"id": 7, "n": 3, "ts": NOW_MS - 1, "a": 1})
    assert (label.kind, label.model_id) == ("label", "bikes")
    assert label.fields == {"y": 3, "id": 7, "time": NOW_MS - 1}


def test_request_and_response_are_halves() -> None:
    source = {"format": "open-inference", "y_pred": "outputs.score"}
    models = {"bikes": REGRESSOR | {"mode": "mirror"}}
    mapping = mapping_of({"y": "absent", **source}, models=models)
    request = Decoded({"inputs": {"a": 1}}, "request", "r#0", NOW_MS - 5, {"a": 1})
    response = Decoded({"outputs": {"score": 0.5}}, "response", "r#0", "2023-11-14T22:13:20Z")
    first, second = mapped_object(mapping, request, response)
    assert (first.kind, first.fields) == ("request", {"x": {"a": 1}, "id": "r#0", "time": NOW_MS - 5})
    assert (second.kind, second.fields) == ("response", {"y_pred": 0.5, "id": "r#0", "time": NOW_MS})
    (chosen,) = mapped_object(mapping_of({"y": "absent", **source, "x": {"all_but": ["a"]}}, models=models),
                              Decoded({}, "request", "1", NOW_MS, {"a": 1, "b": 2}))  # fmt: skip
    assert chosen.fields["x"] == {"b": 2}


def test_the_time_for_merging_never_raises() -> None:
    mapping = mapping_of({"time": "ts"})
    for value, expected in (
        (NOW_MS - 8, NOW_MS - 8),
        ("2023-11-14T22:13:20Z", NOW_MS),
        (None, None),
        ("yesterday", None),
        (NOW_MS + 3_600_001, None),
        (NOW_MS + 3_600_000, NOW_MS + 3_600_000),
    ):
        decoded = [Decoded({"ts": value})]
        assert mapping.time_of(record_of(b""), decoded) == expected
    assert mapping.time_of(record_of(b""), []) is None
    assert mapping_of({}).time_of(record_of(b""), [Decoded({"ts": 5})]) == NOW_MS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdt") | st.text(), inner, max_size=5)
    ),
    max_leaves=15,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "ts", "op", "after", "source"]), JSON, max_size=8)
SECTIONS = [
    {"y": "a"},
    {"y": "a", "id": "b", "time": "ts", "where": "c"},
    {"y": "a.b", "x": "b", "y_pred": "c", "time": "ts.a"},
    {"y": "length(a)", "x": {"p": "b.c", "q": "d[0]"}, "id": "c", "where": "length(b) > `1`"},
    {"y": "a", "x": {"only": ["b", "c"]}, "cast": {"b": "number", "c": "boolean"}, "y_pred": "d"},
    {"y": "a", "x": {"all_but": ["b"]}, "cast": {"c": "text"}, "model": "{d}"},
    {"y": "b", "unwrap": "debezium"},
    {"y": "a", "record": "b", "time": "b.c"},
    {"y": "sum(a)", "x": "{a: a, b: b}", "time": "to_number(ts)"},
]


@given(OBJECTS, st.sampled_from(SECTIONS), st.binary(max_size=5) | st.none())
def test_no_record_raises_anything_but_its_own_error(
    value: dict[str, Any], section: dict[str, Any], key: bytes | None
) -> None:
    mapping = mapping_of(section, models={"*": REGRESSOR} if "model" in section else {"bikes": REGRESSOR})
    decoded = [Decoded(value)]
    assert isinstance(mapping.time_of(record_of(b"", key=key), decoded), int | None)
    fault = None
    try:
        found = mapped_object(mapping, *decoded, key=key)
    except InvalidRecordError as error:
        fault, found = error, []
    if fault is not None:
        assert fault.reason in REASONS
        assert str(fault).startswith("sources.rentals.")
    for one in found:
        assert orjson.loads(orjson.dumps(one.fields)) == one.fields


PATHS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(".".join)


@given(st.dictionaries(st.sampled_from("abcd"), JSON, min_size=1), PATHS, PATHS)
def test_plain_paths_take_what_the_library_finds(value: dict[str, Any], path: str, other: str) -> None:
    source = {"y": "$offset", "x": {"found": path, "one": "$partition"}, "id": other}
    x, own_id = jmespath.search(path, value), jmespath.search(other, value)
    plain = x is None or (isinstance(x, (str, bool, int, float)) and not (isinstance(x, float) and math.isinf(x)))
    try:
        (one,) = mapped_object(mapping_of(source), Decoded(value))
    except InvalidRecordError:
        is_id = own_id is None or isinstance(own_id, str) or type(own_id) is int
        big = any(type(found) is int and abs(found) >= 2**63 for found in (x, own_id))
        assert not (plain and is_id) or big
    else:
        expected = None if isinstance(x, float) and math.isnan(x) else x
        assert one.fields["x"] == {"found": expected, "one": 1}
        assert one.fields.get("id") == (own_id or None if isinstance(own_id, str) else own_id)


@given(st.none() | st.sampled_from("cudrtm") | JSON)
def test_debezium_passes_what_its_filter_in_jmespath_passes(op: Any) -> None:
    section = config_of({"unwrap": "debezium", "y": "job"}).sources["rentals"]
    assert section.where_read is not None
    passed = mapped_object(mapping_of({"unwrap": "debezium", "y": "job"}), Decoded({**ENVELOPE, "op": op}))
    assert bool(passed) is jmespath.search(section.where_read, {"op": op})
