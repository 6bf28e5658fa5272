"""Compile the core where there is a C compiler; where not, its modules run as plain Python.

A build hook of hatchling: `pip install .` and `pip install -e .` run it. `python hatch_build.py` compiles in place what
has changed, for who edits the core: a stale extension would win over its edited source.

All modules are compiled or none is, so `is_compiled` speaks for all of them. Heeded are the variables `CC`, `CFLAGS`,
`LDFLAGS`, `ARCHFLAGS`, and `ATTRIBUTARY_ABI3=1`, which builds one wheel for this Python and later ones.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCES = Path("explainers")
CORE = SOURCES / "attributary_explainers" / "core"
BUILD = Path("build", "core")
PLAIN = {"__init__.py", "_cython.py", "buffers.py"}
CYTHON = ["-3", "-Xboundscheck=False", "-Xwraparound=False", "-Xcdivision=True", "-Xinitializedcheck=False"]
# Without -ffp-contract=off some compilers fuse a product and a sum, and the last digit differs from plain Python's.
# Integers overflow as Python's own C has it; zig would check for that, and for more, at run time.
FLAGS = [
    "-O3", "-g0", "-fPIC", "-DNDEBUG", "-fwrapv", "-ffp-contract=off", "-fno-sanitize=undefined", "-w",
]  # fmt: skip
LINK = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared", "-Wl,-s"]
# The oldest Python whose limited interface has buffers: memoryviews need them.
ABI3 = ["-DCYTHON_LIMITED_API=1", "-DPy_LIMITED_API=0x030B0000"]
WHAT_TO_DO = "install gcc, clang or `pip install ziglang`, then install again"


class NotCompiledError(Exception):
    """The core could not be compiled: the message says why, in one line."""


class CompilationError(NotCompiledError):
    """Cython or the compiler refused a module, which is a mistake of ours or of theirs."""


def modules() -> list[Path]:
    """Return the modules that are compiled, relative to the root."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / CORE).rglob("*.py") if path.name not in PLAIN)


def key(module: Path) -> bytes:
    """Return what an extension holds where it was compiled from just this source, in this way."""
    told = hashlib.sha256(f"Cython {version_of('Cython')}".encode())
    for path in (ROOT / module, *sorted((ROOT / CORE).rglob("*.pxd")), ROOT / "hatch_build.py"):
        told.update(path.read_bytes())
    return f"attributary core {told.hexdigest()}".encode()


def extension_of(module: Path, folder: Path = SOURCES, *, abi3: bool = False) -> Path:
    """Return where the extension of a module is: in place, or below another folder than that of the sources."""
    suffix = ".abi3.so" if abi3 else sysconfig.get_config_var("EXT_SUFFIX")
    return folder / module.relative_to(SOURCES).with_suffix(suffix)


def is_current(module: Path, extension: Path) -> bool:
    """Return whether an extension was compiled from the source as it is."""
    return (ROOT / extension).exists() and key(module) in (ROOT / extension).read_bytes()


def stray() -> Iterator[Path]:
    """Yield the extensions in place that would win over a source that they were not compiled from."""
    mine = {extension_of(module): module for module in modules()}
    tag = sysconfig.get_config_var("EXT_SUFFIX")
    for path in sorted((ROOT / CORE).rglob("*.so")):
        extension = path.relative_to(ROOT)
        if extension in mine:
            if not is_current(mine[extension], extension):
                yield extension
        elif path.name.endswith((tag, ".abi3.so")) or not path.with_name(f"{path.name.split('.')[0]}.py").exists():
            yield extension


def compile_core(folder: Path = SOURCES, *, abi3: bool = False) -> list[Path]:
    """Compile the modules that have changed; return the extensions of all.

    Parameters
    ----------
    folder
        Where the extensions go, relative to the root; by default each goes beside its source.
    abi3
        Whether later versions of Python can take them, too, for which they are slower.

    Raises
    ------
    NotCompiledError
        No extension is left, so that plain Python runs.
    """
    wanted = {module: extension_of(module, folder, abi3=abi3) for module in modules()}
    if folder == SOURCES:
        for extension in stray():
            (ROOT / extension).unlink()
    changed = [module for module, extension in wanted.items() if not is_current(module, extension)]
    try:
        if changed:
            compiler = find_compiler()
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda module: _compile(module, wanted[module], compiler, abi3), changed))
    except NotCompiledError:
        for extension in wanted.values():
            (ROOT / extension).unlink(missing_ok=True)
        raise
    return list(wanted.values())


