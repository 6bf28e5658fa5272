"""Whatever is in a record, decoding ends in an observation or in an InvalidRecordError."""

import json
import math
import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attributary_topics import REASONS, InvalidRecordError, Observation, decode_json, decode_observation

KEY = b"m"


def fault(value, **options):
    with pytest.raises(InvalidRecordError) as caught:
        decode_observation(KEY, value, **options)
    assert caught.value.reason in REASONS
    assert len(str(caught.value)) < 500
    return caught.value


def decoded_or_fault(key, value, **options):
    """Whatever else is raised fails the test."""
    try:
        return decode_observation(key, value, **options)
    except InvalidRecordError as error:
        return error


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (b'{"x": {"a": NaN, "b": -Infinity}, "y": 1}', "x.b"),
        (b'{"x": {"a": 1, "b": Infinity}, "y": 1}', "x.b"),
        (b'{"x": {"a": 1}, "y": -Infinity}', "y"),
        (b'{"x": {"a": 1e999}, "y": 1}', "x.a"),
        (b'{"x": {"a": 1}, "y": -1e999}', "y"),
        (b'{"x": {"a": {"b": [1, {"c": Infinity}]}}, "y": 1}', "x.a.b[1].c"),
        (b'{"x": {"a": 1}, "y": 1, "meta": [[0, 1e999]]}', "meta[0][1]"),
        (b"Infinity", "value"),
        (b"-1e999", "value"),
    ],
)
def test_a_number_that_is_not_finite_is_found_wherever_it_is(value, field):
    error = fault(value)
    assert (error.reason, error.field) == ("not_finite", field)
    assert not math.isfinite(error.value)


@pytest.mark.parametrize("nothing", [b"null", b"NaN"])
@pytest.mark.parametrize("text", [b"NaN", b'\\"NaN\\"', b"NaN\\\\", "ä NaN".encode()])
def test_null_and_nan_are_missing_values_and_texts_stay_as_they_are(nothing, text):
    value = b'{"x": {"a": %b, "b": 18446744073709551615, "c": "%b"}, "y": 1, "meta": [%b]}' % (nothing, text, nothing)
    expected = {"a": None, "b": 18446744073709551615, "c": json.loads(b'"%b"' % text)}
    assert decode_observation(KEY, value) == Observation("m", expected, 1)


@pytest.mark.parametrize("nothing", [b"null", b"NaN"])
def test_a_record_with_missing_values_is_held_to_the_same_limits(nothing):
    for value, reason in (
        (b'{"x": {"a": %b, "b": "\\ud800"}, "y": 1}', "invalid_json"),
        (b'{"x": {"a": %b, "b": "\xff"}, "y": 1}', "invalid_json"),
        (b'{"x": {"a": %b, "b": -NaN}, "y": 1}', "invalid_json"),
        (b'{"x": {"a": %b, "b": ' + b"9" * 400 + b'}, "y": 1}', "invalid_json"),
        (b'{"x": {"a": %b, "b": ' + b"[" * 2000 + b"]" * 2000 + b'}, "y": 1}', "invalid_json"),
        (b'{"x": {"a": %b', "invalid_json"),
        (b'{"x": {"a": %b}, "y": NaN}', "missing_label"),
        (b'{"x": {"a": %b}, "y": null}', "missing_label"),
    ):
        assert fault(value.replace(b"%b", nothing)).reason == reason, value[:60]


def test_nan_is_null_only_where_the_reader_says_so():
    assert decode_json(b'{"a": [NaN, "NaN"]}', nan_is_null=True) == {"a": [None, "NaN"]}
    with pytest.raises(InvalidRecordError) as caught:
        decode_json(b'{"a": NaN}')
    assert (caught.value.reason, caught.value.field) == ("not_finite", "a")


def test_a_text_that_says_nan_is_a_text():
    assert decode_observation(KEY, b'{"x": {"a": "NaN"}, "y": "Infinity"}') == Observation(
        "m", {"a": "NaN"}, "Infinity"
    )


