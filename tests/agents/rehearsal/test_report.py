"""What a rehearsal has found, in lines."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.rehearsal.rehearsal import Rehearsal
from attributary_agents.rehearsal.report import report_lines

WHY = {"why": "the model is as it is", "loss_value": 1.00912e12}


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            {"prediction": 54553219.7, "label": 55477293.44282402},
            "  prediction  5.455e+07 for the last row, whose label is 5.548e+07",
        ),
        ({"prediction": 54553219.7, "label": 76}, "  prediction  5.455e+07 for the last row, whose label is 76"),
        ({"prediction": {"a": 1.0}, "label": "a"}, "  prediction  'a' 1 for the last row, whose label is 'a'"),
        (
            {"loss": "squared loss: unit", **WHY},
            "  loss        1.009e+12 on average (squared loss: unit), because the model is as it is",
        ),
        (
            {"loss": "score: what a feature adds to it", "is_score": True, **WHY},
            "  score       1.009e+12 on average, because the model is as it is",
        ),
    ],
)
def test_numbers_are_shown_alike_and_a_score_is_no_loss(found: dict[str, Any], line: str) -> None:
    assert line in list(report_lines(Rehearsal("m", rows="rows of f.csv", n_rows=2, n_used=2, **found)))
