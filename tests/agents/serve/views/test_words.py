"""Half a line about a change, names that are shown, and how long ago something was."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.serve.views.errors import WrongQuestionError
from attributary_agents.serve.views.moments import Moment, read_moment
from attributary_agents.serve.views.words import gist, name, named_features, when

from .stores import moved


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"verdict": "followed", "importances": moved(salary=-0.2)}, "salary lost importance"),
        ({"verdict": "followed", "importances": moved(salary=-0.2, age=-0.3)}, "age and salary lost importance"),
        ({"verdict": "followed", "importances": moved(salary=-0.2, age=0.3)}, "age gained and salary lost importance"),
        (
            {"verdict": "harder", "importances": moved(a=0.5, b=-0.4, c=0.3, d=0.2)},
            "a gained and b lost importance, and 2 more moved",
        ),
        ({"verdict": "degraded", "importances": moved(salary=-0.2)}, "it became worse, salary lost importance"),
        ({"verdict": "degraded", "importances": {}}, "it became worse"),
        ({"verdict": "followed", "importances": {}}, "the data changed, and it followed"),
        ({"verdict": "harder", "importances": moved()}, "the data changed, and it has not gained on them"),
        ({"verdict": "matured", "importances": {}}, "it has learnt more"),
        (
            {"verdict": None, "route": "version", "model_version": "7", "importances": moved(x=1.0)},
            "version 7 took over, x gained importance",
        ),
        ({"verdict": None, "importances": {}}, "it changed"),
    ],
)
def test_an_explanation_is_told_by_its_verdict_and_the_features_beyond_noise(fields: dict[str, Any], said: str) -> None:
    assert gist({"event": "explanation", **fields}) == said


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "importance_shift", "feature": "age", "direction": "rose"}, "relies more on age"),
        ({"event": "importance_shift", "feature": "age", "direction": "fell"}, "relies less on age"),
        ({"event": "importance_shift_released", "feature": "age"}, "its shift of age is over"),
        ({"event": "loss_shift", "kind": "worse"}, "it became wronger"),
        ({"event": "loss_shift", "kind": "level"}, "it is off its level"),
        (
            {"event": "loss_shift_explained", "kind": "rose", "features": {"age": {"delta": 1.0, "significant": True}}},
            "its loss rose, look first at age",
        ),
        ({"event": "loss_shift_released"}, "the shift of its loss is over"),
        ({"event": "recovered", "back_to": 12000}, "it failed, and went back to observation 12 000"),
        ({"event": "alarm"}, "it is being examined"),
        ({"event": "of a later release"}, "it changed"),
        ({}, "it changed"),
    ],
)
def test_other_events_are_told_in_half_a_line_too(event: dict[str, Any], said: str) -> None:
    assert gist(event) == said


def test_features_within_noise_are_not_named_however_large_their_change() -> None:
    event = {"event": "explanation", "importances": moved(salary=-0.2, age=0.3)}
    assert named_features(event) == {"age": 0.3, "salary": -0.2}


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