@pytest.mark.parametrize("depth", [10, 500, 980, 1010, 1023, 1030, 10_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"k":', b"}")])
@pytest.mark.parametrize("core", [b"1", b"NaN"])
def test_deep_nesting_is_a_fault_of_the_record(depth, opening, closing, core):
    # Up to 1024 levels the JSON parser accepts; Python's own limit for walking or printing them is about as large.
    nested = opening * depth + core + closing * depth
    for value in (nested, b'{"x": {"a": ' + nested + b'}, "y": 1}', b'{"x": {"a": 1}, "y": ' + nested + b"}"):
        assert fault(value).reason in ("wrong_type", "invalid_json", "not_finite", "missing_feature")


def test_deep_nesting_beside_x_and_y_is_left_to_its_owner():
    value = b'{"x": {"a": 1}, "y": 1, "meta": ' + b"[" * 500 + b"]" * 500 + b"}"
    assert decode_observation(KEY, value) == Observation("m", {"a": 1}, 1)


@pytest.mark.parametrize("digits", [20, 400, 5000, 100_000])
def test_huge_integers_are_finite_numbers_or_faults(digits):
    # 5000 digits are beyond what Python turns from text into an integer at all.
    for field in ("a", "y"):
        text = {"a": "1", "y": "1", field: "9" * digits}
        value = f'{{"x": {{"a": {text["a"]}}}, "y": {text["y"]}}}'.encode()
        if digits < 309:
            observation = decode_observation(KEY, value)
            assert float({"a": observation.x["a"], "y": observation.y}[field]) == float("9" * digits)
        else:
            assert fault(value).reason in ("invalid_json", "not_finite")


@pytest.mark.parametrize(
    "value",
    [
        b"\xff\xfe\x00",
        b'{"x": {"a": "\xc3\x28"}, "y": 1}',
        b'{"x": {"a\xed\xa0\x80": 1}, "y": 1}',
        '{"x": {"a": 1}, "y": 1}'.encode("utf-16"),
        b'\xef\xbb\xbf{"x": {"a": 1}, "y": 1}',
        b"\x00",
        b'{"x": {"a": 1}, "y": 1}}',
        b'{"x": {"a": 1}, "y": 1} trailing',
        b'{"x": {"a": 01}, "y": 1}',
        b'{"x": {"a": .5}, "y": 1}',
        b'{"x": {"a": 0x1F}, "y": 1}',
        b"{x: {a: 1}, y: 1}",
        b'// comment\n{"x": {"a": 1}, "y": 1}',
    ],
)
def test_what_is_not_json_in_utf_8_is_refused(value):
    assert fault(value).reason == "invalid_json"


@given(st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300))
@example(b"m", b'{"x":{"a":1},"y":1}')
@example(b"\x7f", b"{}")
def test_random_bytes_raise_nothing_else(key, value):
    outcome = decoded_or_fault(key, value, max_bytes=250)
    if isinstance(outcome, InvalidRecordError):
        assert outcome.reason in REASONS
        assert str(outcome).startswith(f"{outcome.field}: expected ")
    else:
        assert isinstance(outcome, Observation)


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
almost = st.fixed_dictionaries({}, optional={"x": json_data, "y": json_data, "model_id": json_data, "z": json_data})


@given(almost | json_data, st.none() | st.dictionaries(st.text(max_size=3), st.sampled_from(["number", "any"])))
def test_random_json_raises_nothing_else_and_lets_nothing_bad_through(data, features):
    outcome = decoded_or_fault(KEY, json.dumps(data).encode(), features=features)
    if isinstance(outcome, InvalidRecordError):
        assert outcome.reason in REASONS
        return
    assert outcome.x
    assert outcome.y is not None
    for value in (*outcome.x.values(), outcome.y):
        assert value is None or isinstance(value, (str, int, float))  # None is a missing feature
        assert not isinstance(value, float) or math.isfinite(value)
    assert features is None or set(outcome.x) == set(features)


@given(json_data)
def test_strict_json_is_decoded_to_what_it_says(data):
    text = json.dumps(data)
    if any(word in text for word in ("NaN", "Infinity", "\\ud")) or re.search(r"\d{16}", text):
        return  # not strict, or beyond 64 bits: the tests above
    assert decode_json(text.encode()) == json.loads(text)


def test_decoding_leaves_the_recursion_limit_alone():
    before = sys.getrecursionlimit()
    fault(b"[" * 100_000)
    assert sys.getrecursionlimit() == before
