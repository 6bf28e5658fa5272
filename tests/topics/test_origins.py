"""Where a mapped record comes from, as its header says it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics.origins import Origin, OriginPlace, decode_origin, find_header

ORIGINS = st.builds(
    Origin,
    topic=st.text(st.sampled_from("ab.-_@:9"), min_size=1, max_size=20),
    partition=st.integers(0, 10_000),
    offset=st.integers(0, 2**62),
    n=st.integers(0, 1000),
    is_first=st.booleans(),
    previous=st.integers(0, 2**62),
)


def test_the_header_is_what_the_pages_say() -> None:
    assert Origin("rentals", 3, 120, 0, False, 118).encode() == b"rentals:3:120:0:r:118"
    assert Origin("rentals@2", 3, 120, 1, True, 120).encode() == b"rentals@2:3:120:1:s:120"
    assert decode_origin(b"rentals:3:120:0:r:118").place == OriginPlace("rentals", 3)


@given(ORIGINS)
def test_what_is_written_is_read(origin: Origin) -> None:
    assert decode_origin(origin.encode()) == origin


@pytest.mark.parametrize(
    "value",
    [b"", b"rentals", b":1:2:3:r:4", b"rentals:1:2:3:x:4", b"rentals:a:2:3:r:4", b"rentals:1:2:3:r", b"\xff:1:2:3:r:4"],
)
def test_what_is_none_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"^expected topic:partition:offset:n:s or r:previous$"):
        decode_origin(value)


def test_of_headers_of_one_name_the_last_counts() -> None:
    headers = [("a", b"1"), ("b", None), ("a", b"2")]
    assert find_header(headers, "a") == b"2"
    assert find_header(headers, "b") is None
    assert find_header(headers, "c") is None
