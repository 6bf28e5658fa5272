"""Event times: numbers in each unit, RFC 3339, and what is none."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics.times import UNITS, read_time, scale_of

MAY_MS = 1_777_593_600_000
"""2026-05-01T00:00:00Z."""


@pytest.mark.parametrize(
    "value",
    [
        1_777_593_600,
        1_777_593_600_000,
        1_777_593_600_000_000,
        1_777_593_600_000_000_000,
        1_777_593_600.0,
        1.7775936e12,
        "2026-05-01T00:00:00Z",
        "2026-05-01T02:00:00+02:00",
        "2026-05-01",
        "2026-05-01T00:00:00",
    ],
)
def test_the_same_moment_in_each_form(value: Any) -> None:
    assert read_time(value) == MAY_MS


def test_fractions_are_kept_to_the_millisecond() -> None:
    assert read_time(1_777_593_600.25) == read_time("2026-05-01T00:00:00.250Z") == MAY_MS + 250
    assert read_time(1_777_593_600_000_999) == MAY_MS, "microseconds of an integer are cut off"
    assert read_time(0) == 0
    assert read_time(-1) == -1000


@given(st.datetimes(datetime(1974, 1, 1), datetime(2200, 1, 1)))
def test_the_unit_is_guessed_right_for_any_moment_of_use(at: datetime) -> None:
    moment = at.replace(tzinfo=UTC, microsecond=at.microsecond // 1000 * 1000)
    ms = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert read_time(ms) == read_time(ms * 1000) == read_time(ms * 1_000_000) == read_time(moment.isoformat()) == ms
    assert read_time(ms // 1000) == ms // 1000 * 1000
    assert [UNITS[scale_of(n)] for n in (ms // 1000, ms, ms * 1000, ms * 1_000_000)] == ["s", "ms", "µs", "ns"]


@pytest.mark.parametrize(
    "value",
    [None, True, [], {}, "", "yesterday", "12:30", math.nan, math.inf],
)
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts of a standard library's error are not ours
        read_time(value)
