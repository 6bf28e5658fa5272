"""A factory in a module beside the configuration or in the working directory, without PYTHONPATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

MODULE = """
from river import tree

class Mine(tree.HoeffdingTreeClassifier):
    pass

def build(depth=None):
    return Mine(max_depth=depth)
"""

RELOAD = """
import sys
from click.testing import CliRunner
from attributary_agents.cli.main import cli
from attributary_explainers import load_model

assert CliRunner().invoke(cli, ["config", "show", "-c", sys.argv[1]]).exit_code == 0
print(type(load_model(open(sys.argv[2], "rb").read())).__module__)
"""

STORE = """
import sys
from pathlib import Path
sys.path.append(sys.argv[3])
from attributary_agents.config.reading import load_config
from attributary_agents.models.factory import make_model
from attributary_explainers import dump_model

model = make_model(load_config(Path(sys.argv[1])).models["credit"])
assert model.max_depth == 6
Path(sys.argv[2]).write_bytes(dump_model(model))
"""


def in_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=os.environ, timeout=120
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mymodels.py").write_text(MODULE)
    (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(50)))
    model = {"model": {"factory": "mymodels:build", "params": {"depth": 6}}}
    (home / "attributary.yaml").write_text(yaml.safe_dump({"models": {"credit": model}}))
    return home / "attributary.yaml"


@pytest.mark.parametrize("beside", [True, False], ids=["beside the configuration", "in the working directory"])
def test_the_module_is_found(beside: bool, config: Path, tmp_path: Path) -> None:
    if not beside:
        (config.parent / "mymodels.py").rename(tmp_path / "mymodels.py")
    command = ["-P", "-m", "attributary_agents.cli", "replay", "rows.csv", "-c", str(config), "--json"]
    done = in_process(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["explained"] > 0


@pytest.mark.long
def test_a_stored_model_is_read_again_in_another_process(config: Path, tmp_path: Path) -> None:
    stored = str(tmp_path / "model.bin")
    assert in_process(tmp_path, "-P", "-c", STORE, str(config), stored, str(config.parent)).returncode == 0
    done = in_process(tmp_path, "-P", "-c", RELOAD, str(config), stored)
    assert done.stdout.strip() == "mymodels", done.stderr


@pytest.mark.long
def test_what_is_installed_cannot_be_replaced_by_a_file_beside_the_configuration(config: Path, tmp_path: Path) -> None:
    (config.parent / "river.py").write_text("raise RuntimeError('the wrong river')\n")
    done = in_process(tmp_path, "-P", "-m", "attributary_agents.cli", "replay", "rows.csv", "-c", str(config))
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_deployment_may_name_it_only_where_control_allows_it(config: Path, tmp_path: Path) -> None:
    arguments = ["--version", "2", "--factory", "mymodels:build", "--params", '{"depth": 3}', "--dry-run"]
    command = ["-P", "-m", "attributary_agents.cli", "models", "deploy", "credit", "-c", str(config), *arguments]
    refused = in_process(tmp_path, *command)
    assert refused.returncode == 2
    assert "only functions that control.allowed names as module:function" in refused.stderr

    allowed = {**yaml.safe_load(config.read_text()), "control": {"allowed": ["mymodels:build"]}}
    config.write_text(yaml.safe_dump(allowed))
    accepted = in_process(tmp_path, *command, "--json")
    assert accepted.returncode == 0, accepted.stderr
    assert json.loads(accepted.stdout)["params"] == {"depth": 3}
