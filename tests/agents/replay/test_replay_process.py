"""`attributary replay` as a process: exit codes, stdout and stderr, and equal bytes whatever the hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.replay.conftest import N, write_config
from tests.agents.replay.pages import data_of

ROOT = Path(__file__).resolve().parents[3]


def attributary(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "attributary_agents.cli", *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ATTRIBUTARY_")}
    path = os.pathsep.join([str(ROOT), *(str(ROOT / part) for part in ("agents", "topics", "explainers"))])
    return subprocess.run(
        command,
        cwd=folder,
        env={**inherited, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.long
def test_a_process_writes_the_same_bytes_whatever_the_hash_seed(folder: Path) -> None:
    forest = {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}
    write_config(folder / "attributary.yaml", factory=None, model=forest)
    results = {}
    for seed in ("0", "1"):
        done = attributary(
            folder,
            *("replay", "data.csv", "--out", f"out{seed}", "--json"),
            PYTHONHASHSEED=seed,
            ATTRIBUTARY_CONFIG="attributary.yaml",
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["explained"] == N
        names = "importances.jsonl", "incidents.jsonl"
        results[seed] = [(folder / f"out{seed}" / name).read_bytes() for name in names]
    assert all(results["0"])
    assert results["0"] == results["1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["replay", "absent.csv", "-c", "attributary.yaml"], "attributary: no file at absent.csv"),
        pytest.param(
            ["replay", "data.csv", "-c", "absent.yaml"], "attributary: cannot read absent.yaml", marks=pytest.mark.long
        ),
        pytest.param(
            ["replay", "data.csv", "-c", "attributary.yaml", "--limit", "0"], "--limit", marks=pytest.mark.long
        ),
    ],
)
def test_a_user_s_fault_is_told_on_stderr_with_exit_code_2(folder: Path, arguments: list[str], expected: str) -> None:
    done = attributary(folder, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_dead_letters_are_logged_on_stderr_and_data_goes_to_stdout(folder: Path) -> None:
    good = '{"x": {"a": 1.5}, "y": true}\n'
    (folder / "data.jsonl").write_text(good * 3 + '{"x": {"a": []}, "y": true}\n')
    done = attributary(folder, "replay", "data.jsonl", "-c", "attributary.yaml", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["dead_letters"] == 1
    assert "wrong_type" in done.stderr
    assert "model m, at decode" in done.stderr


@pytest.mark.long
def test_the_page_is_written_without_the_packages_that_serve_it(folder: Path) -> None:
    """Whoever installs no extra has no FastAPI: an import of it, or of what comes with it, would end the replay."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "for name in ('fastapi', 'starlette', 'uvicorn', 'httpx', 'stamina'):\n"
        "    sys.modules[name] = None\n"
    )
    path = os.pathsep.join([str(folder), str(ROOT), *(str(ROOT / part) for part in ("agents", "topics", "explainers"))])
    done = attributary(
        folder, *("replay", "data.csv", "-c", "attributary.yaml", "--limit", "60", "--json"), PYTHONPATH=path
    )
    assert done.returncode == 0, done.stderr
    page = (folder / "out/report.html").read_text(encoding="utf-8")
    assert data_of(page)["fleet"]["models"][0]["n_observations"] == 60
    proof = subprocess.run(
        [sys.executable, "-c", "import fastapi"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=False,
    )
    assert proof.returncode == 1, "the imports are refused"
