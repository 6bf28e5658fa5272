"""What `make demo` and `make venv` install, and what they show while they do it."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .needed import needed

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()

PIP = """\
Collecting numpy>=2 (from attributary)
  Downloading numpy-2.4.1-cp311-manylinux_2_27_x86_64.whl.metadata (6.6 kB)
Collecting tiny
  Downloading tiny-1.0-py3-none-any.whl (812 bytes)
  Downloading numpy-2.4.1-cp311-manylinux_2_27_x86_64.whl (16.9 MB)
  Using cached scipy-1.17.0-cp311-manylinux_2_27_x86_64.whl (35.3 MB)
Installing collected packages: tiny, numpy, scipy
Successfully installed numpy-2.4.1 scipy-1.17.0 tiny-1.0
"""


@pytest.fixture
def installing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("installing", ROOT / "deploy" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _rule(target: str) -> str:
    found = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    assert found, target
    return found[0]


def test_the_demonstration_needs_no_development_tools_and_says_at_once_what_comes() -> None:
    assert "--group" not in _rule(".venv/.demo")
    assert "--group dev" in _rule(".venv/.installed")
    assert ".venv/.demo" in re.findall(r"^demo: (.*) ##", MAKEFILE, flags=re.MULTILINE)[0]
    for target in (".venv/.demo", ".venv/.installed"):
        recipe = [line for line in _rule(target).splitlines() if line.startswith("\t@")]
        assert recipe[0].startswith("\t@echo"), "the first line that is run says what is installed"


def test_the_number_of_packages_that_is_announced_is_that_of_what_is_needed() -> None:
    announced = re.search(r"some (\d+) packages", _rule(".venv/.demo"))
    assert announced
    assert abs(len(needed("demo")) - int(announced[1])) <= 8, sorted(needed("demo"))


def test_progress_counts_the_files_and_their_size(installing: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    progress = installing.Progress(is_terminal=False)
    for line in PIP.splitlines(keepends=True):
        progress.read(line)
    assert progress.n_packages == 3, "what only describes a package is none"
    assert progress.megabytes == pytest.approx(52.2, abs=0.01)
    said = capsys.readouterr().out.splitlines()
    assert [re.sub(r"^ *\d+ s  ", "", line) for line in said] == [
        "2 files, 17 MB: numpy, 16.9 MB",
        "3 files, 52 MB: scipy, 35.3 MB",
        "3 files, 52 MB: unpacking 3 packages",
    ]


def test_a_terminal_has_one_line_that_is_drawn_again(
    installing: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = installing.Progress(is_terminal=True)
    progress.tick()
    for line in PIP.splitlines(keepends=True):
        progress.read(line)
    progress.tick()
    progress.clear()
    shown = capsys.readouterr().out
    assert "\n" not in shown
    assert "reading what is needed" in shown
    assert "unpacking 3 packages" in shown
    assert shown.endswith(" \r")


def test_what_cannot_be_installed_is_told_with_the_words_of_pip(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "deploy" / "install.py"), "--no-index", str(tmp_path / "nothing.whl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nothing.whl" in done.stderr
    assert "pip could not install the packages" in done.stderr
