"""What `attributary check` says of sources and labels that are wrong: each fault by its exact line, with exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError

MODELS = "models: {bikes: {model: {class: river.tree.HoeffdingTreeRegressor}}}\n"
TWO = (
    "models: {bikes: {model: {class: river.tree.HoeffdingTreeRegressor}}, "
    "bank: {model: {class: river.tree.HoeffdingTreeClassifier}}}\n"
)
LABELS = "labels: {counts: {topic: counts, id: id, y: n, ttl: 3h}}\n"


def rentals(settings: str) -> str:
    """A source with these settings, and the one model."""
    return f"sources: {{rentals: {{topic: rentals, {settings}}}}}\n"


# fmt: off
# ruff: noqa: E501
WRONG = [
    (rentals("y: 'op = \"c\"'") + MODELS, "sources.rentals.y: 'op = \"c\"' is no JMESPath (unexpected '=' at character 4): equality is =="),
    (rentals("y: y, id: '@key'") + MODELS, "sources.rentals.id: '@key': the record's key is $key"),
    (rentals("y: a$b") + MODELS, "sources.rentals.y: 'a$b' is no JMESPath (unexpected '$' at character 2): a name with $ in it is quoted, as in \"a$b\""),
    (rentals("y: y, model: ghost") + MODELS, "sources.rentals.model: no model 'ghost' under models (bikes); a template needs {…}"),
    (rentals("y: y, model: bike") + MODELS, "sources.rentals.model: no model 'bike' under models (bikes): did you mean 'bikes'?; a template needs {…}"),
    (rentals("y: y") + TWO, "sources.rentals: which of bikes, bank? Add model:"),
    (rentals("x: {a: a}") + LABELS + MODELS, "labels.counts: source rentals gives no id for model bikes: add id: to sources.rentals"),
    (rentals("y: y, id: id") + LABELS + MODELS, "model bikes gets y from sources.rentals and labels.counts: keep one"),
    (rentals("id: id") + MODELS, "model bikes gets no labels from sources.rentals: add y or labels:, or mode: unlabelled, or mode: anomaly for an anomaly detector, or mode: mirror with y_pred"),
    (rentals("id: id, key: direct") + LABELS + MODELS, "labels.counts: needs the order of one topic: remove key: direct from sources.rentals"),
    (rentals("y: y, format: avro") + MODELS, "sources.rentals: format avro needs kafka.schema_registry.url"),
    (rentals("y: y, format: xml") + MODELS, "sources.rentals.format should be 'json', 'avro', 'protobuf', 'cloudevents' or 'open-inference', got 'xml'"),
    (rentals("y: y, x: {all_but: [a], b: b}") + MODELS, "sources.rentals.x: all_but stands alone, without b"),
    (rentals("y: y, x: {a: 5}") + MODELS, "sources.rentals.x: a: expected an expression, got 5"),
    (rentals("y: y, x: {a: 'b c'}") + MODELS, "sources.rentals.x: a: 'b c' is no JMESPath (unexpected 'c' at character 3)"),
    (rentals("y: y, x: {}") + MODELS, "sources.rentals.x: it is empty: leave it out for all fields, or name some"),
    (rentals("y: y, cast: {zip: txt}") + MODELS, "sources.rentals.cast.zip should be 'boolean', 'number' or 'text', got 'txt': did you mean 'text'?"),
    (rentals("y: y, start: yesterday") + MODELS, "sources.rentals.start: expected earliest, latest or a time such as 2026-05-01T00:00:00Z, got 'yesterday'"),
    (rentals("y: y, start: '2026-05-01'") + MODELS, "sources.rentals.start: '2026-05-01' has no time zone: write Z behind it for UTC"),
    (rentals("y: y, max_ahead: soon") + MODELS, "sources.rentals.max_ahead: expected a duration, such as 60s, 5m, 3h or 1d, or a number of seconds, got 'soon'"),
    (rentals("y: y, model: 'store-{a'") + MODELS, "sources.rentals.model: 'store-{a': the brace at character 7 is not closed"),
    ("sources: {rentals: {y: y}}\n" + MODELS, "sources.rentals.topic is missing"),
    ("sources: {rentals: {topic: [r, r], y: y}}\n" + MODELS, "sources.rentals.topic: a topic is named twice"),
    ("sources: {rentals: {topic: 'a b', y: y}}\n" + MODELS, "sources.rentals.topic: 'a b' cannot be a topic: letters, digits, '.', '_' and '-', at most 249"),
    ("sources: {rentals: {topic: attributary.observations.v1, y: y}}\n" + MODELS, "sources.rentals.topic: attributary.observations.v1 is a topic of Attributary itself, which needs no source"),
    (rentals("y: y, lable: z") + MODELS, "unknown key 'sources.rentals.lable'"),
    (rentals("id: id") + "labels: {counts: {topic: counts, id: id, y: n}}\n" + MODELS, "labels.counts.ttl is missing"),
    (rentals("id: id") + "labels: {counts: {topic: counts, id: id, ttl: 3h}}\n" + MODELS, "labels.counts: give `y`: labels are joined to their observations by id, and hold y"),
    (LABELS + MODELS, "labels.counts: no source has observations of model bikes"),
    (rentals("id: id") + LABELS.replace("counts:", "rentals:", 1) + MODELS, "labels.rentals: a source is called so, too: their metrics and positions go by name"),
    (rentals("y: y") + "models: {bikes: {mode: mirror, model: {class: river.tree.HoeffdingTreeRegressor}}}\n", "model bikes has mode: mirror: add y_pred, the prediction to learn, to sources.rentals"),
    (rentals("y: y") + "models: {bikes: {model: {served: 'http://a', input: x}}}\n", "models.bikes: model.features: name the features, in the order in which the model takes them"),
]
# fmt: on


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_each_fault(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(text)
    done = CliRunner().invoke(cli, ["check", "-c", str(path), "--offline"])
    assert isinstance(done.exception, AttributaryError), done.output
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)


@pytest.mark.long
def test_the_process_prints_one_line_and_exits_with_2(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(WRONG[0][0])
    for command in (["check", "--offline"], ["run"]):
        args = [sys.executable, "-m", "attributary_agents.cli", *command, "-c", str(path)]
        done = subprocess.run(args, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"attributary: {path}: {WRONG[0][1]}\n"
