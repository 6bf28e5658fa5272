"""Names that are shown, and how long ago something was."""

from __future__ import annotations

import pytest

from attributary_agents.serve.views.compare import Moment, read_moment
from attributary_agents.serve.views.words import WrongQuestionError, name, when


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("age", "age"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),  # text stays text: whoever shows it escapes it
        ("a\nb\x1b[31m\u202e", r"a\nb\x1b[31m\u202e"),
        ("x" * 300, "x" * 24 + "…" + "x" * 23),
        ("begin" + "x" * 300 + "end", "begin" + "x" * 19 + "…" + "x" * 20 + "end"),
    ],
)
def test_a_name_is_shown_without_control_characters_and_cut_in_its_middle(text: str, shown: str) -> None:
    assert name(text) == shown


@pytest.mark.parametrize(
    ("ago_ms", "said"),
    [(0, "just now"), (59_999, "just now"), (60_000, "1 minute ago"), (720_000, "12 minutes ago"), (-5, "just now")],
)
def test_an_event_was_so_long_ago(ago_ms: int, said: str) -> None:
    assert when(10_000_000 - ago_ms, 5, 10_000_000) == said


def test_an_event_without_a_time_is_told_by_its_observation() -> None:
    assert when(None, 5543, 10_000_000) == "at observation 5 543"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("bank@now", Moment("bank")),
        ("bank", Moment("bank")),
        ("bank@#5543", Moment("bank", observation=5543)),
        ("bank@1970-01-01T00:01", Moment("bank", time_ms=60_000)),
        ("bank@1970-01-01T01:01+01:00", Moment("bank", time_ms=60_000)),
        ("bank@1970-01-01T01:01 01:00", Moment("bank", time_ms=60_000)),  # a plus that was not encoded
        ("a@b@now", Moment("a@b")),
        ("shops/a b%/ü@#1", Moment("shops/a b%/ü", observation=1)),
    ],
)
def test_a_moment_is_read(text: str, moment: Moment) -> None:
    assert read_moment(text) == moment


@pytest.mark.parametrize("moment", [Moment("a@b"), Moment("m", observation=7), Moment("m", time_ms=1_790_000_000_123)])
def test_a_moment_is_read_as_it_was_written(moment: Moment) -> None:
    assert read_moment(str(moment)) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@now",
        "bank@#",
        "bank@#-1",
        "bank@#1e9",
        "bank@#" + "9" * 400,
        "bank@#" + "0" * 20 + "9" * 9000,
        "bank@yesterday",
        "bank@9999999-01-01",
        "a@#²",
    ],
)
def test_what_is_no_moment_is_refused_with_the_form_that_one_has(text: str) -> None:
    with pytest.raises(WrongQuestionError) as refused:
        read_moment(text)
    assert "MODEL@#OBSERVATION" in refused.value.detail
    assert len(refused.value.detail) < 300
