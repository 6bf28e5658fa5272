"""What is compiled of the core is what its sources say, all of it or nothing, and hot functions are C throughout."""

from __future__ import annotations

import ast
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from array import array
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import hatch_build
import pytest

from attributary_explainers.core import is_compiled

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / hatch_build.CORE
MARK = "# hot"
"""What stands above a function, or behind its `def`, in which nothing may be left to Python."""
HEAD = "try:\n    import cython\nexcept ImportError:\n    from . import _cython as cython\n\n\n"
PRODUCTS = f'''{HEAD}
def products(a: cython.double[::1], b: cython.double[::1]) -> float:
    """Sum products."""
    i: cython.Py_ssize_t
    total: cython.double = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total
'''
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
if importlib.util.find_spec("ziglang"):
    COMPILERS.append(f"{sys.executable} -m ziglang cc")


# What is compiled


def test_no_extension_wins_over_a_source_that_it_was_not_compiled_from() -> None:
    stale = [str(path) for path in hatch_build.stray()]
    assert not stale, f"these are not of the sources as they are: make core, or python hatch_build.py\n{stale}"
    if not is_compiled():
        pytest.skip("nothing is compiled here: the core runs as plain Python")


def test_all_modules_are_compiled_or_none_is() -> None:
    found = {module: (ROOT / hatch_build.extension_of(module)).exists() for module in hatch_build.modules()}
    assert set(found.values()) == {is_compiled()}, f"make core: {found}"