def find_compiler() -> list[str]:
    """Return the command of a compiler that compiles an extension of this Python: `CC`, or the first there is."""
    if os.name == "nt":
        raise NotCompiledError("not compiled: on Windows plain Python runs")
    if "CC" in os.environ:
        candidates = [shlex.split(os.environ["CC"])]
    else:
        of_python = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
        candidates = [[name] for name in (*of_python, "gcc", "clang", "cc") if shutil.which(name)]
        candidates += [[sys.executable, "-m", "ziglang", "cc"], ["python-zig", "cc"], ["zig", "cc"]]
    (ROOT / BUILD).mkdir(parents=True, exist_ok=True)
    probe = BUILD / "probe.c"
    (ROOT / probe).write_text("#include <Python.h>\nint attributary_probe(void) { return Py_IsInitialized(); }\n")
    for candidate in candidates:
        if _run([*candidate, "--version"]).returncode:
            continue
        done = _run([*candidate, *_flags(candidate), "-c", str(probe), "-o", str(probe.with_suffix(".o"))])
        if not done.returncode:
            return candidate
        if "Python.h" in done.stderr:
            raise NotCompiledError("not compiled: Python.h is missing; install Python's headers, then install again")
    raise NotCompiledError(f"not compiled: there is no C compiler; {WHAT_TO_DO}")


def _flags(compiler: list[str]) -> list[str]:
    include = dict.fromkeys(sysconfig.get_path(name) for name in ("include", "platinclude"))
    # zig compiles for the very processor that it runs on, unless told.
    portable = ["-mcpu=baseline"] if any("zig" in part for part in compiler) else []
    given = shlex.split(f"{os.environ.get('ARCHFLAGS', '')} {os.environ.get('CFLAGS', '')}")
    return [*FLAGS, *portable, *(f"-I{folder}" for folder in include), *given]


def _compile(module: Path, extension: Path, compiler: list[str], abi3: bool) -> None:
    """Compile one module to C, and that to an extension, which is there at once and as a whole."""
    c_file = (BUILD / ("c-abi3" if abi3 else "c") / module).with_suffix(".c")
    made = c_file.with_suffix(f".{os.getpid()}.so")
    for path in (ROOT / c_file, ROOT / extension):
        path.parent.mkdir(parents=True, exist_ok=True)
    name = ".".join(module.relative_to(SOURCES).with_suffix("").parts)
    # A process for each, as C compilers are: Cython takes one core.
    named = ["--module-name", name, "-I", str(SOURCES), "-o", str(c_file)]
    done = _run([sys.executable, "-m", "cython", *CYTHON, *named, str(module)])
    if done.returncode:
        raise CompilationError(f"not compiled: Cython refuses {module}\n{done.stdout}{done.stderr}")
    with (ROOT / c_file).open("a") as code:
        code.write(f'__attribute__((visibility("default"))) const char attributary_key[] = "{key(module).decode()}";\n')
    flags = [*_flags(compiler), *(ABI3 if abi3 else []), *LINK, *shlex.split(os.environ.get("LDFLAGS", ""))]
    done = _run([*compiler, *flags, str(c_file), "-o", str(made)])
    if done.returncode:
        raise CompilationError(f"not compiled: {shlex.join(compiler)} refuses {c_file}\n{done.stderr}")
    (ROOT / made).replace(ROOT / extension)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    caches = {f"ZIG_{kind}_CACHE_DIR": str(ROOT / BUILD / "zig") for kind in ("GLOBAL", "LOCAL")}
    environment = caches | os.environ
    if "cython" not in command:
        # By it pip hides what is installed from a build, and so a compiler that is a package.
        environment.pop("PYTHONPATH", None)
    try:
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


class CompileHook(BuildHookInterface):
    """Bring the compiled core into the wheel; for an editable install compile in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the core before files are collected."""
        abi3 = os.environ.get("ATTRIBUTARY_ABI3", "0") == "1"
        folder = SOURCES if version == "editable" else BUILD / "wheel"
        try:
            extensions = compile_core(folder, abi3=abi3 and version != "editable")
        except NotCompiledError as reason:
            self.app.display_warning(str(reason))
            return
        if version == "editable":
            return
        build_data["pure_python"] = False
        build_data["force_include"] |= {str(path): str(path.relative_to(folder)) for path in extensions}
        if abi3:
            *_, platform = self.build_config.builder.get_best_matching_tag().split("-")
            build_data["tag"] = f"cp311-abi3-{platform}"
        else:
            build_data["infer_tag"] = True


def main() -> int:
    """Compile in place; return 1 where a module is refused, and 0 where there is no compiler, which is allowed."""
    before = {path: path.stat().st_mtime_ns for path in (ROOT / CORE).rglob("*.so")}
    try:
        extensions = compile_core()
    except NotCompiledError as reason:
        print(reason, file=sys.stderr)
        return int(isinstance(reason, CompilationError))
    for extension in extensions:
        if before.get(ROOT / extension) != (ROOT / extension).stat().st_mtime_ns:
            print(extension)
    return 0


if __name__ == "__main__":
    sys.exit(main())
