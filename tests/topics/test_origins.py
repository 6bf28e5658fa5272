"""The header that says where a mapped record comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics.origins import Origin, decode_origin, find_header

NUMBERS = st.integers(0, 2**63 - 1)


@given(
    st.builds(
        Origin,
        st.from_regex(r"[A-Za-z0-9._-]{1,249}(@[0-9]{1,4})?", fullmatch=True),
        st.integers(0, 2**31 - 1),
        NUMBERS,
        st.integers(0, 100),
        st.booleans(),
        NUMBERS,
        st.integers(0, 100),
    )
)
def test_what_is_written_is_what_is_read(origin: Origin) -> None:
    assert decode_origin(origin.encode()) == origin


def test_it_is_written_as_it_is_documented() -> None:
    assert Origin("rentals", 3, 17, 0, True, 12).encode() == b"rentals:3:17:0:s:12"
    assert Origin("rentals@2", 3, 17, 1, False, 16, 2).encode() == b"rentals@2:3:17:1:r:16.2"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"rentals",
        b"rentals:3:17:0:s",
        b":3:17:0:s:12",
        b"rentals:3:17:0:x:12",
        b"rentals:3:-1:0:s:12",
        b"rentals:3:1_7:0:s:12",
        b"rentals:3: 17:0:s:12",
        b"rentals:3:17:0:s:12.",
        b"rentals:3:17:0:s:" + b"9" * 20,
        b"\xff:3:17:0:s:12",
        b"t" * 301 + b":3:17:0:s:12",
        "rentals:٣:17:0:s:12".encode(),
    ],
)
def test_what_is_none_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="expected topic:partition:offset:n:s or r:previous"):
        decode_origin(value)


def test_of_a_header_that_is_there_twice_the_last_counts() -> None:
    assert find_header([("a", b"1"), ("a", b"2"), ("b", None)], "a") == b"2"
    assert find_header([], "a") is None
