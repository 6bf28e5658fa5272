"""Which class counts as positive: as `check` says it, and as a replay scores by it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from river import base
from sklearn.metrics import f1_score, precision_score

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError
from tests.agents.models.risk import rows, written

Row = tuple[float, float, Any]


class Fraud(base.Classifier):
    """Calls half of the rows fraud, by the first column."""

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        """Learn nothing."""

    def predict_proba_one(self, x: dict[str, Any], **kwargs: Any) -> dict[str, float]:
        p = 1.0 / (1.0 + math.exp(-2.0 * x["a"]))
        return {"fraud": p, "ok": 1.0 - p}


def labelled(n: int, seed: int) -> list[Row]:
    return [(a, b, "fraud" if y else "ok") for a, b, y in rows(n, seed)]


def invoke(folder: Path, model: dict[str, Any], command: str, of: list[Row], *more: str) -> Result:
    file, config = written(folder / "rows.csv", of), folder / "attributary.yaml"
    model = {"factory": f"{__name__}:Fraud", "learn": False, "change": None, **model}
    config.write_text(yaml.safe_dump({"models": {"m": model}}))
    given = ["--sample", str(file), "--offline"] if command == "check" else [str(file)]
    return CliRunner().invoke(cli, [command, *given, "-c", str(config), *more])


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"quality": ["f1", "accuracy", "recall_at_1%"]}, "f1, recall_at_1%"),
        ({"loss": {"cost": {"false_negative": 9, "false_positive": 1}}}, "the loss"),
        ({"quality": ["f1"], "positive": "fraud"}, None),
        ({"quality": ["f1"], "positive": "ok"}, None),
        ({"loss": {"cost": {"false_negative": 9, "false_positive": 1, "positive": "fraud"}}}, None),
        ({}, None),
    ],
    ids=["metrics", "costs", "named", "named as it is", "named among costs", "nothing asks"],
)
def test_check_says_which_class_counts_where_nobody_has_named_it(
    tmp_path: Path, more: dict[str, Any], where: str | None
) -> None:
    result = invoke(tmp_path, more, "check", labelled(300, 1))
    assert result.exit_code == 0, result.output
    said = [line for line in result.output.splitlines() if line.startswith("  positive")]
    assert len(said) == (where is not None)
    if where is not None:
        assert f"'ok' counts as positive in {where}, as the greater one of 'fraud' and 'ok'" in said[0]
        assert "`positive`" in said[0]


def test_nothing_is_said_of_zero_and_one(tmp_path: Path) -> None:
    model = {"factory": "tests.agents.models.risk:Risk", "quality": ["f1"]}
    result = invoke(tmp_path, model, "check", rows(300, 1))
    assert result.exit_code == 0
    assert "positive" not in result.output


@pytest.mark.parametrize("by", ["sample", "hold-out"])
def test_a_class_that_nobody_knows_ends_a_check_with_one_line_and_2(tmp_path: Path, by: str) -> None:
    model: dict[str, Any] = {"quality": ["f1"], "positive": "froud"}
    if by == "hold-out":
        model["watch_loss"] = {"reference": str(written(tmp_path / "holdout.csv", labelled(1000, 2)))}
    result = invoke(tmp_path, model, "check", labelled(300, 1))
    assert result.exit_code == 2
    said = "positive must be one of the classes 'fraud', 'ok', got 'froud': did you mean 'fraud'?"
    assert any("cannot work" in line and said in line for line in result.output.splitlines())


@pytest.mark.parametrize("by", ["key", "costs"])
def test_a_replay_scores_by_the_named_class(tmp_path: Path, by: str) -> None:
    of, cost = labelled(2000, 3), {"false_negative": 9, "false_positive": 1}
    loss = {"cost": cost if by == "key" else {**cost, "positive": "fraud"}}
    model = {"quality": ["f1", "precision"], "positive": "fraud", "loss": loss, "alpha": 0.001}
    result = invoke(tmp_path, model, "replay", of, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    event = json.loads((tmp_path / "out" / "importances.jsonl").read_text().splitlines()[-1])
    y, predicted = [label for *_, label in of], ["fraud" if a > 0.0 else "ok" for a, *_ in of]
    want = {"f1": f1_score, "precision": precision_score}
    for name, score in want.items():
        assert event["quality"][name]["reference"] == pytest.approx(score(y, predicted, pos_label="fraud"))
    assert event["loss"] == "cost(false_negative=9, false_positive=1, positive='fraud')"


def test_a_replay_refuses_a_class_that_nobody_knows(tmp_path: Path) -> None:
    result = invoke(tmp_path, {"positive": "froud"}, "replay", labelled(300, 1), "--out", str(tmp_path / "out"))
    assert isinstance(result.exception, AttributaryError)
    assert "positive must be one of the classes 'fraud', 'ok', got 'froud'" in str(result.exception)
