"""Columns that are hardly features are left out with --drop, and named on stderr where they are not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from attributary_agents.cli.main import cli
from attributary_agents.errors import SourceError
from tests.agents.replay.conftest import write_config, write_csv

N = 300


def with_columns(folder: Path, n: int = N) -> Path:
    """Write a CSV whose row, when and code are an index, a time and an identifier; the others are features."""
    write_csv(folder / "plain.csv", n)
    head, *rows = (folder / "plain.csv").read_text().splitlines()
    rng = random.Random(1)
    lines = [f"row,when,code,price,{head}"]
    for i, row in enumerate(rows):
        lines.append(f'{i},2024-01-01T{i // 60:02}:{i % 60:02},c{rng.randrange(10**9)},"1,{i % 9}",{row}')
    path = folder / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def invoke(folder: Path, command: str, *arguments: str) -> Result:
    arguments = ("-c", str(write_config(folder / "attributary.yaml")), *arguments)
    return CliRunner().invoke(cli, [command, *arguments], catch_exceptions=False)


def said(n: int) -> list[str]:
    text = f"text with {n} different values in {n} rows: an identifier or a time? --drop"
    return [
        f"row: numbers that rise by 1 in each of {n} rows: a row number or a time? --drop row leaves it out",
        f"when: {text} when leaves it out",
        f"code: {text} code leaves it out",
        "price: numbers with a decimal comma are read as text: write them with a point",
    ]


def told(result: Result) -> list[str]:
    """Return the lines on stderr that are about columns; others, such as what is compiled, may come beside them."""
    return [line for line in result.stderr.splitlines() if "leaves it out" in line or "decimal comma" in line]


def test_replay_leaves_columns_out(tmp_path: Path) -> None:
    path = with_columns(tmp_path)
    result = invoke(
        tmp_path, "replay", str(path), "--drop", "row,when", "--drop", "code,price", "--out", f"{tmp_path}/out"
    )

    assert (result.exit_code, told(result)) == (0, [])
    events = [json.loads(line) for line in (tmp_path / "out/importances.jsonl").read_text().splitlines()]
    assert events
    assert {name for event in events for name in event["features"]} == {"a", "b"}


def test_replay_and_check_name_identifiers_and_times_once(tmp_path: Path) -> None:
    path = with_columns(tmp_path)
    replayed = invoke(tmp_path, "replay", str(path), "--limit", "60", "--out", f"{tmp_path}/out")
    checked = invoke(tmp_path, "check", "--offline", "--sample", str(path))
    assert told(replayed) == said(N)
    assert told(checked) == said(N)


def test_check_leaves_columns_out(tmp_path: Path) -> None:
    path = with_columns(tmp_path)
    result = invoke(tmp_path, "check", "--offline", "--sample", str(path), "--drop", "row,when,code,price")
    assert (result.exit_code, told(result)) == (0, [])


@pytest.mark.parametrize("command", ["produce", "replay", "demo"])
def test_a_column_that_is_not_there_is_a_question_what_was_meant(tmp_path: Path, command: str) -> None:
    path = with_columns(tmp_path, 10)
    arguments = (
        ("--data", str(path)) if command == "demo" else ("-c", f"{write_config(tmp_path / 'a.yaml')}", str(path))
    )
    with pytest.raises(SourceError, match="no column 'whn' to drop: did you mean 'when'"):
        CliRunner().invoke(cli, [command, *arguments, "--drop", "whn"], catch_exceptions=False)


def test_features_are_not_called_identifiers(tmp_path: Path) -> None:
    rng = random.Random(2)
    rows = (f"{rng.random()},c{rng.randrange(100)},{i // 2},{i**2},,{i % 2}" for i in range(N))
    path = tmp_path / "data.csv"
    path.write_text("a,city,step,square,empty,y\n" + "\n".join(rows) + "\n")
    assert told(invoke(tmp_path, "check", "--offline", "--sample", str(path))) == []


def test_a_feature_that_is_not_declared_has_a_reason_of_its_own(tmp_path: Path) -> None:
    config = write_config(tmp_path / "attributary.yaml", features={"a": "number"})
    path = write_csv(tmp_path / "data.csv", 20)
    common = ["replay", "-c", str(config), str(path), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, common)
    assert "20 undeclared_feature (a feature is not declared: declare it below features, or" in result.stdout
    letter = json.loads((tmp_path / "out/dead-letters.jsonl").read_text().splitlines()[0])["headers"]
    assert letter["attributary-dlq-message"].startswith("x.b: expected no such feature (declare it below features, or")
    dropped = CliRunner().invoke(cli, [*common, "--drop", "b"], catch_exceptions=False)
    assert "20 observations: 20 explained, 0 dead letters" in dropped.output
