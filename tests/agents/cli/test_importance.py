"""What `attributary importance` prints of an event: of a loss, and of a score, which is none."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from attributary_agents.cli.importance import _show
from attributary_agents.kafka.events import ReadImportance
from tests.agents.replay.pages import importance

SCORE = {"mode": "anomaly", "loss": "neg_score", "loss_unit": "unit of the score", "loss_largest": None}


@pytest.mark.parametrize(
    ("fields", "head", "figures"),
    [
        ({}, "importance is brier, in squared probability", "loss 0.4 · without features 0.7 · discrepancy 0.1"),
        (
            {**SCORE, "baseline_loss": None},
            "importance of the score: what a feature adds to it",
            "mean score 0.4 · discrepancy 0.1",
        ),
    ],
)
def test_the_score_of_a_detector_is_not_called_a_loss(
    fields: dict[str, Any], head: str, figures: str, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"model_version": "1", **importance(100, {"a": 0.3, "b": 0.1}, **fields)}
    console = Console(width=200)
    _show(console, ReadImportance("id", "2026-01-01", b"", event), None)
    said = capsys.readouterr().out
    assert head in said
    assert figures in said
