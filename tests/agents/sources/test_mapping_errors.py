"""What is said of a record that cannot be mapped: its exact text, which begins with the key of the configuration."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.mapping import Mapping
from attributary_topics import InvalidRecordError

from .made import NOW_MS, REGRESSOR, config_of, mapped_object, mapping_of

MIRROR = {"models": {"bikes": REGRESSOR | {"mode": "mirror"}}}
LATE = {"labels": {"topic": "counts", "ttl": "3h", "id": "id", "y": "n"}}
TIME = "a number of s, ms, µs or ns since 1970, or RFC 3339"

# fmt: off
# ruff: noqa: E501
WRONG: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str, str]] = [
    ({"x": {"temp": "temp"}}, {"temp": {}}, {}, "wrong_type", "x.temp: expected a number, string or boolean, 'temp' gave an object"),
    ({"x": {"t": "a.temp"}}, {"a": {"temp": [1]}}, {}, "wrong_type", "x.t: expected a number, string or boolean, 'a.temp' gave an array"),
    ({"x": {"only": ["temp"]}}, {"temp": b"\x00"}, {}, "wrong_type", "x.temp: expected a number, string or boolean, 'temp' gave bytes"),
    ({"x": "after"}, {"after": {"a": {}}}, {}, "wrong_type", "x.a: expected a number, string or boolean, 'a' gave an object"),
    ({"x": "after.age"}, {"after": {"age": 41}}, {}, "wrong_type", "x: 'after.age' gives a number: x needs an object; write x: {age: after.age}"),
    ({"x": "after"}, {"after": [1]}, {}, "wrong_type", "x: 'after' gives an array: x needs an object"),
    ({"x": "a || b"}, {"b": "text"}, {}, "wrong_type", "x: 'a || b' gives text: x needs an object"),
    ({"x": "after"}, {}, {}, "missing_feature", "x: expected an object, 'after' gave nothing"),
    ({}, {"list": [1], "o": {}}, {}, "missing_feature", "x: expected at least one feature, the record has no number, text or boolean left for it"),
    ({}, {"a": math.inf}, {}, "not_finite", "x.a: expected a finite number, 'a' gave inf"),
    ({"x": {"p": "a"}}, {"a": -math.inf}, {}, "not_finite", "x.p: expected a finite number, 'a' gave -inf"),
    ({}, {"a": 2**64}, {}, "wrong_type", "x.a: expected an integer of 64 bits, 'a' gave 18446744073709551616"),
    ({"cast": {"a": "number"}}, {"a": "12 km"}, {}, "wrong_type", "x.a: expected a number, or text that is one, 'a' gave '12 km'"),
    ({"cast": {"a": "number"}}, {"a": "inf"}, {}, "not_finite", "x.a: expected a finite number, 'a' gave inf"),
    ({"cast": {"a": "boolean"}}, {"a": "maybe"}, {}, "wrong_type", "x.a: expected true, false, yes, no, 1 or 0, 'a' gave 'maybe'"),
    ({"cast": {"a": "boolean"}}, {"a": 2}, {}, "wrong_type", "x.a: expected true, false, yes, no, 1 or 0, 'a' gave 2"),
    ({"x": {"a": "abs(b)"}}, {"b": "text"}, {}, "wrong_type", "x.a: 'abs(b)': In function abs(), invalid type for value: text, expected one of: ['number'], received: \"string\""),
    ({"y": "y"}, {"a": 1}, {}, "missing_label", "y: expected the label or target, 'y' gave nothing"),
    ({"y": "y"}, {"a": 1, "y": math.nan}, {}, "missing_label", "y: expected the label or target, 'y' gave nothing"),
    ({"y": "y"}, {"a": 1, "y": math.inf}, {}, "not_finite", "y: expected a finite number, 'y' gave inf"),
    ({"y": "y"}, {"a": 1, "y": {"v": 1}}, {}, "wrong_type", "y: expected a number, string or boolean, 'y' gave an object"),
    ({"y_pred": "p"}, {"a": 1, "p": [0.5]}, {}, "wrong_type", "y_pred: expected a number, string or boolean, 'p' gave an array"),
    ({"y_pred": "p"}, {"a": 1, "p": {"yes": "high"}}, {}, "wrong_type", "y_pred.yes: expected a number as probability, 'p' gave 'high'"),
    ({"y_pred": "p"}, {"a": 1, "p": {"yes": math.inf}}, {}, "not_finite", "y_pred.yes: expected a finite number, 'p' gave inf"),
    ({"y_pred": "p"}, {"a": 1}, MIRROR, "missing_prediction", "y_pred: expected the prediction that the mirror learns, 'p' gave nothing"),
    ({"id": "id"}, {"a": 1, "id": 1.5}, {}, "wrong_type", "id: expected text or an integer, 'id' gave 1.5"),
    ({"id": "id"}, {"a": 1, "id": True}, {}, "wrong_type", "id: expected text or an integer, 'id' gave true"),
    ({"id": "id"}, {"a": 1}, LATE, "missing_id", "id: expected an id, by which a label finds its observation, 'id' gave nothing"),
    ({"id": "id"}, {"a": 1, "id": ""}, LATE, "missing_id", "id: expected an id, by which a label finds its observation, 'id' gave nothing"),
    ({"time": "ts"}, {"a": 1}, {}, "wrong_time", f"time: expected {TIME}, 'ts' gave nothing"),
    ({"time": "ts"}, {"a": 1, "ts": "yesterday"}, {}, "wrong_time", f"time: expected {TIME}, 'ts' gave 'yesterday'"),
    ({"time": "ts"}, {"a": 1, "ts": {}}, {}, "wrong_time", f"time: expected {TIME}, 'ts' gave an object"),
    ({"time": "ts"}, {"a": 1, "ts": "0001-01-01T00:00:00+01:00"}, {}, "wrong_time", "time: expected a time of the years 1 to 9999, 'ts' gave '0001-01-01T00:00:00+01:00'"),
    ({"time": "ts"}, {"a": 1, "ts": NOW_MS + 7_200_000}, {}, "wrong_time", "time: expected at most max_ahead, 3600 s, after Kafka's timestamp, it is 7200 s ahead: a clock is wrong"),
    ({"time": "ts", "max_ahead": "1d"}, {"a": 1, "ts": NOW_MS + 86_401_000}, {}, "wrong_time", "time: expected at most max_ahead, 86400 s, after Kafka's timestamp, it is 86401 s ahead: a clock is wrong"),
    ({"record": "after"}, {"a": 1}, {}, "wrong_type", "record: expected an object, 'after' gave nothing"),
    ({"record": "after"}, {"after": "text"}, {}, "wrong_type", "record: expected an object, 'after' gave 'text'"),
    ({"where": "length(a) > `1`"}, {"a": 1}, {}, "wrong_type", "where: 'length(a) > `1`': In function length(), invalid type for value: 1, expected one of: ['string', 'array', 'object'], received: \"number\""),
    ({"model": "{a}"}, {"b": 1}, {"models": {"*": REGRESSOR}}, "invalid_model_id", "model: expected text or an integer, 'a' gave nothing"),
    ({"model": "{a}"}, {"a": "x\ny"}, {"models": {"*": REGRESSOR}}, "invalid_model_id", "model: '{a}' gave 'x\\ny', and key: expected no control characters, got b'x\\ny'"),
    ({"model": "{a}"}, {"a": "trams"}, {"models": {"bikes": REGRESSOR, "b-*": REGRESSOR}}, "unknown_model", "model: no model 'trams' under models (bikes, b-*)"),
]
# fmt: on


@pytest.mark.parametrize(("source", "value", "settings", "reason", "said"), WRONG)
def test_each_fault(
    source: dict[str, Any], value: dict[str, Any], settings: dict[str, Any], reason: str, said: str
) -> None:
    y = {} if "y" in source or "labels" in settings else {"y": "count"}
    with pytest.raises(InvalidRecordError) as caught:
        mapped_object(mapping_of({**y, **source}, **settings), Decoded({"count": 3, **value}))
    assert (str(caught.value), caught.value.reason) == (f"sources.rentals.{said}", reason)
    assert said.startswith(caught.value.field.removeprefix("sources.rentals."))


def test_faults_of_labels_name_their_section() -> None:
    config = config_of({"id": "id"}, **LATE)
    mapping = Mapping("counts", config.labels["counts"], config)
    for value, said in (
        ({"id": 1}, "labels.counts.y: expected the label or target, 'n' gave nothing"),
        ({"n": 1}, "labels.counts.id: expected an id, by which a label finds its observation, 'id' gave nothing"),
    ):
        with pytest.raises(InvalidRecordError) as caught:
            mapped_object(mapping, Decoded(value))
        assert str(caught.value) == said


def test_faults_of_a_shadow_name_its_own_key() -> None:
    source = {"y": "count", "x": "row", "model": {"a": {}, "b": {"x": {"t": "temp"}}}}
    with pytest.raises(InvalidRecordError) as caught:
        mapped_object(mapping_of(source, models=("a", "b")), Decoded({"count": 1, "row": {"p": 1}, "temp": {}}))
    assert str(caught.value).startswith("sources.rentals.model.b.x.t: expected a number, string or boolean")


def test_a_long_value_is_cut() -> None:
    with pytest.raises(InvalidRecordError) as caught:
        mapped_object(mapping_of({"time": "ts"}), Decoded({"ts": "x" * 10_000}))
    assert len(str(caught.value)) < 250


def test_without_a_timestamp_of_kafka_no_time_is_ahead() -> None:
    (one,) = mapped_object(mapping_of({"time": "ts"}), Decoded({"ts": NOW_MS, "a": 1, "count": 1}), timestamp_ms=-1)
    assert one.time_ms == NOW_MS
