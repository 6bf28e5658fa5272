"""Measure what each extra installs: packages, size, and whether its command runs.

    python -m benchmarks.install                       # every extra, each in a new virtual environment: a minute each
    python -m benchmarks.install --extras worker,serve # the plain install and these
    python -m benchmarks.install --only plot           # this one, without the plain install

The wheel of this checkout is built, and pip installs it as it would a user's, from the registry that it knows. Size is
that of all files of the environment, compiled Python with it, in megabytes (10⁶ bytes); Python itself and pip are left
out. The environments are removed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parents[1]
PLAIN = ""
"""The install without an extra."""
LIBRARY = (PLAIN, "plot", "onnx")
"""Those that are the library without the worker."""
SHOWN = 3
"""Of how many packages the size is told."""

out = Console(width=120)


class Installed(NamedTuple):
    """What an environment holds."""

    name: str
    packages: dict[str, float]
    """The size of each, in megabytes."""
    megabytes: float
    seconds: float
    """The time that pip took, which has most packages in its cache."""
    command: str
    """What `attributary --version` prints."""
    imports_library: bool

    @property
    def is_right(self) -> bool:
        """Whether the library is there, and the command where it should be."""
        runs = self.command.startswith("attributary, version ")
        return self.imports_library and runs == (self.name not in LIBRARY)


def extras() -> list[str]:
    """Return the names of all extras."""
    return list(tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def build_wheel(folder: Path, source: Path = HERE) -> Path:
    """Build the wheel of a checkout into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("attributary-*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path, extra: str = PLAIN) -> Path:
    """Install the wheel with an extra into a new virtual environment; return its folder of commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    bin_folder = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(bin_folder / "python"), "--disable-pip-version-check"]
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([*pip, "install", "--quiet", wanted], check=True)
    return bin_folder


def measure(wheel: Path, extra: str) -> Installed:
    """Install an extra, measure it, and remove it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "environment"
        began = time.monotonic()
        bin_folder = make_environment(folder, wheel, extra)
        seconds = time.monotonic() - began
        (packages,) = folder.glob("lib/*/site-packages")
        return Installed(
            extra,
            {one.metadata["Name"]: _size(one) for one in distributions(path=[str(packages)])},
            sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6,
            seconds,
            _said([str(bin_folder / "attributary"), "--version"], folder),
            not _said([str(bin_folder / "python"), "-c", "from attributary_explainers import *"], folder),
        )


def _said(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    return (done.stdout + done.stderr).strip()


def _size(one: Distribution) -> float:
    paths = [Path(str(one.locate_file(file))) for file in one.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def table(found: Sequence[Installed]) -> Table:
    """Return what was measured, with what an extra adds to the plain install where that was measured, too."""
    plain = next((one for one in found if one.name == PLAIN), None)
    bases = [one for one in found if one.name in (PLAIN, "worker")]
    shown = Table(title="What is installed", title_justify="left")
    for column in ("pip install", "packages", "MB", "adds", "command"):
        shown.add_column(column, justify="right" if column in ("packages", "MB", "adds") else "left")
    shown.add_column("largest that come with it, MB")
    for one in found:
        beside = f"{one.megabytes - plain.megabytes:.0f}" if plain is not None and one is not plain else "–"
        largest = sorted(one.packages.items(), key=lambda item: -item[1])
        for base in bases:
            if base is not one and base.packages.keys() <= one.packages.keys():
                largest = [item for item in largest if item[0] not in base.packages]
        shown.add_row(
            "attributary" + (f"\\[{one.name}]" if one.name else ""),
            str(len(one.packages)),
            f"{one.megabytes:.0f}",
            beside,
            "yes" if one.command.startswith("attributary, version") else "no",
            ", ".join(f"{name} {size:.0f}" for name, size in largest[:SHOWN] if size >= 0.5),
        )
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """Install, measure, print; return 1 where an install is not what it is to be."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.install",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = extras()
    parser.add_argument("--extras", metavar="A,B", help=f"after the plain install; default: {','.join(known)}")
    parser.add_argument("--only", metavar="A,B", help="these, and not the plain install")
    args = parser.parse_args(argv)
    asked = args.only or args.extras
    names = list(known) if asked is None else [name for name in asked.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no extra {unknown[0]!r}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as folder:
        found = list(_measured(build_wheel(Path(folder)), names if args.only else [PLAIN, *names]))
    out.print(table(found))
    for one in found:
        if not one.is_right:
            out.print(f"WRONG: attributary[{one.name}]: the command says {one.command!r}", markup=False)
    return 0 if all(one.is_right for one in found) else 1


def _measured(wheel: Path, names: Sequence[str]) -> Iterator[Installed]:
    for name in names:
        one = measure(wheel, name)
        held = f"{len(one.packages)} packages, {one.megabytes:.0f} MB"  # told at once: the table comes at the end
        print(f"{name or 'plain'}: {held}, after {one.seconds:.0f} s", file=sys.stderr)
        yield one


if __name__ == "__main__":
    sys.exit(main())
