"""`attributary plan`, from the configuration to what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError

LOGISTIC = {"class": "river.linear_model.LogisticRegression"}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def run(*arguments: str, **model: Any) -> Result:
        path = tmp_path / "attributary.yaml"
        path.write_text(yaml.safe_dump({"models": {"m": {"model": LOGISTIC, **model}}}))
        return CliRunner().invoke(cli, ["plan", "-c", str(path), "--seconds", "0.1", *arguments])

    return run


def test_a_plan_says_what_it_needs_and_what_it_assumes(run: Any) -> None:
    result = run("--rate", "50", "--features", "4")
    assert result.exit_code == 0, result.output
    for word in (
        "one record",
        "workers       1",
        "partitions    4",
        "latency",
        "changelog",
        "after a crash",
        "assumes:",
    ):
        assert word in result.output
    assert "made-up rows" in result.output


def test_json_has_the_plan_and_what_was_timed(run: Any, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b,label\n" + "".join(f"{n},{n % 3},{n % 2}\n" for n in range(50)))
    result = run("--rate", "50", "--models", "1000", "--sample", str(rows), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    plan = found["plan"]
    assert plan["carried"]["workers"] == 1
    assert plan["record_us"] >= plan["step_us"] > 0.0
    assert plan["stored_bytes"] == 1000 * found["timed"]["m"]["state_bytes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "50"], "nobody says which features m has"),
        (["--rate", "1e9", "--features", "3"], "no number of workers carries"),
        (["--model", "n", "--features", "3"], "no model 'n' is configured"),
    ],
)
def test_faults_say_what_to_do(run: Any, arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, AttributaryError)
    assert said in str(result.exception)


@pytest.mark.parametrize("option", ["--rate", "--busy", "--seconds"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_a_wrong_option(run: Any, option: str, value: str) -> None:
    result = run("--features", "3", option, value)
    assert result.exit_code == 2, result.output
    assert f"Invalid value for '{option}'" in result.output
