"""The wheel built from the source distribution holds every module, the dashboards and the page, and nothing else."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import hatch_build
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("agents/attributary_agents", "topics/attributary_topics", "explainers/attributary_explainers")
HATCHLING = [sys.executable, "-m", "hatchling", "build"]


def _expected() -> Iterator[str]:
    for package in PACKAGES:
        folder = ROOT / package
        yield f"{folder.name}/py.typed"
        for pattern in ("*.py", "*.pxd"):
            yield from (str(path.relative_to(folder.parent)) for path in folder.rglob(pattern))
    agents = ROOT / "agents"
    monitoring = agents / "attributary_agents" / "monitoring"
    files = [
        path for folder in ("grafana", "prometheus") for path in (monitoring / folder).rglob("*") if path.is_file()
    ]
    data = {str(path.relative_to(agents)) for path in files}
    data |= {"attributary_agents/planning/capacity.json", "attributary_agents/contracts/records.yaml"}
    assert {Path(name).suffix for name in data} == {".json", ".yaml", ".yml"}
    yield from data
    page = agents / "attributary_agents" / "serve" / "static"
    yield from (str(path.relative_to(agents)) for path in page.rglob("*") if path.is_file())


def _wheel(source: Path, folder: Path, **environment: str) -> tuple[str, set[str]]:
    """Build the wheel: its name, and what it holds beside its metadata."""
    command = [*HATCHLING, "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=os.environ | environment)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return wheel.name, {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the source distribution holds."""
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([*HATCHLING, "-t", "sdist", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "src", filter="data")
    (source,) = (folder / "src").iterdir()
    assert not list(source.rglob("*.so"))
    return source


@pytest.mark.long
@pytest.mark.timeout(900)  # it compiles the core
def test_the_wheel_from_the_sdist_is_complete_and_compiled(source: Path, tmp_path: Path) -> None:
    try:
        hatch_build.find_compiler()
    except hatch_build.NotCompiledError as reason:
        pytest.skip(str(reason))
    name, held = _wheel(source, tmp_path)
    compiled = {str(hatch_build.extension_of(module, Path())) for module in hatch_build.modules()}
    assert compiled
    assert held == {*_expected(), *compiled}
    assert not name.endswith("none-any.whl")
    assert not list(source.glob("explainers/**/*.so")), "an extension beside the sources would win over them"


@pytest.mark.long
def test_the_wheel_is_of_plain_python_where_there_is_no_compiler(source: Path, tmp_path: Path) -> None:
    shutil.rmtree(source / "build", ignore_errors=True)  # what was compiled before
    name, held = _wheel(source, tmp_path, CC="false")
    assert held == set(_expected())
    assert name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(tmp_path / name) as archive:
        archive.extractall(tmp_path / "installed")
    program = "import attributary_explainers; from attributary_explainers.core import is_compiled; print(is_compiled())"
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "the core is not compiled" in done.stderr
