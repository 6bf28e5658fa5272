"""`attributary replay`: files in, files out, the same bytes each time."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.cli.main import cli
from attributary_agents.cli.observations import _happened
from attributary_agents.errors import AttributaryError, ConfigError, SourceError
from attributary_agents.monitoring.metrics import CATALOGUE
from tests.agents.replay.conftest import N, write_config, write_csv

OUTPUTS = {"importances.jsonl", "incidents.jsonl", "dead-letters.jsonl", "metrics.prom", "report.html"}


def invoke(folder: Path, *arguments: str, out: str = "out") -> Result:
    common = ["replay", "-c", str(folder / "attributary.yaml"), "--out", str(folder / out)]
    return CliRunner().invoke(cli, [*common, *(arguments or (str(folder / "data.csv"),))], catch_exceptions=False)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_it_writes_every_file_and_says_what_it_did(folder: Path) -> None:
    result = invoke(folder)

    assert result.exit_code == 0
    assert {path.name for path in (folder / "out").iterdir()} == OUTPUTS
    importances = lines(folder / "out/importances.jsonl")
    assert {event["explainer"] for event in importances} == {"pfi", "sage"}
    assert {50, 100, N} <= {event["observation"] for event in importances}
    *happened, guard, summary = result.stdout.splitlines()
    incidents = lines(folder / "out/incidents.jsonl")
    assert [event["life"] for event in incidents[:2]] == ["suspected", "confirmed"]
    assert happened == [incidents[-1]["sentence"]]
    assert guard == f"loss watch: not judged yet: {N} labelled observations of 1 344"
    assert summary.startswith(f"{N} observations: {N} explained, 0 dead letters; see ")
    assert summary.endswith("report.html")


def test_what_happened_is_the_newest_revision_of_what_was_confirmed(tmp_path: Path) -> None:
    told = [("a", "suspected"), ("a", "confirmed"), ("a", "over"), ("b", "suspected"), ("b", "withdrawn")]
    told += [("c", "confirmed"), ("d", "suspected"), ("e", "suspected"), ("e", "over")]
    rows = [{"id": name, "life": life, "sentence": f"{name}\u2028 is {life}"} for name, life in told]
    (tmp_path / "incidents.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    assert list(_happened(tmp_path / "incidents.jsonl")) == ["a\u2028 is over", "c\u2028 is confirmed"]


def test_json_is_one_object_on_stdout(folder: Path) -> None:
    result = invoke(folder, str(folder / "data.csv"), "--json", "--limit", "120")
    assert json.loads(result.stdout) == {
        "observations": 120,
        "explained": 120,
        "dead_letters": 0,
        "reasons": {},
        "skipped": {"pfi": {"nothing_stored": 1}, "sage": {"nothing_stored": 1}},
        "guard": {
            "since": None,
            "waits_for": {"name": "labelled observations", "n": 120, "needed": 1344},
            "reach": None,
            "sentence": "not judged yet: 120 labelled observations of 1 344",
        },
        "out": str(folder / "out"),
    }


def test_a_tree_of_growing_numbers_is_kept_like_any_other(tmp_path: Path) -> None:
    """OrdinalEncoder gives each new value the next number, and a leaf keeps growing values as one long chain."""
    write_csv(tmp_path / "data.csv", 600)
    tree = {"class": "river.tree.HoeffdingTreeRegressor", "params": {"grace_period": 1000}}
    steps = [{"class": "river.preprocessing.OrdinalEncoder"}, tree]
    model = {"factory": None, "model": steps, "explainers": {"pfi": {"n_samples": 1}}, "loss": "squared"}
    write_config(tmp_path / "attributary.yaml", **model)
    result = invoke(tmp_path)
    assert result.stdout.splitlines()[-1].startswith("600 observations: 600 explained, 0 dead letters")


def test_a_limit_beyond_the_end_is_the_whole_file(folder: Path) -> None:
    result = invoke(folder, str(folder / "data.csv"), "--json", "--limit", str(10 * N))
    assert json.loads(result.stdout)["observations"] == N


def test_a_file_without_observations_still_gives_every_file(folder: Path) -> None:
    (folder / "empty.csv").write_text("a,b,y\n")
    result = invoke(folder, str(folder / "empty.csv"), "--json")
    assert json.loads(result.stdout)["observations"] == 0
    assert {path.name for path in (folder / "out").iterdir()} == OUTPUTS


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        (['{"x": {"a": 1.5}}'] * 3, ["dead letters: 3 missing_label", "NOTHING WAS EXPLAINED of 3 observations"]),
        (['{"x": {"a": 1.5}, "y": true}'], ["pfi skipped: 1 nothing stored", "NOTHING WAS EXPLAINED of 1"]),
    ],
)
def test_a_replay_that_explains_nothing_exits_1_with_the_reasons(
    folder: Path, lines: list[str], parts: list[str]
) -> None:
    (folder / "data.jsonl").write_text("\n".join(lines))
    result = invoke(folder, str(folder / "data.jsonl"))
    assert result.exit_code == 1
    for part in parts:
        assert part in result.stdout
    assert "NOTHING WAS EXPLAINED" in result.stdout.splitlines()[-1]
    assert invoke(folder, str(folder / "data.jsonl"), "--json").exit_code == 1


def test_a_replay_in_which_most_rows_failed_says_so_at_its_end(folder: Path) -> None:
    good, bad = '{"x": {"a": 1.5}, "y": true}', '{"x": {"a": 1e999}, "y": true}'
    (folder / "data.jsonl").write_text("\n".join([good, bad, bad, good, bad, good, bad]))
    result = invoke(folder, str(folder / "data.jsonl"))
    assert result.exit_code == 0
    *_, letters, _, _, last = result.stdout.splitlines()
    assert letters == "dead letters: 4 not_finite (a number is infinite)"
    assert last.startswith("MOST OBSERVATIONS FAILED: 4 of 7 are dead letters")


def test_bad_rows_become_dead_letters_with_reason_and_value(folder: Path) -> None:
    (folder / "data.jsonl").write_text(
        '{"x": {"a": 1.5}, "y": true}\n{"x": {"a": []}, "y": true}\n{"x": {"a": 2}}\n{"x": {"a": 1}, "y": false}\n'
    )
    result = invoke(folder, str(folder / "data.jsonl"), "--json")
    counts = json.loads(result.stdout)
    assert (counts["observations"], counts["explained"], counts["dead_letters"]) == (4, 2, 2)
    assert counts["reasons"] == {"wrong_type": 1, "missing_label": 1}
    letters = lines(folder / "out/dead-letters.jsonl")
    assert [letter["headers"]["attributary-dlq-reason"] for letter in letters] == ["wrong_type", "missing_label"]
    assert [letter["headers"]["attributary-dlq-offset"] for letter in letters] == ["1", "2"]
    assert json.loads(letters[0]["value"]) == {"x": {"a": []}, "y": True}


@pytest.mark.parametrize("value", ['{"a": 123456789012345678901234567890}', '{"a": 1, "b": "\\ud800"}'])
def test_a_value_that_cannot_be_sent_does_not_end_the_replay(folder: Path, value: str) -> None:
    (folder / "data.jsonl").write_text(f'{{"x": {{"a": 1.5}}, "y": true}}\n{{"x": {value}, "y": true}}\n')
    result = invoke(folder, str(folder / "data.jsonl"), "--json")
    counts = json.loads(result.stdout)
    assert counts["observations"] == counts["explained"] + counts["dead_letters"] == 2


def test_a_feature_with_a_line_separator_in_its_name(folder: Path) -> None:
    """JSON leaves U+2028 and U+0085 as they are; they end no line of JSON lines."""
    rows = [json.loads(json.dumps({"a": row["a"], "b\u2028\u0085": 1, "y": row["y"]})) for row in _rows(folder)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke(folder, str(folder / "data.jsonl"), "--target", "y")
    explained = [one["explanation"] for one in lines(folder / "out/incidents.jsonl") if one["explanation"] is not None]
    assert explained
    assert all("b\u2028\u0085" in one["importances"]["pfi"]["features"] for one in explained)
    assert result.exit_code == 0


def _rows(folder: Path) -> list[dict[str, Any]]:
    with (folder / "data.csv").open() as file:
        return [{"a": float(row["a"]), "y": int(row["y"])} for row in csv.DictReader(file)]


def test_the_metrics_parse_and_hold_the_whole_catalogue(folder: Path) -> None:
    invoke(folder)
    text = (folder / "out/metrics.prom").read_text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, (_, labels) in CATALOGUE.items():
        family = families[f"attributary_{name}".removesuffix("_total")]
        assert family.documentation == CATALOGUE[name][0]
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(labels)
    samples = {s.name: s.value for family in families.values() for s in family.samples if s.value}
    assert samples["attributary_model_observations_total"] == N
    assert samples["attributary_records_consumed_total"] == N
    confirmed = [one for one in lines(folder / "out/incidents.jsonl") if one["reason"] == "confirmed"]
    assert confirmed
    labels = "model_id", "what", "severity"
    expected = Counter(tuple(one[name] for name in labels) for one in confirmed)
    counted = families["attributary_incidents"].samples
    assert {tuple(one.labels[name] for name in labels): one.value for one in counted if one.value} == expected


def test_equal_runs_write_equal_bytes(folder: Path) -> None:
    invoke(folder, out="one")
    invoke(folder, out="two")
    for name in ("importances.jsonl", "incidents.jsonl", "dead-letters.jsonl", "report.html"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name
        assert name == "dead-letters.jsonl" or (folder / "one" / name).stat().st_size > 0


def test_a_second_replay_replaces_what_the_first_has_written(folder: Path) -> None:
    invoke(folder)
    invoke(folder, str(folder / "data.csv"), "--limit", "60")
    assert max(event["observation"] for event in lines(folder / "out/importances.jsonl")) <= 60


def test_one_model_of_several_is_chosen_by_name(folder: Path) -> None:
    models = yaml.safe_load((folder / "attributary.yaml").read_text())["models"]
    (folder / "attributary.yaml").write_text(yaml.safe_dump({"models": {"m": models["m"], "n": models["m"]}}))
    with pytest.raises(AttributaryError, match="--model: m, n"):
        invoke(folder)
    invoke(folder, str(folder / "data.csv"), "--model", "n", "--limit", "60")
    assert {event["model_id"] for event in lines(folder / "out/importances.jsonl")} == {"n"}
    with pytest.raises(AttributaryError, match="no model 'o' is configured; configured are m, n"):
        invoke(folder, str(folder / "data.csv"), "--model", "o")


def test_a_user_s_faults_are_their_own_errors(folder: Path) -> None:
    with pytest.raises(SourceError, match="no file at"):
        invoke(folder, "absent.csv")
    with pytest.raises(SourceError, match="no column 'label'"):
        invoke(folder, str(folder / "data.csv"), "--target", "label")
    write_config(folder / "attributary.yaml", factory="nowhere:make")
    with pytest.raises(ConfigError, match="nowhere"):
        invoke(folder)
    write_config(
        folder / "attributary.yaml", factory=None, model={"class": "river.linear_model.LinearRegression"}, loss="brier"
    )
    with pytest.raises(ConfigError, match="regressor"):
        invoke(folder)


def test_a_line_that_is_no_json_is_a_dead_letter_and_the_rest_is_explained(folder: Path) -> None:
    good = '{"x": {"a": 1.5}, "y": true}\n'
    (folder / "data.jsonl").write_text(good * 30 + "{poison\n[]\n" + good * 30)
    result = invoke(folder, str(folder / "data.jsonl"), "--json", "--model", "m")
    counts = json.loads(result.stdout)
    assert (counts["observations"], counts["explained"]) == (62, 60)
    assert counts["reasons"] == {"invalid_json": 1, "wrong_type": 1}
