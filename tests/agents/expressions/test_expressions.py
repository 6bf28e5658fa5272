"""Expressions: the short cut finds what the JMESPath library finds, `$` names are the record's own, faults are told."""

from __future__ import annotations

import re
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.expressions import RecordView, is_expression_of_names, parse, parse_text, paths_read

NAMES = st.sampled_from(["a", "b", "_c", "true", "null", "length", "A9"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.lists(NAMES, min_size=1, max_size=4).map(".".join))
def test_names_joined_by_dots_find_what_the_library_finds(value: Any, text: str) -> None:
    assert is_expression_of_names(text)
    assert parse(text)(RecordView(value)) == jmespath.search(text, value)


@given(JSON, st.sampled_from(["a.b[0]", "a || b", "[?a==`1`]", "{x: a, y: b.a}", "a[*].b", "keys(@)", "@", "type(a)"]))
def test_everything_else_is_the_librarys_own(value: Any, text: str) -> None:
    assert not is_expression_of_names(text)
    try:
        expected = jmespath.search(text, value)
    except jmespath.exceptions.JMESPathError:
        with pytest.raises(ValueError, match=r"."):
            parse(text)(RecordView(value))
    else:
        assert parse(text)(RecordView(value)) == expected


RECORD = RecordView(
    {"$key": "of the value", "a": 1, "$offset": "own"},
    "rentals", 3, 42, 1700000000123, b'{"id": "s1"}', [("ce_id", b"x-1"), ("raw", b"\xff"), ("none", None)],
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$topic", "rentals"),
        ("$partition", 3),
        ("$offset", 42),
        ("$timestamp", 1700000000123),
        ("$key.id", "s1"),
        ("$headers.ce_id", "x-1"),
        ("$headers.raw", None),
        ("$headers.none", None),
        ("$headers.absent", None),
        ("$headers.\"ce_id\" || 'none'", "x-1"),
        ("join('-', [$topic, to_string(a)])", "rentals-1"),
        ("'$key'", "$key"),
        ("a", 1),
    ],
)
def test_names_with_a_dollar_are_the_records_own(text: str, expected: Any) -> None:
    assert parse(text)(RECORD) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [(None, None), (b"s1", "s1"), (b"\xff", None), (b"{broken", "{broken"), (b'{"a": 1}', {"a": 1}), (b"12", "12")],
)
def test_a_key_is_text_or_an_object(key: bytes | None, expected: Any) -> None:
    assert parse("$key")(RecordView({}, key=key)) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('op = "c"', "'op = \"c\"' is no JMESPath (unexpected '=' at character 4): equality is =="),
        ("@key", "'@key': the record's key is $key"),
        ("@timestamp", "'@timestamp': the record's timestamp is $timestamp"),
        ("a$b", "'a$b' is no JMESPath (unexpected '$' at character 2): a name with $ in it is quoted, as in \"a$b\""),
        (
            "zip-code",
            "'zip-code' is no JMESPath (unexpected '-' at character 4): a name with a hyphen is quoted, as in "
            '"zip-code"',
        ),
        (
            "age > 18",
            "'age > 18' is no JMESPath (unexpected 18 at character 7): a number is written between backticks, as in "
            "age > `18`",
        ),
        ("a and b", "'a and b' is no JMESPath (unexpected 'and' at character 3): and, or, not are written &&, ||, !"),
        (
            "$kye",
            "'$kye': a record has no $kye; it has $key, $headers, $timestamp, $topic, $partition, $offset",
        ),
        ("foo(", "'foo(' is no JMESPath (it ends too early (4))"),
        ("", "'' is no JMESPath (Invalid JMESPath expression: cannot be empty.)"),
    ],
)
def test_a_fault_says_what_was_probably_meant(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        parse(text)


@pytest.mark.parametrize("text", ["abs(a)", "floor(to_number('NaN'))", "ceil(to_number('Infinity'))", "a[::0]"])
def test_a_function_that_fails_on_a_record_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(text))}: "):
        parse(text)(RecordView({"a": ["text"]}))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("count", {("count",)}),
        ("after.count", {("after", "count")}),
        ("to_number(after.count) || other", {("after", "count"), ("other",)}),
        ("rows[?kind=='a'].value | [0]", {("rows",)}),
        ('"zip-code"', {("zip-code",)}),
        ("{a: b.c, d: [e, f]}", {("b", "c"), ("e",), ("f",)}),
        ("a == `1` && !b", {("a",), ("b",)}),
        ("sort_by(a, &b)", {("a",)}),
        ("$key.id", set()),
        ("$headers.x || $key", set()),
        ("'a'", set()),
    ],
)
def test_the_names_that_an_expression_reads(text: str, paths: set[tuple[str, ...]]) -> None:
    assert paths_read(text) == paths


@pytest.mark.parametrize(
    ("text", "of", "pattern"),
    [
        ("bikes", "bikes", "bikes"),
        ("store-{a}", "store-1", "store-*"),
        ("{$topic}-{ a }", "rentals-1", "*-*"),
        ("x{join('}', ['{', $topic])}", "x{}rentals", "x*"),
        ("{{a: $topic}.a}", "rentals", "*"),
    ],
)
def test_texts_with_expressions(text: str, of: str, pattern: str) -> None:
    parsed = parse_text(text)
    assert (parsed.of(RECORD), parsed.pattern, parsed.is_plain) == (of, pattern, "{" not in text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store-{a", "'store-{a': the brace at character 7 is not closed"),
        ("store-a}", "'store-a}': a closing brace at character 8 without an opening one"),
        ("store-{}", "'store-{}': nothing between the braces at character 7"),
        ("store-{@key}", "'@key': the record's key is $key"),
    ],
)
def test_faults_of_texts(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        parse_text(text)


@pytest.mark.parametrize(
    ("value", "got"),
    [({}, "nothing"), ({"a": 1.5}, "a number with a fraction"), ({"a": {}}, "an object"), ({"a": ""}, "an empty text")],
)
def test_what_is_no_text_is_no_id(value: dict[str, Any], got: str) -> None:
    with pytest.raises(ValueError, match=f"^expected text or an integer, 'a' gave {got}$"):
        parse_text("store-{a}").of(RecordView(value))


def test_a_boolean_is_written_as_json_has_it() -> None:
    assert parse_text("{a}").of(RecordView({"a": True})) == "true"
