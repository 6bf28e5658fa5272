"""Compile the core where there is a C compiler; where not, its modules run as plain Python.

A build hook of hatchling: `pip install .` and `pip install -e .` run it. `python hatch_build.py` compiles in place, for
who edits the core: a stale extension would win over its edited source.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension

ROOT = Path(__file__).parent
SOURCES = Path("explainers")
CORE = SOURCES / "attributary_explainers" / "core"
PLAIN = {"__init__.py", "_cython.py", "buffers.py"}
DIRECTIVES = {
    "language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False,
}  # fmt: skip
# Without -ffp-contract=off some compilers fuse a product and a sum, and the last digit differs from plain Python's.
FLAGS = [] if os.name == "nt" else ["-O2", "-g0", "-ffp-contract=off", "-Wno-unused-function"]


def compile_core() -> list[Path]:
    """Compile every module of the core beside its source; return the extensions that were made."""
    os.chdir(ROOT)
    modules = sorted(path for path in CORE.rglob("*.py") if path.name not in PLAIN)
    extensions = cythonize(
        [
            Extension(".".join(path.relative_to(SOURCES).with_suffix("").parts), [str(path)], extra_compile_args=FLAGS)
            for path in modules
        ],
        compiler_directives=DIRECTIVES,
        include_path=[str(SOURCES)],
        build_dir="build/core",
        quiet=True,
    )
    for extension in extensions:
        extension.optional = True  # no compiler is no error; cythonize does not keep it
    options = {"name": "attributary", "package_dir": {"": str(SOURCES)}, "ext_modules": extensions}
    command: Any = Distribution(options).get_command_obj("build_ext")
    command.inplace, command.parallel = True, os.cpu_count()
    command.ensure_finalized()
    command.run()
    return [path for path in map(Path, command.get_outputs()) if path.exists()]


class CompileHook(BuildHookInterface):
    """Bring the compiled core into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the core before files are collected."""
        built = compile_core()
        if built:
            build_data["pure_python"], build_data["infer_tag"] = False, True
            build_data["artifacts"] += [f"/{path.resolve().relative_to(ROOT.resolve())}" for path in built]


if __name__ == "__main__":
    for made in compile_core():
        print(made)
