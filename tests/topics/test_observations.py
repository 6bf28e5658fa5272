"""Each fault of a record is told apart, with the field, its value and what was expected."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics import (
    FEATURE_TYPES,
    REASONS,
    InvalidRecordError,
    Observation,
    decode_model_id,
    decode_observation,
)

KEY = b"credit"
DECLARED = {"age": "number", "job": "category", "member": "boolean", "other": "any"}
GOOD = {"age": 41.5, "job": "baker", "member": True, "other": 3}

ELSEWHERE = {
    "unknown_model": "needs the configuration",
    "model_on_two_partitions": "needs the partition's history",
    "out_of_bounds": "needs the configuration",
    "model_failed": "needs the model",
    "prediction_not_finite": "needs the model",
    "wrong_label": "needs the model",
    "out_of_range": "needs the model's earlier observations",
    "too_many_labels": "needs the model's earlier observations",
    "ended_worker": "needs what workers have noted",
    "batch_too_large": "found where batches are unpacked",
    "unreadable_batch": "found where batches are unpacked",
    "damaged_state": "needs the stored state",
    "foreign_type": "needs the stored state",
    "not_allowed": "of the models topic",
    "wrong_artefact": "of the models topic",
    "unusable_model": "of the models topic",
    "not_framed": "of topics of others",
    "unknown_schema": "of topics of others",
    "wrong_schema": "of topics of others",
    "invalid_avro": "of topics of others",
    "invalid_protobuf": "of topics of others",
    "not_cloudevent": "of topics of others",
    "not_inference": "of topics of others",
    "wrong_tensor": "of topics of others",
    "missing_id": "of records that come in parts: test_arrivals",
    "missing_prediction": "of records that come in parts: test_arrivals",
    "unexpected_label": "of records that come in parts: test_arrivals",
    "unexpected_record": "of records that come in parts: test_arrivals",
    "wrong_time": "of records that come in parts: test_arrivals",
    "wrong_origin": "of mapped records: tests/agents/worker/test_origins",
    "duplicate_id": "needs the model's earlier observations",
    "wrong_prediction": "needs the model",
    "too_many_models": "needs the models of the template",
}
"""Reasons that are not decode_observation's to find."""


def with_x(**changes):
    return json.dumps({"x": {**GOOD, **changes}, "y": 1}).encode()


def without(name):
    return json.dumps({"x": {k: v for k, v in GOOD.items() if k != name}, "y": 1}).encode()


# reason, key, value, field, a piece of the expectation, a piece of the value as it was
FAULTS = [
    ("missing_model_id", None, with_x(), "key", "the model id", "None"),
    ("missing_model_id", b"", with_x(), "key", "the model id", "b''"),
    ("invalid_model_id", b"\xff\xfe", with_x(), "key", "UTF-8", r"b'\xff\xfe'"),
    ("invalid_model_id", b"a" * 250, with_x(), "key", "at most 249 bytes", "(250 in all)"),
    ("invalid_model_id", b"cre\ndit", with_x(), "key", "no control characters", r"b'cre\ndit'"),
    ("invalid_model_id", "cre\u0085dit".encode(), with_x(), "key", "no control characters", "cre"),
    ("empty_value", KEY, None, "value", "a JSON object", "None"),
    ("empty_value", KEY, b"", "value", "a JSON object", "b''"),
    ("too_large", KEY, b" " * 2001, "value", "at most 2000 bytes", "(2001 in all)"),
    ("invalid_json", KEY, b"{'x': 1}", "value", "JSON", "{'x': 1}"),
    ("invalid_json", KEY, b'{"x": {"age": 1}', "value", "JSON", "age"),
    ("invalid_json", KEY, b'{"x": {"job": "\xff"}, "y": 1}', "value", "JSON", "job"),
    ("invalid_json", KEY, b'{"x": {"job": "\\ud800"}, "y": 1}', "value", "JSON", "ud800"),
    ("wrong_type", KEY, b"[1, 2]", "value", "a JSON object with x and y", "[1, 2]"),
    ("wrong_type", KEY, b"null", "value", "a JSON object with x and y", "None"),
    ("wrong_type", KEY, b'{"model_id": "debit", "x": {}, "y": 1}', "model_id", "'credit'", "'debit'"),
    ("missing_feature", KEY, b'{"y": 1}', "x", "an object of feature name to value", "{'y': 1}"),
    ("wrong_type", KEY, b'{"x": [1], "y": 1}', "x", "an object of feature name to value", "[1]"),
    ("undeclared_feature", KEY, with_x(extra=1), "x.extra", "declare it below features, or do not send it", "1"),
    ("wrong_type", KEY, with_x(age="41"), "x.age", "a finite number", "'41'"),
    ("wrong_type", KEY, with_x(age=True), "x.age", "a finite number", "True"),
    ("wrong_type", KEY, with_x(job=1.5), "x.job", "a string, an integer or a boolean", "1.5"),
    ("wrong_type", KEY, with_x(member=1), "x.member", "true or false", "1"),
    ("wrong_type", KEY, with_x(other=[1]), "x.other", "a finite number, a string or a boolean", "[1]"),
    ("wrong_type", KEY, with_x(other={"a": 1}), "x.other", "a finite number, a string or a boolean", "{'a': 1}"),
    ("not_finite", KEY, with_x(age=math.inf), "x.age", "a finite number", "inf"),
    ("not_finite", KEY, with_x(other=-math.inf), "x.other", "a finite number", "-inf"),
    ("missing_label", KEY, json.dumps({"x": GOOD}).encode(), "y", "the label or target", "None"),
    ("missing_label", KEY, json.dumps({"x": GOOD, "y": None}).encode(), "y", "the label or target", "None"),
    ("wrong_type", KEY, json.dumps({"x": GOOD, "y": [1]}).encode(), "y", "a string, a number or a boolean", "[1]"),
    ("not_finite", KEY, json.dumps({"x": GOOD, "y": math.inf}).encode(), "y", "a finite number", "inf"),
]


