"""Values become numbers exactly, or are refused: nothing is rounded, and one row or many makes no difference."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attributary_explainers.evaluation.schema import LARGEST_EXACT, NotEncodableError, Schema, categorical_features
from attributary_explainers.typing import Array

FEATURES = ("b", "a", "c")
EXACT = 2**53

floats = st.floats()  # with NaN, infinities, -0.0 and subnormals
near = st.sampled_from([EXACT - 1, EXACT, EXACT + 1, EXACT + 2, 2**62 + 1, 2**63, 2**64, 10**30, 10**400])
integers = st.one_of(st.integers(), near, near.map(lambda value: -value))
scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.sampled_from([2**62 + 1, -(2**63), EXACT + 1, EXACT]).map(np.int64),
    st.integers(-(2**31), 2**31 - 1).map(np.int32),
    st.floats(width=32).map(np.float32),
    floats.map(np.float64),
    st.booleans().map(np.bool_),
)
numbers = st.one_of(floats, integers, st.booleans(), scalars, st.just(0.0), st.just(0))
others = st.one_of(
    st.text(max_size=3),
    st.binary(max_size=3),
    st.none(),
    st.decimals(),
    st.sampled_from([np.str_("a"), np.uint64(3), np.float16(0.5), 1j, (1, 2), [1], Fraction(1, 3), math.nan]),
)
KINDS = (int, float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_)


def is_exact_number(value: Any) -> bool:
    """Whether a column of numbers may hold the value."""
    if type(value) not in KINDS:
        return False
    if isinstance(value, (int, np.integer)):
        return abs(int(value)) <= EXACT
    return bool(np.isfinite(value))


def unless_refused(encode: Callable[[Any], Array], given: Any) -> Array | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of numpy, about what overflows
            return encode(given)
    except NotEncodableError:
        return None


def encoded(schema: Schema, x: Any) -> Array | None:
    return unless_refused(schema.encode, x)


def encoded_many(schema: Schema, rows: list[Any]) -> Array | None:
    return unless_refused(schema.encode_many, rows)


def as_fraction(value: Any) -> Fraction:
    return Fraction(int(value)) if isinstance(value, (int, np.integer, np.bool_)) else Fraction(float(value))


@given(st.tuples(*[st.one_of(numbers, others)] * 3))
@example((0.0, EXACT + 1, 0))
@example((np.int64(2**62 + 1), np.int64(2**62 + 1), 0))
@example((np.int64(-(2**63)), 2**60 + 1, 0))
@example((np.int32(2**31 - 1), np.int32(2**31 - 1), 1))
@example((np.float32(0.0), 1e300, EXACT + 1))
@example((1e308, 1e308, 10**400))
@example((10**400, math.nan, 1e308))
@example((EXACT, -EXACT, EXACT))
def test_numbers_are_held_exactly_or_refused(values: tuple[Any, ...]) -> None:
    schema = Schema(FEATURES)
    x = dict(zip(FEATURES, values, strict=True))
    row = encoded(schema, x)
    assert (row is not None) == all(map(is_exact_number, values))
    many = encoded_many(schema, [x])
    assert (many is None) == (row is None)
    if row is None or many is None:
        return
    assert row.dtype == np.float64
    assert row.tobytes() == many.tobytes()
    assert schema.features == ("a", "b", "c")
    decoded = schema.decode(row, FEATURES)
    assert list(decoded) == list(FEATURES)
    for feature, value in x.items():
        found = decoded[feature]
        assert type(found) is float
        assert as_fraction(found) == as_fraction(value)
        assert found == row[schema.position[feature]]
        if isinstance(value, (float, np.floating)):
            assert math.copysign(1.0, found) == math.copysign(1.0, value)


categories = st.one_of(
    st.sampled_from(["", "red", "1", "True", 0, 1, -1, True, False, 0.0, -0.0, 1.0, 0.5, math.inf, 10**400]),
    others,
    numbers,
)


def may_be_category(value: Any) -> bool:
    if type(value) is float:
        return value == value and not (value == 0.0 and math.copysign(1.0, value) < 0.0)
    return type(value) in (str, int, bool)


@given(st.lists(categories, min_size=1, max_size=12))
@example([1, True])
@example([0.0, -0.0])
@example([-0.0, 0.0])
@example([0, False, 0.0])
def test_categories_come_back_as_they_were_or_are_refused(values: list[Any]) -> None:
    schema = Schema(("k", "n"), ["k"])
    column = schema.position["k"]
    first: dict[Any, Any] = {}
    for value in values:
        row = encoded(schema, {"k": value, "n": 1.5})
        expected = may_be_category(value)
        if expected:
            expected = type(first.setdefault(value, value)) is type(value)
        assert (row is not None) == expected, value
        if row is not None:
            back = schema.decode(row, ("k", "n"))
            assert back == {"k": value, "n": 1.5}
            assert type(back["k"]) is type(value)
            assert repr(back["k"]) == repr(value)
    # Codes are 0, 1, ... by appearance, one for each.
    assert schema.codes[column] == {value: float(i) for i, value in enumerate(first)}
    assert list(map(repr, schema.values(column))) == list(map(repr, first.values()))


mixed_rows = st.lists(
    st.fixed_dictionaries({"a": numbers, "b": st.one_of(categories, st.text(max_size=2)), "c": numbers}),
    min_size=1,
    max_size=5,
)


@given(mixed_rows)
def test_many_rows_are_encoded_as_one_after_the_other(rows: list[dict[Any, Any]]) -> None:
    one_by_one, at_once = Schema(FEATURES, ["b"]), Schema(FEATURES, ["b"])
    expected = [encoded(one_by_one, row) for row in rows]
    found = encoded_many(at_once, rows)
    if any(row is None for row in expected):
        assert found is None
        return
    assert found is not None
    assert found.shape == (len(rows), 3)
    assert found.tobytes() == b"".join(row.tobytes() for row in expected if row is not None)
    assert at_once.codes == one_by_one.codes


@given(st.tuples(*[st.one_of(numbers, others)] * 2, st.sampled_from(["green", "red", "blue", 1, None])), st.booleans())
@example((0.5, 1, "red"), False)
@example((0.5, 1, "red"), True)
@example((0.5, 1, "blue"), False)
@example((EXACT - 1, True, "red"), False)
@example((0.5, EXACT + 1, "red"), False)
@example((-EXACT - 1, 0.5, "red"), False)
@example((math.inf, 1, "red"), False)
@example((math.nan, 1, "red"), False)
def test_an_observation_is_read_as_it_is_encoded_or_not_at_all(values: tuple[Any, ...], has_more: bool) -> None:
    schema = Schema("abk", "k")
    for text in ("green", "red"):
        schema.encode({"a": 0.0, "b": 0.0, "k": text})
    x = dict(zip("abk", values, strict=True)) | ({"more": 1.0} if has_more else {})
    reader = schema.reader()
    is_read = reader.read(x)
    usual = [
        type(value) in (float, np.float64) or (type(value) in (int, bool) and abs(value) < EXACT)
        for value in values[:2]
    ]
    row = encoded(schema, x)
    assert is_read == (row is not None and all(usual) and values[2] in ("green", "red"))
    if row is not None and is_read:
        assert reader.row.tobytes() == row.tobytes()


def test_other_features_are_refused() -> None:
    schema = Schema(("a", "b"))
    for x in ({}, {"a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "c": 2.0}):
        assert encoded(schema, x) is None
        assert encoded_many(schema, [{"a": 1.0, "b": 2.0}, x]) is None


def test_the_order_of_a_row_says_nothing() -> None:
    schema = Schema(("b", 2, "a", 10, None))
    assert schema.features == (2, 10, "a", "b", None)
    x = {None: 5.0, "b": 4.0, "a": 3.0, 10: 2.0, 2: 1.0}
    for row in (x, dict(reversed(x.items())), MappingProxyType(x)):
        found = encoded(schema, row)
        assert found is not None
        assert found.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    one = Schema(["only"])
    assert one.encode_many([{"only": 1}, {"only": True}]).tolist() == [[1.0], [1.0]]
    assert len(one) == 1


def test_which_features_are_categories() -> None:
    x = {"a": 1, "b": True, "c": "1", "d": None, "e": Decimal(1), "f": np.float32(1.0), "g": np.uint8(1)}
    assert categorical_features(x) == {"c", "d", "e", "g"}


def test_codes_that_are_shared_grow_together() -> None:
    one, other = Schema(("a", "k"), ["k"]), Schema(("k", "x", "y"), ["k"])
    one.encode({"a": 1.0, "k": "red"})
    other.share(0, one, 1)
    other.encode({"k": "blue", "x": 0, "y": 0})
    assert one.encode({"a": 1.0, "k": "blue"}).tolist() == [1.0, 1.0]
    assert other.decode(other.encode({"k": "red", "x": 1, "y": 2}), "k") == {"k": "red"}


def test_there_are_only_so_many_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attributary_explainers.evaluation.schema._MOST_CATEGORIES", 3)
    schema = Schema("k", "k")
    for value in ("a", "b", "c"):
        schema.encode({"k": value})
    with pytest.raises(NotEncodableError):
        schema.encode({"k": "d"})
    assert schema.encode({"k": "b"}).tolist() == [1.0]


def test_the_largest_integer_that_is_held_exactly_is_2_to_the_53() -> None:
    assert LARGEST_EXACT == EXACT
    assert encoded(Schema("a"), {"a": EXACT}) is not None
    assert encoded(Schema("a"), {"a": EXACT + 1}) is None
