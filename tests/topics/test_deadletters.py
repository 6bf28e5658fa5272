"""Dead letters keep the original, say why, and fit into a record."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics import (
    DEAD_LETTER_HEADER_PREFIX,
    REPLAYED_HEADER,
    DeadLetter,
    InvalidRecordError,
    Source,
    decode_dead_letter,
    fit_dead_letter,
    replayed_id,
)

ORIGINAL = [("trace", b"\x00\xff"), ("attributary-version", b"7"), ("trace", b"again")]
LETTER = DeadLetter(
    key=b"\xff\x00",
    value=b'{"x": ',
    headers=ORIGINAL,
    source=Source("attributary.observations.v1", 3, 17),
    timestamp_ms=1_700_000_000_123,
    stage="decode",
    reason="invalid_json",
    error="InvalidRecordError",
    message="value: expected JSON, got b'{\"x\": '",
)


def record_bytes(letter):
    headers = letter.all_headers()
    return len(letter.key or b"") + len(letter.value or b"") + sum(len(k.encode()) + len(v) for k, v in headers)


def test_the_original_headers_come_first_and_untouched():
    headers = LETTER.all_headers()
    assert headers[:3] == [("trace", b"\x00\xff"), ("attributary-version", b"7"), ("trace", b"again")]
    assert all(name.startswith(DEAD_LETTER_HEADER_PREFIX) for name, _ in headers[3:])
    assert headers[:3] == ORIGINAL  # the list itself has not grown
    assert len(ORIGINAL) == 3


def test_our_headers_say_where_it_was_and_why_it_is_here():
    ours = {name.removeprefix(DEAD_LETTER_HEADER_PREFIX): value for name, value in LETTER.all_headers()[3:]}
    assert ours == {
        "id": b"attributary.observations.v1:3:17",
        "stage": b"decode",
        "reason": b"invalid_json",
        "error": b"InvalidRecordError",
        "message": b"value: expected JSON, got b'{\"x\": '",
        "topic": b"attributary.observations.v1",
        "partition": b"3",
        "offset": b"17",
        "timestamp-ms": b"1700000000123",
        "attempts": b"1",
    }


def test_a_second_attempt_is_counted():
    assert ("attributary-dlq-attempts", b"2") in replace(LETTER, attempts=2).all_headers()


def test_a_message_that_is_not_utf_8_can_still_be_sent():
    headers = dict(replace(LETTER, message="bad \ud800 text").all_headers())
    assert headers["attributary-dlq-message"] == b"bad ? text"


def test_a_letter_that_fits_is_returned_as_it_is():
    assert fit_dead_letter(LETTER, 1_000_000) is LETTER
    assert "attributary-dlq-truncated-bytes" not in dict(LETTER.all_headers())
    for value in (None, b""):
        empty = replace(LETTER, value=value)
        assert fit_dead_letter(empty, 1_000_000) is empty


@given(st.integers(0, 20_000), st.integers(2_500, 12_000), st.integers(0, 500))
def test_a_letter_that_does_not_fit_loses_the_end_of_its_value_and_says_how_much(size, max_bytes, key_size):
    letter = replace(LETTER, key=b"k" * key_size, value=bytes(i % 251 for i in range(size)))
    fitted = fit_dead_letter(letter, max_bytes)
    assert record_bytes(fitted) <= max_bytes
    kept = len(fitted.value)
    assert letter.value[:kept] == fitted.value
    assert fitted.truncated_bytes == size - kept
    said = dict(fitted.all_headers()).get("attributary-dlq-truncated-bytes")
    assert said == (str(size - kept).encode() if kept < size else None)
    if kept < size:
        assert record_bytes(fitted) > max_bytes - 1200  # no more is cut than the room for the record's own frame
    assert replace(fitted, value=letter.value, truncated_bytes=0) == letter  # nothing else has changed


def test_names_and_messages_beyond_ascii_count_in_bytes():
    letter = replace(LETTER, message="ü" * 3000, headers=[("ü" * 500, b"")], value=b"v" * 20_000)
    fitted = fit_dead_letter(letter, 10_000)
    assert record_bytes(fitted) <= 10_000
    assert fitted.value


def test_a_header_without_a_value_is_kept():
    # Kafka's header values are nullable, and the consumer hands them on as None.
    letter = replace(LETTER, headers=[("flag", None)])
    assert letter.all_headers()[0] == ("flag", None)
    assert fit_dead_letter(letter, 1_000_000).headers == [("flag", None)]


@pytest.mark.parametrize("value", [None, b""])
def test_a_letter_without_a_value_has_nothing_to_cut(value):
    fitted = fit_dead_letter(replace(LETTER, value=value), 10)
    assert (fitted.value, fitted.truncated_bytes) == (value, 0)


@given(
    st.integers(0, 9_000),
    st.lists(st.tuples(st.text(max_size=4) | st.just("ü" * 2000), st.none() | st.just(b"v" * 900)), max_size=800),
    st.integers(0, 9_000),
)
def test_a_key_or_headers_as_large_as_a_record_are_cut_too(key_size, headers, value_size):
    letter = replace(LETTER, key=b"k" * key_size, headers=headers, value=b"x" * value_size)
    fitted = fit_dead_letter(letter, 8_000)
    said = dict(fitted.all_headers()[len(fitted.headers) :])
    assert sum(len(k.encode()) + len(v or b"") + 2 for k, v in fitted.all_headers()) + len(fitted.key) < 8_000
    assert fitted.headers == headers[: len(fitted.headers)]
    for name, missing in (
        ("headers", len(headers) - len(fitted.headers)),
        ("key-bytes", key_size - len(fitted.key)),
        ("bytes", value_size - len(fitted.value)),
    ):
        assert said.get(f"attributary-dlq-truncated-{name}") == (str(missing).encode() if missing else None)
    if fitted.truncated_key_bytes:
        assert not fitted.value  # the value and the headers go first
        assert not fitted.headers


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
LETTERS = st.builds(
    DeadLetter,
    key=st.none() | st.binary(max_size=9),
    value=st.none() | st.binary(max_size=99),
    headers=st.lists(st.tuples(st.sampled_from(["trace", "a", REPLAYED_HEADER]), st.none() | st.binary(max_size=9))),
    source=st.builds(Source, TEXTS, st.integers(0, 99), st.integers(0, 2**62)),
    timestamp_ms=st.integers(0, 2**62),
    stage=TEXTS,
    reason=TEXTS,
    error=TEXTS,
    message=TEXTS,
    attempts=st.integers(1, 9),
    truncated_bytes=st.integers(0, 9),
    truncated_key_bytes=st.integers(0, 9),
    truncated_headers=st.integers(0, 9),
)


@given(LETTERS)
def test_what_is_read_is_what_was_written(letter):
    assert decode_dead_letter(letter.key, letter.value, letter.all_headers()) == letter


def test_of_a_letter_that_was_copied_as_it_is_the_last_headers_count():
    again = replace(LETTER, headers=LETTER.all_headers(), source=Source("attributary.observations.v1", 3, 99))
    read = decode_dead_letter(again.key, again.value, again.all_headers())
    assert (read.id, read.headers) == ("attributary.observations.v1:3:99", ORIGINAL)


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ([], "attributary-dlq-topic"),
        ([one for one in LETTER.all_headers() if one[0] != "attributary-dlq-reason"], "attributary-dlq-reason"),
        ([*LETTER.all_headers(), ("attributary-dlq-offset", b"x")], "attributary-dlq-offset"),
        ([*LETTER.all_headers(), ("attributary-dlq-attempts", None)], "attributary-dlq-attempts"),
    ],
)
def test_what_is_no_dead_letter_is_refused_by_the_header(headers, field):
    with pytest.raises(InvalidRecordError) as caught:
        decode_dead_letter(b"m", b"{", headers)
    assert caught.value.field == field


def test_one_that_is_sent_again_names_this_dead_letter_alone():
    before = replace(LETTER, headers=[(REPLAYED_HEADER, b"another:0:1"), *ORIGINAL])
    headers = before.replayed_headers()
    assert headers == [*ORIGINAL, (REPLAYED_HEADER, b"attributary.observations.v1:3:17")]
    assert replayed_id(headers) == b"attributary.observations.v1:3:17"
    assert replayed_id(ORIGINAL) is None


def test_what_was_cut_is_said():
    assert LETTER.lacks == ""
    cut = fit_dead_letter(replace(LETTER, value=b"x" * 5000), 4000)
    assert cut.lacks == f"{cut.truncated_bytes} bytes of its value"
    assert decode_dead_letter(cut.key, cut.value, cut.all_headers()).lacks == cut.lacks
