"""Points in time as the command line takes them."""

from __future__ import annotations

import time

import click
import pytest

from attributary_agents.cli.dead_letters import Time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.5", 1_700_000_000_500),  # without a zone: UTC
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_a_date(text: str, expected: int) -> None:
    assert Time().convert(text, None, None) == expected


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("20m", 1200), ("2h", 7200), ("3d", 259_200)])
def test_how_long_ago(text: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    assert Time().convert(text, None, None) == (1_700_000_000 - seconds) * 1000


@pytest.mark.parametrize("text", ["yesterday", "2w", "-2h", "h", "2023-13-01", ""])
def test_what_is_no_time_is_a_user_s_fault(text: str) -> None:
    with pytest.raises(click.BadParameter, match="2026-11-25T20:00Z, or how long ago"):
        Time().convert(text, None, None)
