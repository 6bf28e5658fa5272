"""Secrets leave the environment once they have been read: seen in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRETS = {
    "ATTRIBUTARY_KAFKA__SECURITY__PASSWORD": "canary-one",
    "ATTRIBUTARY_KAFKA__SECURITY__KEY_PASSWORD": "canary-two",
    "ATTRIBUTARY_STATE__KEY": "canary-three-that-is-long-enough-to-be-a-key",
    "ATTRIBUTARY_STATE__URL": "s3://user:canary-four@host/bucket",
}
OTHERS = {"ATTRIBUTARY_KAFKA__GROUP": "shown", "ATTRIBUTARY_KAFKA__SECURITY__USERNAME": "named"}

CODE = """
import os, subprocess, sys
from attributary_agents.config.environment import forget_secrets
from attributary_agents.config.settings import Config
forget_secrets()
print(sorted(name for name in os.environ if name.startswith("ATTRIBUTARY_")))
sys.stdout.flush()
child = "import os; print(sorted(os.environ.items()))"
subprocess.run([sys.executable, "-c", child], check=True)
if sys.platform == "linux":
    print(open("/proc/self/environ", "rb").read())
"""


@pytest.mark.long
def test_nothing_of_a_secret_is_left_for_this_process_or_its_children() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ATTRIBUTARY_")} | SECRETS | OTHERS
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
    assert "canary" not in done.stdout
    assert done.stdout.splitlines()[0] == str(sorted(OTHERS))
    if sys.platform == "linux":
        assert "ATTRIBUTARY_KAFKA__GROUP=shown" in done.stdout.splitlines()[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="only there are other processes' environments files")
def test_commands_forget_what_they_have_read(tmp_path: Path) -> None:
    (tmp_path / "attributary.yaml").write_text("models: {m: {model: {class: river.naive_bayes.GaussianNB}}}\n")
    code = (
        "from attributary_agents.cli.main import cli; cli(['config', 'show'], standalone_mode=False);"
        "print(open('/proc/self/environ', 'rb').read())"
    )
    env = {**os.environ, "ATTRIBUTARY_CONFIG": str(tmp_path / "attributary.yaml"), **SECRETS}
    env.pop("ATTRIBUTARY_KAFKA__SECURITY__PASSWORD")
    env.pop("ATTRIBUTARY_KAFKA__SECURITY__KEY_PASSWORD")
    env.pop("ATTRIBUTARY_STATE__URL")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "**" in done.stdout, "it has been read"
    assert "canary" not in done.stdout
