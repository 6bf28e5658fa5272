"""`attributary check` from a YAML file and a CSV: each kind of model works, or is refused with the remedy."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from sklearn.linear_model import LogisticRegression

from attributary_agents.cli.main import cli
from attributary_agents.config.models import ModelConfig
from attributary_agents.demo.local_broker import free_port
from attributary_agents.errors import AttributaryError
from attributary_agents.models.model_state import new_state
from attributary_agents.rehearsal.doubts import doubts
from attributary_explainers import core
from attributary_topics import Observation
from tests.agents.rehearsal.models import HERE

DETECTOR = {
    "class": "river.anomaly.HalfSpaceTrees",
    "params": {"n_trees": 3, "height": 3, "window_size": 10, "seed": 1},
}
SGD = {"class": "sklearn.linear_model.SGDClassifier", "params": {"loss": "log_loss", "random_state": 1}}


def river(path: str, **params: Any) -> dict[str, Any]:
    return {"model": {"class": f"river.{path}", "params": params}}


def factory(name: str, **more: Any) -> dict[str, Any]:
    return {"factory": f"{HERE}:{name}", **more}


def row(rng: random.Random, kind: str) -> list[Any]:
    a, b = rng.gauss(0, 1), rng.gauss(0, 1)
    return {
        "numbers": [a, b, int(a > 0)],
        "texts": [a, b, "yes" if a > 0 else "no"],
        "targets": [a, b, 2 * a + b / 10],
        "counts": [a, b, round(1000 * abs(a))],
        "city": [a, rng.choice(["Oslo", "Bergen"]), 2 * a],
    }[kind]


def invoke(folder: Path, model: dict[str, Any], *arguments: str, kind: str | None = "numbers", **kafka: Any) -> Result:
    config = folder / "attributary.yaml"
    config.write_text(yaml.safe_dump({"models": {"m": model}, **({"kafka": kafka} if kafka else {})}))
    if kind is not None:
        rng = random.Random(1)
        head = ["a", "city" if kind == "city" else "b", "y"]
        lines = [head, *(row(rng, kind) for _ in range(60))]
        (folder / "data.csv").write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
        arguments = ("--sample", str(folder / "data.csv"), *arguments)
    offline = () if kafka else ("--offline",)
    return CliRunner().invoke(cli, ["check", "-c", str(config), *offline, *arguments])


WORK = [
    (river("forest.ARFClassifier", n_models=2, seed=1), "numbers", "classifier with probabilities", "by its fast path"),
    (river("forest.ARFRegressor", n_models=2, seed=1), "targets", "is a regressor", "by its fast path"),
    ({"model": DETECTOR}, "numbers", "an anomaly detector", "row by row"),
    (
        {"model": [{"class": "river.preprocessing.MinMaxScaler"}, DETECTOR]},
        "numbers",
        "an anomaly detector",
        "row by row",
    ),
    (
        {
            "model": [
                {"class": "river.preprocessing.StandardScaler"},
                {"class": "river.linear_model.LogisticRegression"},
            ]
        },
        "numbers",
        "classifier with probabilities",
        "by its fast path",
    ),
    (factory("learns_by_partial_fit", learn=False), "numbers", "classifier with probabilities", "in one call"),
    (river("compat.SKL2RiverClassifier", estimator=SGD, classes=[0, 1]), "numbers", "with probabilities", "row by row"),
    (factory("named", learn=False), "targets", "is a regressor", "in one call"),
    (factory("encoded"), "city", "is a regressor", "by its fast path"),
    (factory("homemade"), "numbers", "classifier with probabilities", "row by row"),
    (factory("priced", learn=False, loss="squared"), "targets", "`loss`", "row by row"),
    (factory("many_rows", learn=False), "numbers", "classifier with probabilities", "in one call"),
    (factory("of_texts", learn=False), "texts", "classifier with probabilities", "in one call"),
]


@pytest.mark.parametrize(("model", "kind", "why", "evaluated"), WORK)
def test_what_works_says_what_came_out(
    tmp_path: Path, model: dict[str, Any], kind: str, why: str, evaluated: str
) -> None:
    result = invoke(tmp_path, model, kind=kind)
    assert result.exit_code == 0, result.output
    assert "m: works: 40 of 40 rows used (rows of " in result.output
    measure = "score " if why == "an anomaly detector" else "loss "
    for part in (
        "prediction ",
        f"\n  {measure}",
        why,
        "explained   39 rows",
        evaluated,
        "one step ",
        "state ",
        "stored and",
    ):
        assert part in result.output
    assert ("\n  loss " in result.output) == (measure == "loss ")
    assert "CAUTION" not in result.output
    assert result.output.rstrip().endswith("1 of 1 models work")


@pytest.mark.parametrize(("model", "kind", "why", "evaluated"), WORK)
def test_what_works_is_restored_equal(
    tmp_path: Path, model: dict[str, Any], kind: str, why: str, evaluated: str
) -> None:
    found = json.loads(invoke(tmp_path, model, "--json", kind=kind).output)["models"]["m"]
    assert {"prediction", "events", "explainers", "change", "loss_watch", "quality"} <= set(found["restored"])
    assert (found["doubts"], found["problem"], found["tried"], found["n_used"]) == ([], None, True, 40)


REFUSED = [
    (
        factory("learns_by_partial_fit"),
        "numbers",
        ["SGDClassifier", "river.compat.SKL2RiverClassifier", "learn: false"],
    ),
    (factory("of_texts"), "texts", ["LogisticRegression cannot learn one observation", "learn: false"]),
    (factory("unfitted"), "numbers", ["it is not fitted either: fit it in the function that `factory` names"]),
    (factory("unfitted", learn=False), "numbers", ["LogisticRegression predicts nothing", "fit it before", "factory"]),
    (river("forest.ARFRegressor", n_models=2), "city", ["numbers only", "text in city", "OneHotEncoder", "leave"]),
    (river("tree.HoeffdingTreeRegressor"), "city", ["numbers only", "text in city", "OneHotEncoder"]),
    (factory("of_texts", learn=False), "city", ["numbers only", "text in city", "make_column_transformer"]),
    (river("tree.HoeffdingTreeRegressor"), "texts", ["must be a number, got 'yes'", "take a classifier"]),
    (river("forest.ARFClassifier", n_models=2), "targets", ["different numbers", "take a regressor", "--target"]),
    (river("linear_model.LogisticRegression"), "texts", ["the label 'yes' is a text", "classes are numbers"]),
    (factory("of_texts", learn=False), "numbers", ["is a number, and the model's classes are texts: 'no', 'yes'"]),
    (factory("priced", learn=False), "targets", ["what price predicts", "`loss: squared`"]),
    (
        factory("many_rows", learn=False, change={"distance": "number"}),
        "numbers",
        ["change.distance must be label or probability, because the loss reads classes", "got 'number'"],
    ),
    (
        factory("priced", learn=False, loss="squared", change={"loss": "brier"}),
        "targets",
        ["change.loss must be a loss of what squared reads (number): leave it out"],
    ),
    (factory("priced", learn=False, loss="brier"), "targets", ["predict a dict of probabilities", "the key `loss`"]),
    (factory("many_rows", learn=False, loss="squared"), "numbers", ["use the loss brier", "the key `loss`"]),
    (river("preprocessing.StandardScaler"), "numbers", ["predicts nothing: put a classifier or a regressor behind it"]),
]


@pytest.mark.parametrize(("model", "kind", "parts"), REFUSED)
def test_what_cannot_work_is_refused_with_the_remedy(
    tmp_path: Path, model: dict[str, Any], kind: str, parts: list[str]
) -> None:
    result = invoke(tmp_path, model, kind=kind)
    assert result.exit_code == 2
    (line,) = [line for line in result.output.splitlines() if line.startswith("m: ")]
    assert line.startswith("m: cannot work: ")
    for part in parts:
        assert part in line
    assert "0 of 1 models work; 1 cannot work" in result.output
    assert "made up" not in line


@pytest.mark.parametrize(("model", "kind", "parts"), REFUSED)
def test_replay_refuses_it_at_once_without_what_an_exception_says(
    tmp_path: Path, model: dict[str, Any], kind: str, parts: list[str]
) -> None:
    invoke(tmp_path, model, kind=kind)
    out = tmp_path / "out"
    command = ["replay", str(tmp_path / "data.csv"), "-c", str(tmp_path / "attributary.yaml"), "--out", str(out)]
    result = CliRunner().invoke(cli, command)
    assert isinstance(result.exception, AttributaryError)  # one line and exit code 2 of the command
    said = str(result.exception)
    assert said.startswith("models.m: ")
    # What an exception says may hold values of a row: `check` shows it, on stdout.
    assert all(part in said for part in parts) or f"`attributary check --sample {tmp_path / 'data.csv'}`" in said
    assert not out.exists()


def test_no_value_of_a_row_is_on_stderr(tmp_path: Path) -> None:
    checked = invoke(tmp_path, factory("leak"))
    value = (tmp_path / "data.csv").read_text().splitlines()[1].split(",")[0]
    assert checked.exit_code == 2
    assert value in checked.stdout
    assert value not in checked.stderr
    command = ["replay", str(tmp_path / "data.csv"), "-c", str(tmp_path / "attributary.yaml"), "--out", str(tmp_path)]
    said = str(CliRunner().invoke(cli, command).exception)
    assert "Leak fails on every row: ValueError in models.py, line " in said
    assert value not in said


def test_a_model_that_fails_on_most_rows_is_refused(tmp_path: Path) -> None:
    result = invoke(tmp_path, river("neighbors.KNNRegressor"), kind="city")
    assert result.exit_code == 2
    assert "m: cannot work: the model takes numbers only, and there is text in city" in result.output


def test_a_pipeline_that_takes_no_text_says_which_columns_have_it(tmp_path: Path) -> None:
    model = {
        "model": [
            {"class": "river.preprocessing.StatImputer"},
            {"class": "river.linear_model.LinearRegression"},
        ]
    }
    result = invoke(tmp_path, model, kind="city")
    assert result.exit_code == 2
    assert "text in city" in result.output


def test_probabilities_that_are_none_are_refused(tmp_path: Path) -> None:
    result = invoke(tmp_path, factory("unnormalised"))
    assert result.exit_code == 2
    said = "the model's probabilities sum to 4, not to 1: divide them by their sum before the model returns them"
    verdict, letter = result.stdout.splitlines()[:2]
    assert verdict == f"m: cannot work: {said}"
    assert letter.endswith(f"40 rows: model_failed: {said}")
    command = ["replay", str(tmp_path / "data.csv"), "-c", str(tmp_path / "attributary.yaml"), "--out", str(tmp_path)]
    assert said in str(CliRunner().invoke(cli, command).exception)


def test_a_loss_of_costs_is_named_and_is_of_two_classes(tmp_path: Path) -> None:
    costs = {"loss": {"cost": {"false_negative": 100, "false_positive": 1}}}
    result = invoke(tmp_path, {**river("naive_bayes.GaussianNB"), **costs})
    assert result.exit_code == 0
    named = "(cost(false_negative=100, false_positive=1) loss: cost, at most 100), because the configuration names it"
    assert named in result.output
    result = invoke(tmp_path, {**river("naive_bayes.GaussianNB"), **costs}, kind="counts")
    assert result.exit_code == 2
    assert "costs are of two classes, and the model and the label name " in result.output


def test_a_model_worse_than_a_constant_is_a_caution(tmp_path: Path) -> None:
    result = invoke(tmp_path, factory("far_off", loss="squared", learn=False), kind="targets")
    assert result.exit_code == 0
    assert "CAUTION     all predictions are the same" in result.output
    assert "CAUTION     the model loses more than a constant would" in result.output


def test_names_that_no_row_has_are_a_caution(tmp_path: Path) -> None:
    tree = river("tree.HoeffdingTreeRegressor", leaf_prediction="mean")
    names = {
        "missing": {"citty": "Oslo", "a": 0},
        "bounds": {"x": [0, 9], "*": [-9, 9]},
        "groups": {"g": ["icty", "b"]},
    }
    result = invoke(tmp_path, {**tree, **names}, kind="city")
    assert result.exit_code == 0
    assert [line.split("CAUTION")[1].strip() for line in result.stdout.splitlines() if "no row has" in line] == [
        "`missing` names 'citty', which no row has: did you mean 'city'?",
        "`bounds` names 'x', which no row has",
        "`groups` names 'icty', which no row has: did you mean 'city'?",
        "`groups` names 'b', which no row has",
    ]


def test_one_row_that_can_be_used_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"x": {"a": 1.5}, "y": true}\n' + '{"x": {"a": 2}}\n' * 9)
    model = river("linear_model.LogisticRegression")
    result = invoke(tmp_path, model, "--sample", str(tmp_path / "data.jsonl"), kind=None)
    assert result.exit_code == 2
    assert "NOT TRIED: 1 of 10 rows can be used" in result.output
    assert "CAUTION     9 of 10 rows are no observations: 9 missing_label" in result.output


def test_nothing_is_said_to_work_that_was_not_tried(tmp_path: Path) -> None:
    result = invoke(tmp_path, river("forest.ARFClassifier", n_models=2), kind=None)
    assert result.exit_code == 0
    assert "NOT TRIED" in result.output
    assert "--sample FILE" in result.output
    assert "features: {NAME: number" in result.output
    assert "works" not in result.output
    assert result.output.rstrip().endswith("0 of 1 models work; 1 not tried")


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (river("tree.HoeffdingTreeRegressor") | {"features": {"a": "number", "b": "boolean"}}, 0),
        (river("tree.HoeffdingTreeClassifier") | {"features": {"a": "number", "c": "category"}}, 0),
        (river("linear_model.LogisticRegression") | {"features": {"a": "any"}, "bounds": {"a": [3, 4]}}, 0),
        (factory("of_texts", learn=False, features={"a": "number", "b": "number"}), 0),
        (factory("named", learn=False), 0),  # the model names its features itself
        (river("tree.HoeffdingTreeRegressor") | {"features": {"a": "number", "c": "category"}}, 2),
    ],
)
def test_declared_features_are_enough_to_try_it(tmp_path: Path, model: dict[str, Any], code: int) -> None:
    result = invoke(tmp_path, model, kind=None)
    assert result.exit_code == code, result.output
    assert ("works: 40 of 40 rows used (made-up rows)" in result.output) == (code == 0)
    assert ("the rows are made up: try your own with --sample FILE" in result.output) == (code == 2)


@pytest.mark.parametrize(
    ("model", "evaluated"),
    [
        (river("tree.HoeffdingTreeClassifier"), "by its fast path"),
        (river("linear_model.LinearRegression"), "by its fast path"),
        (river("neighbors.KNNClassifier"), "row by row, "),
        (river("tree.SGTClassifier"), "row by row, there is no fast path for this type"),
        (factory("picky"), "known with the first observation"),
    ],
)
def test_without_rows_it_is_said_how_two_numbers_are_evaluated(
    tmp_path: Path, model: dict[str, Any], evaluated: str
) -> None:
    found = json.loads(invoke(tmp_path, model, "--json", kind=None).output)["models"]["m"]
    assert found["evaluated"].startswith(evaluated)
    assert found["evaluated"].endswith(" (two made-up numbers)")
    assert (found["rows"], found["n_rows"], found["problem"]) == (None, 0, None)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_core_that_is_not_compiled_is_said_and_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    monkeypatch.setattr(core, "is_compiled", lambda: is_compiled)
    result = invoke(tmp_path, river("naive_bayes.GaussianNB"))
    assert result.exit_code == 0
    assert ("\ncore: plain Python, " in result.output) == (not is_compiled)


def test_bad_rows_are_counted_by_reason_and_do_not_speak_against_the_model(tmp_path: Path) -> None:
    lines = [
        '{"x": {"a": 1.5}, "y": true}',
        '{"x": {"a": 2}}',
        '{"x": {"a": 1e999}, "y": true}',
        '{"x": {"a": 1}, "y": false}',
    ]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    model = river("linear_model.LogisticRegression")
    result = invoke(tmp_path, model, "--sample", str(tmp_path / "data.jsonl"), kind=None)
    assert result.exit_code == 0, result.output
    assert "works: 2 of 4 rows used" in result.output
    assert "1 row: missing_label" in result.output
    assert "1 row: not_finite" in result.output


def test_a_sample_of_bad_rows_alone_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"x": {"a": 2}}\n' * 5)
    result = invoke(
        tmp_path, river("linear_model.LogisticRegression"), "--sample", str(tmp_path / "data.jsonl"), kind=None
    )
    assert result.exit_code == 2
    assert "NOT TRIED: none of 5 rows can be used" in result.output
    assert "5 rows: missing_label" in result.output


def test_many_whole_numbers_as_classes_are_a_caution(tmp_path: Path) -> None:
    result = invoke(tmp_path, river("forest.ARFClassifier", n_models=2), kind="counts")
    assert result.exit_code == 0
    assert "CAUTION     the labels are 40 different numbers in 40 rows" in result.output


def test_a_new_version_that_cannot_learn_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    invoke(tmp_path, river("linear_model.LogisticRegression"))
    allowed = yaml.safe_dump({"control": {"allowed": [f"{HERE}:learns_by_partial_fit"]}})
    with (tmp_path / "attributary.yaml").open("a") as file:
        file.write(allowed)
    command = ["models", "deploy", "m", "-c", str(tmp_path / "attributary.yaml"), "--version", "2", "--dry-run"]
    result = CliRunner().invoke(cli, [*command, "--factory", f"{HERE}:learns_by_partial_fit"])
    assert "river.compat.SKL2RiverClassifier" in str(result.exception)


def test_without_a_broker_the_models_are_rehearsed_all_the_same(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    result = invoke(tmp_path, river("linear_model.LogisticRegression"), brokers=[address])
    assert result.exit_code == 2
    assert result.stdout.startswith("m: works")
    assert result.stderr.startswith("attributary: 1 of 1 models work; no Kafka at ")
    assert address in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_is_of_one_model(tmp_path: Path) -> None:
    config = tmp_path / "attributary.yaml"
    config.write_text(yaml.safe_dump({"models": dict.fromkeys("mn", river("linear_model.LogisticRegression"))}))
    (tmp_path / "data.csv").write_text("a,y\n1,0\n2,1\n")
    command = ["check", "--offline", "-c", str(config), "--sample", str(tmp_path / "data.csv")]
    assert "--model: m, n" in str(CliRunner().invoke(cli, command).exception)
    chosen = CliRunner().invoke(cli, [*command, "--model", "n"])
    assert chosen.exit_code == 0
    assert "n: works" in chosen.output
    assert "expected one of m, n" in str(CliRunner().invoke(cli, [*command, "--model", "o"]).exception)
    assert "--offline" in str(CliRunner().invoke(cli, [*command[:4], "--sample", "50"]).exception)


def test_more_categories_and_labels_than_the_model_is_taught_are_a_caution() -> None:
    config = ModelConfig(factory="tests.agents.stand_ins:counting_classifier", max_categories=3, max_labels=4)
    rows = [Observation("m", {"zip": f"z{i}", "size": i, "colour": "rgb"[i % 3]}, i) for i in range(5)]
    state = new_state("m", config)
    zips, labels = doubts(state, rows, [], [])
    assert "'zip' has 5 different texts" in zips
    assert "max_categories" in zips
    assert "5 different labels" in labels
    assert "max_labels" in labels
    assert list(doubts(state, rows[:3], [], [])) == []
    assert list(doubts(new_state("m", config.model_copy(update={"learn": False})), rows, [], [])) == []


def test_bounds_are_looked_for_in_a_thousand_rows_of_a_file(tmp_path: Path) -> None:
    values = [{"x": {"size": i / 7, "zip": f"z{i % 200}"}, "y": f"class {i % 150}"} for i in range(900)]
    values[0]["y"] = None  # a label that is missing is one row's
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(value) for value in values))
    flat = [{**value["x"], "label": value["y"]} for value in values]
    (tmp_path / "flat.jsonl").write_text("\n".join(map(json.dumps, flat)))
    for arguments in (["rows.jsonl"], ["flat.jsonl", "--target", "label"]):
        file, *more = arguments
        model = {"class": "river.tree.HoeffdingTreeClassifier"}
        found = invoke(tmp_path, {"model": model}, "--sample", str(tmp_path / file), *more, kind=None)
        assert found.exit_code == 0, found.output
        assert "works: 39 of 40 rows used" in found.output
        assert "feature 'zip' has 200 different texts in 899 rows" in found.output
        assert "150 different labels in 899 rows, and those beyond 100 are dead letters" in found.output


@pytest.mark.parametrize(
    ("positive", "said"),
    [
        (lambda i: i % 2, "guarded since observation 256: would see a rise of the error from "),
        (
            lambda i: i % 200 == 1,
            "not judged yet: 5 labels True of 30; at this rate guarded from about observation 6 000 on",
        ),
        (lambda _: False, "not judged yet: 0 labels True of 30"),
    ],
)
@pytest.mark.parametrize("name", ["seldom", "seldom_many"])
def test_it_says_from_when_on_a_frozen_model_would_be_guarded_by_all_rows_of_a_file(
    tmp_path: Path, name: str, positive: Callable[[int], bool], said: str
) -> None:
    rng = random.Random(1)
    rows = [{"a": rng.gauss(0, 1), "b": 0.5, "y": bool(positive(i))} for i in range(1000)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ("--sample", str(tmp_path / "rows.jsonl"), "--target", "y")
    model = factory(name, learn=False, loss="cross_entropy")
    line = next(
        one for one in invoke(tmp_path, model, *arguments, kind=None).output.splitlines() if "loss watch" in one
    )
    assert line.startswith(f"  loss watch  {said}")
    found = json.loads(invoke(tmp_path, model, *arguments, "--json", kind=None).output)["models"]["m"]
    assert f"  loss watch  {found['guard']['sentence']}" == line.partition(";")[0]
    assert found["guarded_from"] == (6000 if "about" in said else None)


def test_numbers_and_texts_in_one_feature_are_a_caution(tmp_path: Path) -> None:
    config = ModelConfig(factory="tests.agents.stand_ins:counting_classifier")
    values: list[Any] = [1.5, "NA", None, 2, True, "NA"]
    rows = [Observation("m", {"c": value, "n": i, "t": "a", "e": None}, i % 2) for i, value in enumerate(values)]
    (doubt,) = doubts(new_state("m", config), rows, [], [])
    assert "'c' has 3 numbers and 2 texts" in doubt
    assert "null" in doubt
    declared = config.model_copy(update={"features": {"c": "number", "n": "number", "t": "category", "e": "number"}})
    assert list(doubts(new_state("m", declared), rows, [], [])) == []
    assert list(doubts(new_state("m", config), rows[2:5], [], [])) == []
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump({"models": {"m": river("tree.HoeffdingTreeClassifier")}}))
    lines = [json.dumps({"x": {"a": i % 7, "c": "NA" if i % 5 == 4 else i % 3}, "y": i % 2}) for i in range(40)]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    result = CliRunner().invoke(cli, ["check", "--offline", "-c", str(path), "--sample", str(tmp_path / "data.jsonl")])
    assert "feature 'c' has 32 numbers and 8 texts" in " ".join(result.output.split())


def test_a_file_that_knows_numbers_in_place_of_labels_is_told_how_to_name_them(tmp_path: Path) -> None:
    rows = [[i % 7 - 3, i % 5] for i in range(35)]
    content = pickle.dumps(LogisticRegression().fit(rows, [int(a > 0) for a, _ in rows]))
    (tmp_path / "m.pkl").write_bytes(content)
    (tmp_path / "m.csv").write_text(
        "a,b,y\n" + "".join(f"{a},{b},{'yes' if a > 0 else 'no'}\n" for a, b in rows), encoding="utf-8"
    )

    def checked(**file: Any) -> Result:
        model = {"file": "m.pkl", "sha256": hashlib.sha256(content).hexdigest(), "features": ["a", "b"], **file}
        config = {"artefacts": {"directory": str(tmp_path)}, "models": {"m": {"model": model, "learn": False}}}
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        arguments = ("-c", str(tmp_path / "c.yaml"), "--sample", str(tmp_path / "m.csv"), "--offline")
        return CliRunner().invoke(cli, ["check", *arguments])

    refused = checked()
    assert refused.exit_code == 2
    assert "or name those in the order of its numbers: model: {file: m.pkl, …, classes: [LABEL, …]}" in refused.output
    works = checked(classes=["no", "yes"])
    assert works.exit_code == 0, works.output
    assert "'yes' 0." in works.output


@pytest.mark.parametrize(("window_size", "is_doubtful"), [(250, True), (10, False)])
def test_a_detector_that_does_not_score_yet_is_remarked(tmp_path: Path, window_size: int, is_doubtful: bool) -> None:
    detector = {"class": DETECTOR["class"], "params": {"n_trees": 3, "window_size": window_size, "seed": 1}}
    result = invoke(tmp_path, {"model": [{"class": "river.preprocessing.MinMaxScaler"}, detector]})
    assert result.exit_code == 0, result.output
    assert ("CAUTION     all scores are the same, so no feature adds" in result.output) == is_doubtful
    assert ("and here are 40; `attributary replay FILE`" in result.output) == is_doubtful
