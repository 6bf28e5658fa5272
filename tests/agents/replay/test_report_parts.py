"""What the report's charts are made of: thinned series, ranges, ticks, places for names, numbers and text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from attributary_agents.replay.report_axes import BOTTOM, LABEL_GAP, TOP, Line, spread, ticks, y_range
from attributary_agents.replay.report_data import MAX_POINTS, ThinnedSeries
from attributary_agents.replay.report_page import escape, number


@pytest.mark.parametrize("n", [1, 2, 599, 600, 601, 1199, 1200, 1201, 10_000])
def test_a_thinned_series_is_even_and_keeps_its_ends(n: int) -> None:
    series = ThinnedSeries[int]()
    for i in range(n):
        series.add(i)
    kept = series.points
    assert (kept[0], kept[-1]) == (0, n - 1)
    assert min(n, MAX_POINTS // 2) <= len(kept) <= MAX_POINTS
    strides = {b - a for a, b in pairwise(kept[:-1])}
    assert len(strides) <= 1
    assert kept == sorted(set(kept))


def test_one_early_extreme_does_not_flatten_the_rest() -> None:
    values = [(float(t), 1.0 + 0.1 * (t % 3), 0.01) for t in range(50)]
    low, high = y_range([Line("age", [(0.0, 100.0, 50.0), *values], 0)])
    assert low == 0.0
    assert high < 4.0


def test_an_absurd_observation_that_is_forgotten_slowly_does_not_flatten_the_rest() -> None:
    # It is published often while the loss falls, and seldom before: half of the points, a fifth of the stream.
    before = [(float(x), 10.0, None) for x in range(100, 4000, 100)]
    after = [(float(x), 10.0 + 1e6 * 0.99 ** (x - 4000), None) for x in range(4000, 5000, 20)]
    low, high = y_range([Line("model", [*before, *after], 0)])
    assert low == 0.0
    assert 10.0 < high < 1000.0


def test_a_lasting_change_is_shown_whole() -> None:
    _, high = y_range([Line("age", [(float(x), 0.01 if x < 700 else 0.5, 0.02) for x in range(0, 1000, 10)], 0)])
    assert high > 0.5


@pytest.mark.parametrize(
    "places", [[100.0] * 8, [TOP] * 8, [BOTTOM] * 8, [100.0, 101.0, 200.0, 201.0, 30.0], [50.0], []]
)
def test_names_of_lines_never_cover_each_other(places: list[float]) -> None:
    moved = spread(places)
    order = sorted(moved)
    assert all(b - a >= LABEL_GAP - 1e-9 for a, b in pairwise(order))
    assert all(TOP - 1 <= place <= BOTTOM + LABEL_GAP for place in moved)
    pairs = [(places[i], moved[i]) for i in range(len(places))]
    assert [a for a, _ in sorted(pairs, key=lambda pair: pair[1])] == sorted(places)


def test_ticks_are_round_and_within_the_range() -> None:
    assert [text for _, text in ticks(0, 1, 5)] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [text for _, text in ticks(-0.05, 0.1, 4)] == ["−0.05", "0.00", "0.05", "0.10"]
    assert [text for _, text in ticks(0, 12_000, 3)] == ["0", "5\u202f000", "10\u202f000"]
    assert [text for _, text in ticks(0, 3.2e6, 3)] == ["0", "2 million"]
    assert [text for _, text in ticks(-2.6e9, 0, 5)] == ["\u22122 billion", "\u22121 billion", "0"]


def test_numbers_are_short() -> None:
    assert [number(v) for v in (None, 0.0, 0.12345, -12.345, 1234567.8)] == [
        "–",
        "0",
        "0.123",
        "−12.3",
        "1.23\u202fmillion",
    ]


def test_text_is_cut_and_escaped() -> None:
    assert escape("abcdef", 4) == "abc…"
    assert escape("<&'\">") == "&lt;&amp;&#x27;&quot;&gt;"
    assert escape("a\x00b\u202ec") == "a\ufffdb\ufffdc"
