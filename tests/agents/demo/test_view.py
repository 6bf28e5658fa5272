"""What the demo shows as plain lines, of a stream of any length."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from attributary_agents.demo.view import LiveView, PlainView


def event(observation: int, importance: float) -> dict[str, Any]:
    return {
        "observation": observation,
        "features": {"age": {"importance": importance, "half_width": 0.01}},
        "discrepancy": None,
        "model_loss": 0.2,
        "baseline_loss": 0.5,
        "quality": {},
        "loss": "brier",
        "loss_unit": "squared probability",
        "loss_largest": 2.0,
    }


def lines(n: int, every: int = 50) -> list[str]:
    """The lines that are printed of a stream of `n` observations."""
    text = io.StringIO()
    view = PlainView(Console(file=text, width=200), n)
    for t in range(every, n + 1, every):
        view.importance(event(t, t / 10_000))
    view.end()
    return text.getvalue().splitlines()


@pytest.mark.parametrize(("n", "expected"), [(442, 2), (10_000, 2), (1001, 2), (120, 1), (60_000, 12)])
def test_a_stream_of_any_length_has_some_lines_and_its_last_importances(n: int, expected: int) -> None:
    rows = lines(n)
    assert len(rows) == expected
    last = n // 50 * 50
    assert rows[-1].startswith(f"{last}/{n} observations, "), "the last event is shown, and once"
    assert len({row.split(",")[0] for row in rows}) == expected, "each is another"


@pytest.mark.parametrize("kind", [PlainView, LiveView])
def test_what_is_said_keeps_its_lines_and_nothing_else_that_moves_the_cursor(
    kind: type[PlainView] | type[LiveView],
) -> None:
    text = io.StringIO()
    kind(Console(file=text, width=200), 10).say("first\nsec\x1b[2Jond")
    assert text.getvalue().splitlines() == ["first", "sec\\x1b[2Jond"]


@pytest.mark.parametrize(
    ("life", "severity", "colour"),
    [("suspected", "warning", 33), ("confirmed", "critical", 31), ("over", "critical", 90), ("withdrawn", "info", 90)],
)
def test_an_incident_has_the_colour_of_how_bad_it_is(life: str, severity: str, colour: int) -> None:
    text = io.StringIO()
    view = LiveView(Console(file=text, width=200, force_terminal=True, color_system="standard"), 10)
    view.incident({"life": life, "severity": severity, "sentence": "credit is worse."})
    style, said = re.findall(r"\x1b\[([\d;]+)m(▲.*)\x1b\[0m", text.getvalue())[0]
    assert (int(style.split(";")[-1]), said) == (colour, "▲ credit is worse.")


def test_the_table_has_no_change_before_that() -> None:
    view = LiveView(Console(file=io.StringIO(), width=120), 2000)
    for t, shown in ((50, False), (1050, True)):
        view.importance(event(t, t / 1000))
        text = io.StringIO()
        Console(file=text, width=120).print(view._render())
        assert ("+1" in text.getvalue()) is shown