@pytest.mark.parametrize(("reason", "key", "value", "field", "expected", "got"), FAULTS)
def test_a_fault_is_named_with_field_expectation_and_value(reason, key, value, field, expected, got):
    with pytest.raises(InvalidRecordError) as caught:
        decode_observation(key, value, features=DECLARED, max_bytes=2000)
    error = caught.value
    assert (error.reason, error.field) == (reason, field)
    assert error.reason in REASONS
    assert expected in error.expected
    assert str(error).startswith(f"{field}: expected ")
    assert expected in str(error)
    assert got in str(error)
    assert len(str(error)) < 400  # a hostile value does not fill the log


@pytest.mark.parametrize("name", GOOD)
def test_a_declared_feature_that_is_null_nan_or_not_there_is_missing(name):
    expected = Observation("credit", {**GOOD, name: None}, 1)
    for value in (with_x(**{name: None}), with_x(**{name: math.nan}), without(name)):
        assert decode_observation(KEY, value, features=DECLARED) == expected


def test_without_declared_features_only_those_of_the_record_can_be_missing():
    assert decode_observation(KEY, with_x(age=None)).x == {**GOOD, "age": None}
    assert decode_observation(KEY, without("age")).x == json.loads(without("age"))["x"]
    with pytest.raises(InvalidRecordError, match="at least one feature") as caught:
        decode_observation(KEY, b'{"x": {}, "y": 1}')
    assert caught.value.reason == "missing_feature"


def test_every_reason_is_found_here_or_belongs_elsewhere():
    assert {fault[0] for fault in FAULTS} | set(ELSEWHERE) == set(REASONS)
    assert not {fault[0] for fault in FAULTS} & set(ELSEWHERE)


def test_a_good_record_is_decoded_as_it_is():
    value = json.dumps({"x": GOOD, "y": "yes", "model_id": "credit", "trace": {"any": [1, None]}}).encode()
    assert decode_observation(KEY, value, features=DECLARED, max_bytes=len(value)) == Observation("credit", GOOD, "yes")


def test_a_value_of_exactly_the_limit_is_decoded():
    value = with_x()
    assert decode_observation(KEY, value, max_bytes=len(value)).x == GOOD
    with pytest.raises(InvalidRecordError) as caught:
        decode_observation(KEY, value, max_bytes=len(value) - 1)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("model_id", ["a", "Kredit-Modell für Österreich", "模型", "a" * 249, "a b/c:d"])
def test_a_model_id_is_any_printable_text_up_to_249_bytes(model_id):
    assert decode_model_id(model_id.encode()) == model_id


def test_the_limit_of_a_model_id_is_in_bytes():
    assert decode_model_id(("ü" * 124).encode()) == "ü" * 124
    with pytest.raises(InvalidRecordError):
        decode_model_id(("ü" * 125).encode())


names = st.text(max_size=5).filter(lambda name: name.isprintable())
ACCEPTED = {
    "number": st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
    "category": st.text(max_size=8) | st.integers(-(2**53), 2**53) | st.booleans(),
    "boolean": st.booleans(),
}
ACCEPTED["any"] = ACCEPTED["number"] | ACCEPTED["category"]


@given(
    declared=st.dictionaries(names, st.sampled_from(sorted(FEATURE_TYPES)), min_size=1, max_size=5),
    y=ACCEPTED["any"],
    data=st.data(),
)
def test_valid_observations_come_back_as_they_were_sent(declared, y, data):
    x = {name: data.draw(ACCEPTED[kind]) for name, kind in declared.items()}
    value = json.dumps({"x": x, "y": y}).encode()
    for features in (declared, None):
        observation = decode_observation(KEY, value, features=features)
        assert observation == Observation("credit", x, y)
        # 1, 1.0 and true are equal in Python: types are to survive, too.
        assert [type(v) for v in (*observation.x.values(), observation.y)] == [type(v) for v in (*x.values(), y)]
