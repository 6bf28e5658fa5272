"""A hold-out file: from the command line, in a worker's state, and as `check` judges it."""

from __future__ import annotations

import importlib.util
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from attributary_agents.cli import progress as shown
from attributary_agents.cli.main import cli
from attributary_agents.config.models import ModelConfig
from attributary_agents.errors import AttributaryError, SourceError
from attributary_agents.files.holdout import read_holdout
from attributary_agents.models.model_state import new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import IncidentEvent, Observation, Source
from tests.agents.models.risk import FACTORY, Risk, rows, written

BROKEN = rows(2000, 2, permuted=True)


def config_of(reference: Path, **more: Any) -> dict[str, Any]:
    watch_loss = {"reference": str(reference), **more.pop("watch_loss", {})}
    return {"factory": FACTORY, "learn": False, "change": None, "watch_loss": watch_loss, **more}


def of_frame() -> DecisionTreeClassifier:
    """Return a model that was fitted on a frame of a and b, and takes what is missing."""
    made = np.array(rows(2000, 9))
    return DecisionTreeClassifier(min_samples_leaf=50).fit(pd.DataFrame(made[:, :2], columns=["a", "b"]), made[:, 2])


def invoke(folder: Path, model: dict[str, Any], *arguments: str) -> Result:
    config = folder / "attributary.yaml"
    config.write_text(yaml.safe_dump({"models": {"m": model}}))
    return CliRunner().invoke(cli, [*arguments, "-c", str(config)])


def replayed(folder: Path, model: dict[str, Any]) -> Result:
    live = written(folder / "live.csv", BROKEN)
    return invoke(folder, model, "replay", str(live), "--out", str(folder / "out"))


def test_damage_in_the_first_row_of_a_replay_is_told_at_once(tmp_path: Path) -> None:
    result = replayed(tmp_path, config_of(written(tmp_path / "holdout.csv", rows(4000, 1))))
    assert result.exit_code == 0, result.output
    first, second, *_ = [json.loads(line) for line in (tmp_path / "out" / "incidents.jsonl").read_text().splitlines()]
    assert (first["what"], first["life"], first["observation"] <= 500) == ("worse", "suspected", True)
    assert [one["watch"] for one in first["evidence"]] == ["loss"]
    assert (second["id"], second["life"], next(iter(second["features"]))) == (first["id"], "confirmed", "a")


def test_json_lines_are_read_as_observations_are(tmp_path: Path) -> None:
    path = tmp_path / "holdout.jsonl"
    path.write_text("".join(json.dumps({"x": {"a": a, "b": b}, "y": y}) + "\n" for a, b, y in rows(500, 1)))
    found = read_holdout(path, None, ("b",))
    assert len(found.rows) == 500
    assert found.rows[0][0].keys() == {"b"}


def test_a_parquet_file_is_read_as_a_csv_file_is_or_its_extra_is_named(tmp_path: Path) -> None:
    path, live = tmp_path / "holdout.parquet", written(tmp_path / "live.csv", rows(300, 5))
    made = pd.DataFrame(rows(1000, 1), columns=["a", "b", "y"])
    arguments = ("check", "--offline", "--sample", str(live))
    if importlib.util.find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1")
        result = invoke(tmp_path, config_of(path), *arguments)
        assert result.exit_code == 2
        assert "needs pyarrow: pip install 'attributary[parquet]'" in result.output
        pytest.skip("reading a Parquet file needs pyarrow")
    made[["y", "a", "b"]].to_parquet(path)
    found = read_holdout(path, "y", None)
    assert found.rows == read_holdout(written(tmp_path / "holdout.csv", rows(1000, 1)), None, None).rows
    result = invoke(tmp_path, config_of(path, watch_loss={"target": "y"}), *arguments)
    assert result.exit_code == 0, result.output
    assert "loss watch  guarded since observation 1" in result.output
    assert "hold-out" not in result.stdout


