"""The page about the rehearsal: its files are written, its commands run, and what they print is what it shows."""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from attributary_agents.cli.main import cli

PAGE = Path(__file__).resolve().parents[3] / "docs" / "check.md"

_FILE = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"^```console\n\$ attributary (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def without_measurements(text: str) -> str:
    """Times, and sizes that depend on the versions of what is pickled."""
    return re.sub(r"\d[\d.e+]* (ms|µs|kB)\b", r"# \1", text)


def test_the_page_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, content in _FILE.findall(page):
        Path(name).write_text(content)
    runpy.run_path("make_trips.py")
    monkeypatch.delitem(sys.modules, "trips", raising=False)
    printed = {command: CliRunner().invoke(cli, command.split()).output for command, _ in _RUN.findall(page)}
    assert len(printed) == 3

    made = _RUN.sub(lambda block: f"```console\n$ attributary {block[1]}\n{printed[block[1]]}```", page)
    if os.environ.get("UPDATE_DOCS") and without_measurements(made) != without_measurements(page):
        PAGE.write_text(made)
        return
    assert without_measurements(made) == without_measurements(page)
