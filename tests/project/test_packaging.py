"""The wheel built from the source distribution holds every module, the dashboards and the page, and nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("agents/attributary_agents", "topics/attributary_topics", "explainers/attributary_explainers")


@pytest.mark.long
def test_the_wheel_from_the_sdist_is_complete(tmp_path: Path) -> None:
    hatchling = [sys.executable, "-m", "hatchling", "build"]
    subprocess.run([*hatchling, "-t", "sdist", "-d", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "src", filter="data")
    (source,) = (tmp_path / "src").iterdir()
    subprocess.run([*hatchling, "-t", "wheel", "-d", str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected: set[str] = set()
    for package in PACKAGES:
        folder = ROOT / package
        expected |= {str(path.relative_to(folder.parent)) for path in folder.rglob("*.py")} | {
            f"{folder.name}/py.typed"
        }
    agents = ROOT / "agents"
    dashboards = agents / "attributary_agents" / "monitoring" / "grafana"
    data = {str(path.relative_to(agents)) for path in dashboards.rglob("*") if path.is_file()}
    data.add("attributary_agents/planning/capacity.json")
    assert {Path(name).suffix for name in data} == {".json", ".yaml"}
    page = agents / "attributary_agents" / "serve" / "static"
    data |= {str(path.relative_to(agents)) for path in page.rglob("*") if path.is_file()}
    assert {name for name in names if ".dist-info/" not in name} == expected | data