@pytest.mark.parametrize(
    ("made", "more", "said"),
    [
        (None, {}, "watch_loss.reference: no file at"),
        (rows(255, 1), {}, "watch_loss.reference: holdout must be 256 rows or more with a label and a prediction, got"),
        ([(a, b, 0) for a, b, _ in rows(300, 1)], {}, "holdout must be rows of two classes or more"),
        ([(a, b, y + 7) for a, b, y in rows(300, 1)], {}, "holdout must be labels as the model predicts: [0, 1], got"),
        (rows(300, 1), {"watch_loss": {"target": "label"}}, "has no column 'label'; it has a, b, y"),
        (rows(300, 1), {"features": {"a": "number", "c": "number"}}, "lacks the features c: it has a, b"),
        (rows(300, 1), {"learn": True}, "needs `learn: false`: a model that learns leaves every hold-out behind"),
    ],
    ids=["no file", "too few", "one class", "other labels", "no label", "other features", "learns"],
)
def test_a_file_that_is_no_holdout_ends_with_one_line_and_2(
    tmp_path: Path, made: Any, more: dict[str, Any], said: str
) -> None:
    path = tmp_path / "holdout.csv"
    if made is not None:
        written(path, made)
    result = replayed(tmp_path, config_of(path, **more))
    assert isinstance(result.exception, AttributaryError)  # one line and exit code 2 of the command
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)


def test_columns_that_the_model_fails_without_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "holdout.csv", rows(300, 1), ("a", "y"))
    result = replayed(tmp_path, config_of(path))
    assert isinstance(result.exception, AttributaryError)
    assert "watch_loss.reference: the model fails on these rows: KeyError('b')" in str(result.exception)


def strict() -> Pipeline:
    """Return a model that takes nothing that is missing."""
    made = np.array(rows(2000, 9))
    steps = make_pipeline(StandardScaler(), LogisticRegression())
    return steps.fit(pd.DataFrame(made[:, :2], columns=["a", "b"]), made[:, 2])


class Asking(Risk):
    """Asks a fitted estimator by a frame of its own."""

    def predict_proba_one(self, x: dict[str, Any], **kwargs: Any) -> dict[int, float]:
        p = strict().predict_proba(pd.DataFrame([x]))[0].tolist()
        return {0: p[0], 1: p[1]}


@pytest.mark.parametrize(
    ("factory", "names", "b", "said"),
    [
        ("strict", ("a", "B", "y"), 1.0, "the model fails on these rows, which lack 'b': ValueError("),
        ("strict", ("a", "b", "y"), "", "the model fails on these rows, where 'b' is no number in some: ValueError("),
        ("Asking", ("a", "B", "y"), 1.0, "the model fails on these rows, at 'B': ValueError("),
    ],
    ids=["lacking", "not always a number", "named by the exception"],
)
def test_the_columns_come_before_what_the_exception_says(
    tmp_path: Path, factory: str, names: tuple[str, ...], b: Any, said: str
) -> None:
    holdout = [*rows(299, 1), (0.5, b, 1)]
    model = config_of(written(tmp_path / "holdout.csv", holdout, names)) | {"factory": f"{__name__}:{factory}"}
    live = written(tmp_path / "live.csv", rows(300, 5))
    result = invoke(tmp_path, model, "check", "--offline", "--sample", str(live))
    assert result.exit_code == 2
    assert f"m: cannot work: watch_loss.reference: {said}" in result.output


def test_a_file_whose_features_are_all_called_otherwise_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "holdout.csv", rows(300, 1), ("A", "B", "y"))
    model = config_of(path) | {"factory": f"{__name__}:of_frame"}
    live = written(tmp_path / "live.csv", rows(300, 5))
    result = invoke(tmp_path, model, "check", "--offline", "--sample", str(live))
    assert result.exit_code == 2
    said = "watch_loss.reference: holdout must be rows with features of the model, which knows 'a', 'b', got ['A', 'B']"
    assert any("cannot work" in line and said in line for line in result.output.splitlines())


def test_a_column_that_is_called_otherwise_is_a_caution(tmp_path: Path) -> None:
    path = written(tmp_path / "holdout.csv", rows(300, 1), ("a", "B", "y"))
    live = written(tmp_path / "live.csv", rows(300, 5))
    model = config_of(path) | {"factory": f"{__name__}:of_frame"}
    result = invoke(tmp_path, model, "check", "--offline", "--sample", str(live))
    assert result.exit_code == 0, result.output
    cautions = [line for line in result.output.splitlines() if line.startswith("  CAUTION")]
    assert any("the hold-out lacks 'b'" in line for line in cautions)
    assert any("the hold-out alone has 'B'" in line for line in cautions)


def test_a_replay_says_that_classes_were_resampled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = rows(8000, 1)
    of_each = sum(y for *_, y in made)
    halves = [row for row in made if row[2]] + [row for row in made if not row[2]][:of_each]
    result = replayed(tmp_path, config_of(written(tmp_path / "holdout.csv", halves)))
    assert result.exit_code == 0
    told = [text for text in [*caplog.messages, *result.output.splitlines()] if "HoldoutWarning" in text]
    assert len(told) == 1
    assert "among the first 256 labels: if its classes were resampled, draw it anew" in told[0]


