"""`pip install attributary` is the library alone: it needs little, it imports no more, and its command says so."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from benchmarks.install import LIBRARY, PLAIN, build_wheel, extras, make_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attributary_agents import plain_install

from .needed import needed

ROOT = Path(__file__).resolve().parents[2]
LIBRARY_FOLDERS = (ROOT / "explainers" / "attributary_explainers", ROOT / "topics" / "attributary_topics")
ASKED_FOR = {
    "cython": "of the core, where it is compiled; elsewhere `core/_cython.py` stands in for it",
    "matplotlib": "plots, which name the extra `plot`",
    "pandas": "to_frame(), which says how to install it",
    "rich": "the bar of explain_many(), which is left out without it",
    "sklearn": "imported only for a model of it",
}
"""What the library imports beyond the plain install, and what becomes of that where it is not there."""
PROGRAM = """
import importlib, pkgutil
import attributary_explainers, attributary_topics
from attributary_explainers import *
from attributary_agents.replay.history import history_from_events  # a page tells library users of it
for package in (attributary_explainers, attributary_topics):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
print("all modules")
"""


def _project() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Each package that a module imports, and whether it cannot be imported itself without it."""
    tree = ast.parse(path.read_text())
    late = {
        id(node)
        for part in ast.walk(tree)
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(part, ast.If) and ast.unparse(part.test) in ("TYPE_CHECKING", "cython.compiled"))
        or (isinstance(part, ast.Try) and "except ImportError" in ast.unparse(part))
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for name in names:
            yield name.partition(".")[0], id(node) not in late


def test_the_plain_install_is_small_and_has_no_kafka_client() -> None:
    plain = needed()
    assert {"attributary", "numpy", "scipy", "river"} <= plain
    assert len(plain) <= 10, sorted(plain)
    assert not {"aiokafka", "faust-streaming", "mode-streaming", "pydantic", "click", "aiohttp"} & plain
    assert {"aiokafka", "faust-streaming", "pydantic", "click"} <= needed("worker")


def test_what_only_the_worker_does_brings_the_worker() -> None:
    project = _project()["optional-dependencies"]
    assert isinstance(project, dict)
    assert set(project) == set(extras())
    worker = needed("worker")
    for extra in extras():
        assert (needed(extra) >= worker) == (extra not in LIBRARY), extra


@pytest.mark.parametrize("folder", LIBRARY_FOLDERS, ids=lambda folder: folder.name)
def test_the_library_imports_what_the_plain_install_has(folder: Path) -> None:
    plain, brings = needed(), packages_distributions()
    ours = {folder.name for folder in LIBRARY_FOLDERS}
    seen: set[str] = set()
    for path in folder.rglob("*.py"):
        for name, is_at_once in _imports(path):
            if name in sys.stdlib_module_names or name in ours:
                continue
            seen.add(name)
            is_there = {canonicalize_name(one) for one in brings.get(name, ())} & plain
            assert is_there or (name in ASKED_FOR and not is_at_once), f"{path.relative_to(ROOT)} imports {name}"
    assert seen, "nothing was looked at"


def test_the_command_asks_for_all_that_the_worker_brings() -> None:
    brings = packages_distributions()
    asked = {canonicalize_name(one) for name in plain_install.WORKER_MODULES for one in brings[name]}
    project = _project()["optional-dependencies"]
    assert isinstance(project, dict)
    assert {canonicalize_name(Requirement(line).name) for line in project["worker"]} <= asked
    assert not asked & needed(), "what is always there says nothing"


@pytest.mark.parametrize("missing", plain_install.WORKER_MODULES)
def test_without_one_of_them_the_command_is_one_line_and_2(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = plain_install.find_spec
    monkeypatch.delitem(sys.modules, missing, raising=False)  # what another test has imported
    monkeypatch.setattr(plain_install, "find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(SystemExit) as ended:
        plain_install.end_without_worker()
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", "the command needs the worker: pip install 'attributary[worker]'\n")


def test_with_all_of_them_the_command_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    plain_install.end_without_worker()
    assert capsys.readouterr() == ("", "")


def test_the_page_names_every_extra_with_its_packages() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    told = {
        name or PLAIN: int(n)
        for name, n in re.findall(r"^│ attributary(?:\[([a-z-]+)\])? +│ +(\d+) │", page, flags=re.MULTILINE)
    }
    assert set(told) == {PLAIN, *extras()}, "python -m benchmarks.install"
    explained = re.findall(r"^\| `attributary(?:\[([a-z-]+)\])?` \|", page, flags=re.MULTILINE)
    assert sorted(explained) == sorted(told)
    for extra in (PLAIN, "worker", "serve", "demo", "plot", "avro"):  # all of these are installed here
        assert abs(len(needed(extra)) - told[extra]) <= 4, extra


def test_every_extra_that_is_named_is_there() -> None:
    named: dict[str, str] = {}
    for folder in ("agents", "topics", "explainers", "docs", "benchmarks", "deploy", "README.md", "CHANGELOG.md"):
        for path in [ROOT / folder, *(ROOT / folder).rglob("*")]:
            if path.suffix in (".py", ".md", ".sh", ".yaml"):
                for found in re.findall(r"attributary\[([a-z,-]+)\]", path.read_text()):
                    named |= dict.fromkeys(found.split(","), str(path.relative_to(ROOT)))
    assert {name: path for name, path in named.items() if name not in extras()} == {}
    assert named.keys() >= {"worker", "serve", "plot", "avro", "sklearn"}


@pytest.mark.long  # it installs into a new environment, for which the core is compiled
@pytest.mark.timeout(900)
def test_the_wheel_alone_is_the_library(tmp_path: Path) -> None:
    bin_folder = make_environment(tmp_path / "environment", build_wheel(tmp_path), PLAIN)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    (packages,) = (tmp_path / "environment").glob("lib/*/site-packages")
    installed = {canonicalize_name(path.name.split("-")[0]) for path in packages.glob("*.dist-info")}
    assert installed == needed()
    everything = run(str(bin_folder / "python"), "-c", PROGRAM)
    assert everything.stdout == "all modules\n", everything.stderr
    readme = run(str(bin_folder / "python"), "-m", "doctest", str(ROOT / "README.md"))
    assert (readme.returncode, readme.stdout) == (0, ""), readme.stdout + readme.stderr
    compiled = run(str(bin_folder / "python"), "-c", "from attributary_explainers.core import *; print(is_compiled())")
    assert (compiled.stdout, compiled.stderr) == ("True\n", ""), "the core is compiled where there is a compiler"
    for command in (
        [str(bin_folder / "attributary"), "run"],
        [str(bin_folder / "python"), "-m", "attributary_agents.cli"],
    ):
        done = run(*command)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{plain_install.NEEDS_WORKER}\n")
