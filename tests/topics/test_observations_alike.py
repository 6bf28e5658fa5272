"""What is decoded in one pass, because it is like the observation before, is what is decoded step by step."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attributary_topics import FEATURE_TYPES, InvalidRecordError, Observation, ObservationDecoder, decode_observation

KEY = b"m"
NAMES = ("a", "b", "c")
MAX_BYTES = 400

numbers = st.floats() | st.integers() | st.sampled_from([0, -0.0, 1e308, -1e308, 2**53 + 1, 2**64 - 1, 10**400])
scalars = numbers | st.booleans() | st.none() | st.text(max_size=4)
anything = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=2), scalars, max_size=2)
likely = st.permutations(NAMES).flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, scalars)))
clean = st.permutations(NAMES).flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, st.floats(-9, 9))))
features = clean | likely | st.dictionaries(st.sampled_from([*NAMES, "d", ""]), anything, max_size=4) | anything
fields = st.fixed_dictionaries(
    {"x": features, "y": scalars | anything},
    optional={"model_id": st.sampled_from(["m", "n", None, 1]), "more": anything},
)
values = st.one_of(
    fields.map(lambda data: json.dumps(data).encode()),
    fields.map(lambda data: json.dumps(data).encode()[:-3]),
    anything.map(lambda data: json.dumps(data).encode()),
    st.binary(max_size=20),
    st.sampled_from([None, b"", b'{"x": {"a": 1, "b": 1e999, "c": 1}, "y": 1}', b'{"x": {"a": 1}, "y": 1, "y": null}']),
    st.just(json.dumps({"x": dict.fromkeys(NAMES, 1.0), "y": "t" * MAX_BYTES}).encode()),
)
declarations = st.none() | st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from(sorted(FEATURE_TYPES))))


def outcome(decode: Any) -> Any:
    try:
        found = decode()
    except InvalidRecordError as error:
        return type(error), error.reason, error.field, str(error)
    return repr(found), [type(value) for value in (*found.x.values(), found.y)]


def step_by_step(value: bytes | None, declared: Any) -> Observation:
    return decode_observation(KEY, value, features=declared, max_bytes=MAX_BYTES)


@given(values, declarations, st.none() | st.sampled_from([NAMES, ("a", "b"), ()]))
@example(b'{"x": {"a": 1.5, "b": 2, "c": true}, "y": 1}', None, NAMES)
@example(b'{"x": {"a": "text", "b": 2, "c": true}, "y": "yes", "model_id": "m"}', None, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": true}, "y": 1}', {"a": "number", "b": "category", "c": "boolean"}, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": true}, "y": 1}', {"a": "number", "b": "category", "c": "number"}, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": 2.5}, "y": 1, "model_id": "n"}', None, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": null}, "y": 1}', None, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": true}, "y": 1}', dict.fromkeys(NAMES, "number"), NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": 3.5}, "y": null}', None, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2, "c": 3.5}, "y": [1]}', None, NAMES)
@example(b'{"x": {"a": 1.5, "b": 2}, "y": 1}', dict.fromkeys(NAMES, "number"), ("a", "b"))
def test_what_is_decoded_in_one_pass_is_what_is_decoded_step_by_step(
    value: bytes | None, declared: dict[str, str] | None, known: tuple[str, ...] | None
) -> None:
    decoder = ObservationDecoder(KEY, features=declared, max_bytes=MAX_BYTES)
    if known is not None:
        decoder.know(known)
    found = decoder.decode_like(value)
    expected = outcome(lambda: step_by_step(value, declared))
    if found is not None:
        assert outcome(lambda: found) == expected
    assert outcome(lambda: decoder.decode(value)) == expected


@pytest.mark.parametrize("declared", [None, dict.fromkeys(NAMES, "number"), {"a": "number", "b": "any", "c": "any"}])
@pytest.mark.parametrize("y", [True, 3, 0.5, "yes"])
@pytest.mark.parametrize("names", [NAMES, ("c", "a", "b")])
def test_an_ordinary_observation_is_decoded_in_one_pass(declared: Any, y: Any, names: tuple[str, ...]) -> None:
    decoder = ObservationDecoder(KEY, features=declared, max_bytes=MAX_BYTES)
    x = {name: 1.5 + i for i, name in enumerate(names)}
    value = json.dumps({"x": x, "y": y}).encode()
    assert decoder.decode_like(value) is None, "nothing is known of the names yet"
    decoder.know(NAMES)
    found = decoder.decode_like(value)
    assert found is not None
    assert (found.model_id, list(found.x.items()), found.y) == ("m", list(x.items()), y)


def test_a_key_that_is_no_model_id_is_refused() -> None:
    with pytest.raises(InvalidRecordError):
        ObservationDecoder(b"a\x00b")
