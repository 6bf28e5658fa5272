"""`attributary warm-up`, and commands whose kernels are not compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from river.datasets import synth

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError
from attributary_explainers import compiled

pytestmark = pytest.mark.long


def test_kernels_are_compiled_once_and_the_command_says_where_they_are() -> None:
    first, second = (CliRunner().invoke(cli, ["warm-up"]) for _ in range(2))
    assert first.exit_code == second.exit_code == 0
    assert second.stdout == f"all kernels are compiled, kept in {compiled.cache_folder()}\n"
    assert first.stdout.endswith(f"kept in {compiled.cache_folder()}\n")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("is_compiling", False, "NUMBA_DISABLE_JIT is set"),
        ("cache_folder", None, "set NUMBA_CACHE_DIR to one that can"),
    ],
)
def test_where_it_is_of_no_use_it_ends_with_the_reason(
    name: str, value: Any, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, name, lambda: value)
    result = CliRunner().invoke(cli, ["warm-up"])
    assert isinstance(result.exception, AttributaryError)  # `main` makes it one line and exit code 2
    assert expected in str(result.exception)


def replayed(folder: Path, **environment: str) -> list[dict[str, Any]]:
    out = folder / ("plain" if environment else "compiled")
    argv = ["replay", str(folder / "rows.jsonl"), "--config", str(folder / "attributary.yaml"), "--out", str(out)]
    subprocess.run(
        [sys.executable, "-m", "attributary_agents.cli", *argv],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        check=True,
        capture_output=True,
    )
    return [json.loads(line) for line in (out / "importances.jsonl").read_text().splitlines()]


def assert_same(found: Any, expected: Any, where: str = "") -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name, value in expected.items():
            assert_same(found[name], value, f"{where}.{name}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), where
    else:
        assert found == expected, where


def test_a_replay_with_kernels_as_plain_python_publishes_the_same(tmp_path: Path) -> None:
    stream = synth.Agrawal(classification_function=1, seed=1).take(120)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"x": x, "y": y}) + "\n" for x, y in stream))
    explainers = {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2}}
    models = {
        "tree": {
            "model": {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 20, "delta": 0.05}},
            "explainers": explainers,
            "publish": {"every": 30},
        }
    }
    (tmp_path / "attributary.yaml").write_text(yaml.safe_dump({"models": models}))
    expected, found = replayed(tmp_path), replayed(tmp_path, NUMBA_DISABLE_JIT="1")
    assert len(expected) == len(found) == 8
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