def every_row_takes_4_s(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"clock": itertools.count(100.0, 4.0).__next__}
    monkeypatch.setattr(shown.progress.__wrapped__, "__kwdefaults__", clock)  # type: ignore[attr-defined]


def test_a_check_says_how_far_the_holdout_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every_row_takes_4_s(monkeypatch)
    model = config_of(written(tmp_path / "holdout.csv", rows(300, 1)))
    live = written(tmp_path / "live.csv", rows(100, 5))
    result = invoke(tmp_path, model, "check", "--offline", "--sample", str(live))
    told = [line for line in result.stderr.splitlines() if line.startswith("explaining the hold-out of m: ")]
    assert told == [f"explaining the hold-out of m: {n} of 300 rows, {4 * n} s" for n in range(3, 301, 3)], (
        "a line whenever ten seconds have passed"
    )


def test_a_replay_says_it_too_and_goes_on_with_its_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every_row_takes_4_s(monkeypatch)
    live = written(tmp_path / "live.csv", rows(200, 5))
    model = config_of(written(tmp_path / "holdout.csv", rows(300, 1)))
    result = invoke(tmp_path, model, "replay", str(live), "--out", str(tmp_path / "out"))
    told = [line for line in result.stderr.splitlines() if line.startswith("replay: ")]
    assert told[0] == "replay: 0 of 200 rows, 3 of 300 rows of the hold-out explained, 12 s"
    assert told[99] == "replay: 0 of 200 rows, 300 of 300 rows of the hold-out explained, 1200 s"
    assert [line.split(", ")[0] for line in told[100:]] == ["replay: 150 of 200 rows"]


def test_a_worker_says_at_its_first_observation_what_it_does_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = ModelConfig.model_validate(config_of(written(tmp_path / "holdout.csv", rows(300, 1))))
    state = new_state("m", config)
    with caplog.at_level("INFO"):
        for i, (a, b, y) in enumerate(rows(3, 5)):
            prequential(state, Observation("m", {"a": a, "b": b}, y), Source("topic", 0, i), i)
    said = "model m: 300 rows of its hold-out of 300 are explained before its first observation"
    assert caplog.messages.count(said) == 1


def test_more_rows_than_say_more_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attributary_agents.files.holdout.MOST_ROWS", 100)
    with pytest.raises(SourceError, match="has more than 100 rows: as many, drawn at random, say as much"):
        read_holdout(written(tmp_path / "holdout.csv", rows(101, 1)), None, None)


def test_a_worker_that_is_restored_goes_on_and_another_file_begins_anew(tmp_path: Path) -> None:
    config = ModelConfig.model_validate(config_of(written(tmp_path / "holdout.csv", rows(1000, 1))))
    stream = [Observation("m", {"a": a, "b": b}, y) for a, b, y in BROKEN]
    state, events = new_state("m", config), []
    for i, observation in enumerate(stream[:1000]):
        if i == 100:
            state = decode_state("m", config, encode_state(state))
        events += prequential(state, observation, Source("topic", 0, i), i)
    incidents = [event for event in events if isinstance(event, IncidentEvent)]
    assert incidents[0].what == "worse", "only the hold-out knows what was before the first row"
    other = ModelConfig.model_validate(config_of(written(tmp_path / "other.csv", rows(1000, 3))))
    again = decode_state("m", other, encode_state(state))
    assert again.loss_watch is not None
    assert again.loss_watch.is_new
    assert again.explainers["pfi"].n_observations == state.explainers["pfi"].n_observations


@pytest.mark.parametrize(
    ("holdout", "said"),
    [
        (rows(4000, 1), None),
        ([row for row in rows(8000, 1) if row[2] or row[0] > 1.0], "% of these rows: if its classes were resampled"),
        ([(a, b, int(1.5 * a + b > 2.2)) for a, b, _ in rows(4000, 1)], "give rows that it has not learnt"),
    ],
    ids=["fits", "resampled", "learnt by heart"],
)
def test_check_says_where_the_holdout_does_not_fit(tmp_path: Path, holdout: Any, said: str | None) -> None:
    model = config_of(written(tmp_path / "holdout.csv", holdout))
    live = written(tmp_path / "live.csv", rows(1000, 5))
    result = invoke(tmp_path, model, "check", "--offline", "--sample", str(live))
    assert result.exit_code == 0
    assert "40 rows" in result.output
    if said is None:
        assert "hold-out" not in result.output
    else:
        assert said in result.output