# How it is compiled


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build, of a core with two modules in a folder of its own."""
    folder = tmp_path / hatch_build.CORE
    folder.mkdir(parents=True)
    for name in ("__init__.py", "_cython.py"):
        shutil.copy(CORE / name, folder)
    (folder.parent / "__init__.py").touch()
    shutil.copy(CORE / "build_mode.py", folder)
    (folder / "products.py").write_text(PRODUCTS)
    shutil.copy(ROOT / "hatch_build.py", tmp_path)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("CFLAGS", "-O0")  # quickly
    return _load("small_build", tmp_path / "hatch_build.py")


def _load(name: str, path: Path) -> Any:
    loader = (SourceFileLoader if path.suffix == ".py" else ExtensionFileLoader)(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _times(small: ModuleType) -> dict[str, int]:
    return {path.name.split(".")[0]: path.stat().st_mtime_ns for path in (small.ROOT / small.CORE).glob("*.so")}


def _needs_compiler(small: ModuleType) -> None:
    try:
        small.find_compiler()
    except small.NotCompiledError as reason:
        pytest.skip(str(reason))


def test_what_has_changed_is_compiled_and_what_has_no_source_is_removed(small: ModuleType) -> None:
    _needs_compiler(small)
    small.compile_core()
    first = _times(small)
    assert set(first) == {"build_mode", "products"}
    assert not list(small.stray())
    small.compile_core()
    assert _times(small) == first
    source = small.ROOT / small.CORE / "products.py"
    source.write_text(PRODUCTS.replace("0.0", "1.0"))
    os.utime(source, ns=(1, 1))  # as old as a checkout makes it
    assert [path.name.split(".")[0] for path in small.stray()] == ["products"]
    small.compile_core()
    second = _times(small)
    assert second["build_mode"] == first["build_mode"]
    assert second["products"] != first["products"]
    assert not list(small.stray())
    source.unlink()
    assert len(list(small.stray())) == 1
    small.compile_core()
    assert set(_times(small)) == {"build_mode"}


@pytest.mark.long  # it compiles all twice
def test_nothing_of_this_machine_is_in_an_extension(small: ModuleType) -> None:
    _needs_compiler(small)
    one, other = (small.compile_core(Path("build", name)) for name in ("one", "other"))
    for first, second in zip(one, other, strict=True):
        content = (small.ROOT / first).read_bytes()
        assert content == (small.ROOT / second).read_bytes(), "the same source is the same file"
        assert str(small.ROOT).encode() not in content


def test_a_module_that_is_refused_leaves_none_compiled(small: ModuleType) -> None:
    _needs_compiler(small)
    (small.ROOT / small.CORE / "products.py").write_text(PRODUCTS.replace("cython.double = 0.0", "cython.double = ''"))
    with pytest.raises(small.CompilationError, match=r"Cython refuses .*products\.py"):
        small.compile_core()
    assert _times(small) == {}


def test_without_a_compiler_one_line_says_what_to_install(
    small: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = small.ROOT / small.extension_of(small.CORE / "products.py")
    stale.touch()
    monkeypatch.setenv("CC", "false")
    assert small.main() == 0, "it is allowed"
    said = "not compiled: there is no C compiler; install gcc, clang or `pip install ziglang`, then install again\n"
    assert capsys.readouterr() == ("", said)
    assert not stale.exists()


def test_plain_python_says_what_to_install_when_it_is_imported(small: ModuleType) -> None:
    command = "import attributary_explainers.core as c; print(c.is_compiled())"
    environment = {"PYTHONPATH": str(small.ROOT / small.SOURCES), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert done.stderr.startswith("the core is not compiled, so explanations take 4 to 30 times as long; install gcc,")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_compiler_fuses_a_product_and_a_sum(
    small: ModuleType, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    # Others fuse unasked.
    monkeypatch.setenv("CFLAGS", "-mfma" if platform.machine() == "x86_64" else "")
    small.compile_core()
    products = _load("products", small.ROOT / small.extension_of(small.CORE / "products.py")).products
    # Fused, the second product is not rounded, and what rounding took is left.
    assert products(array("d", [-1.0, 0.1]), array("d", [0.1 * 0.1, 0.1])) == 0.0


# What is C throughout


def _hot(source: str) -> list[ast.FunctionDef]:
    lines = source.splitlines()
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and (
            lines[min(one.lineno for one in (node, *node.decorator_list)) - 2].strip().startswith(MARK)
            or lines[node.body[0].lineno - 2].rstrip().endswith(MARK)
        )
    ]


ALLOWED = re.compile(
    r"PyErr_\w+|__Pyx_(Raise|AddTraceback|Unraisable|WriteUnraisable)\w*"  # where something is raised
    r"|Py[A-Z][a-z]+_(Size|Check)|(__Pyx_)?Py(Dict|List|Tuple)_G(et|ET_)\w+|(__Pyx_)?PyFloat_As\w+"
)
"""What C may call of Python: besides the first, the reading of containers and numbers of a known kind."""
RESULT = re.compile(r"Py(Float|Long|Bool)_From\w+|__Pyx_Py(Int|Long|Bool)_From\w+")
"""What makes the object that a function returns to Python."""
CALL = re.compile(r"<span class='(?:py|pyx)_c_api'>(\w+)</span>")


def _left_to_python(module: Path, folder: Path, root: Path = ROOT) -> list[str]:
    """Each line of a hot function that calls something of Python, and what."""
    source = (root / module).read_text()
    name = ".".join(module.relative_to(hatch_build.SOURCES).with_suffix("").parts)
    made = folder / f"{module.stem}.c"
    command = [sys.executable, "-m", "cython", *hatch_build.CYTHON, "-I", str(hatch_build.SOURCES), "-a"]
    command += ["--module-name", name, "-o", str(made), str(module)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    page = made.with_suffix(".html").read_text()
    # A line of the source, and the C that it has become.
    pieces = re.split(r'<pre class="cython line score-\d+"[^>]*>(?:\+|&#xA0;)<span class="\w*">(\d+)</span>: ', page)
    of_line = dict(zip(map(int, pieces[1::2]), pieces[2::2], strict=True))
    assert len(of_line) >= len(source.splitlines()), "the page is read wrong"
    found = []
    for function in _hot(source):
        raised = {n for one in ast.walk(function) if isinstance(one, ast.Raise | ast.Assert) for n in _lines(one)}
        returned = {n for one in ast.walk(function) if isinstance(one, ast.Return) for n in _lines(one)}
        for n in (n for one in function.body for n in _lines(one)):
            calls = {call for call in CALL.findall(of_line[n]) if not ALLOWED.fullmatch(call)}
            if n in returned:
                calls = {call for call in calls if not RESULT.fullmatch(call)}
            if calls and n not in raised:
                found.append(f"{module}:{n} {function.name}: {', '.join(sorted(calls))}")
    return found


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@pytest.mark.parametrize(
    "module", [one for one in hatch_build.modules() if MARK in (ROOT / one).read_text()], ids=lambda one: one.stem
)
def test_nothing_is_left_to_python_in_a_hot_function(module: Path, tmp_path: Path) -> None:
    assert _hot((ROOT / module).read_text()), f"{module}: {MARK!r} stands above no function"
    found = _left_to_python(module, tmp_path)
    assert not found, "\n".join(found)


def test_a_call_of_python_in_a_hot_function_is_found(small: ModuleType, tmp_path: Path) -> None:
    module = small.CORE / "products.py"
    clean = PRODUCTS.replace("def products", f"{MARK}\ndef products")
    (small.ROOT / module).write_text(clean)
    assert not _left_to_python(module, tmp_path, small.ROOT)
    for line, called in {"float(str(a[i]))": "__Pyx_PyObject_Unicode", "scale * a[i]": "PyNumber_Multiply"}.items():
        changed = clean.replace("a[i] * b[i]", line)
        (small.ROOT / module).write_text(f"{changed}\n\nscale = 2.0\n")
        (found,) = _left_to_python(module, tmp_path, small.ROOT)
        assert found.startswith(f"{module}:{changed[: changed.index('+=')].count(chr(10)) + 1} products: ")
        assert called in found
