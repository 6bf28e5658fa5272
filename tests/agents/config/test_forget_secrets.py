"""Secrets leave the environment once they have been read: seen in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SECRETS = {
    "ATTRIBUTARY_KAFKA__SECURITY__PASSWORD": "canary-one",
    "ATTRIBUTARY_KAFKA__SECURITY__KEY_PASSWORD": "canary-two",
    "ATTRIBUTARY_STATE__KEY": "canary-three-that-is-long-enough-to-be-a-key",
    "ATTRIBUTARY_STATE__URL": "s3://user:canary-four@host/bucket",
}
OTHERS = {"ATTRIBUTARY_KAFKA__GROUP": "shown", "ATTRIBUTARY_KAFKA__SECURITY__USERNAME": "named"}
CHILD = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', 'import os; print(os.environ)'], check=True)"
FORGET = "from attributary_agents.config.environment import forget_secrets; forget_secrets();"


def _printed(code: str, **variables: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ATTRIBUTARY_")}
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, env=inherited | variables, capture_output=True, text=True, check=True).stdout


def test_a_child_inherits_the_settings_that_are_no_secrets() -> None:
    found = _printed(FORGET + CHILD, **SECRETS, **OTHERS)
    assert "canary" not in found
    assert all(f"'{name}': '{value}'" in found for name, value in OTHERS.items())


def test_commands_forget_what_they_have_read(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text("models: {m: {model: {class: river.naive_bayes.GaussianNB}}}\n")
    code = "from attributary_agents.cli.main import cli; cli(['config', 'show'], standalone_mode=False);" + CHILD
    found = _printed(code, ATTRIBUTARY_CONFIG=str(path), ATTRIBUTARY_STATE__KEY=SECRETS["ATTRIBUTARY_STATE__KEY"])
    assert "**" in found, "it has been read"
    assert "ATTRIBUTARY_CONFIG" in found
    assert "canary" not in found
