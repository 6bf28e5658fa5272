"""Kernels: functions that numba compiles, once on a machine, and the notice that a user gets of it.

Until the code of one is there, plain Python answers: see `meanwhile`.

`NUMBA_DISABLE_JIT=1` runs the same source as plain Python, without numba: it and its compiler take 100 MB. Nothing else
of the project imports numba.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, overload

from .meanwhile import answer_with, meanwhile, wait_for, waiting

numba: Any = None
events: Any = None
caching: Any = None
runtime: Any = None
ir: Any = None
if os.environ.get("NUMBA_DISABLE_JIT") != "1":
    # As a name each: which types these declare differs from release to release.
    numba, events = import_module("numba"), import_module("numba.core.event")
    caching, runtime = import_module("numba.core.caching"), import_module("numba.core.runtime")
    ir = import_module("llvmlite.ir")

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger(__name__.partition(".")[0])

_SLOW_S = 1.0
_EVERY_S = 5.0
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
_kernels: list[Any] = []
_not_found: list[str] = []
"""Functions of the interpreter that compiled code would call and cannot."""

_PROVED_NUMBA = ("0.68",)
"""Series of numba whose kernels are known to be loaded as `_KeptKernel` does it: the tests load every one."""


class _KeptKernel(caching.FunctionCache if caching else object):  # type: ignore[misc]
    """Loads a kernel from disk without numba's tables of all that can be compiled; they come when one is compiled.

    The tables are a hundred modules and 13 MB, and take a tenth of a second. A kernel that is loaded needs of them what
    counts references to arrays, and nothing else: it is machine code.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._own: Any = self._cache_file._source_stamp
        self._has_all = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for a signature; None where it is not kept. numba's own fills the tables first."""
        self._stamp()
        runtime.rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the kernel for a signature."""
        self._stamp()
        super().save_overload(sig, data)

    def holds(self, sig: Any, target_context: Any) -> bool:
        """Return whether the kernel is kept for a signature, and for this processor."""
        self._stamp()
        return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()

    def holds_any(self, target_context: Any) -> bool:
        """Return whether the kernel is kept for any signature, and for this processor."""
        self._stamp()
        wanted = self._index_key((), target_context.codegen())[1:]
        return any(key[1:] == wanted for key in self._cache_file._load_index())

    def _stamp(self) -> None:
        """Have a kernel compiled anew where the source of what it takes has changed: that is in its code.

        That is the source of the kernels that it calls, and the numbers that it, or they, have from modules.
        """
        if self._has_all:
            return
        found, rest = set[_KeptKernel](), [self]
        while rest:
            one = rest.pop()
            if one in found:
                continue
            found.add(one)
            known = one._py_func.__globals__
            called = (getattr(known.get(name), "_cache", None) for name in one._py_func.__code__.co_names)
            rest += [cache for cache in called if isinstance(cache, _KeptKernel)]
        sources, numbers = {one._own for one in found}, {_numbers_of(one._py_func) for one in found}
        self._cache_file._source_stamp = (*sorted(sources), *sorted(numbers))
        self._has_all = True


@cache
def _numbers_of(function: Callable[..., Any]) -> bytes:
    """Return the numbers that a function has from its module and from modules that it names."""
    names, known = function.__code__.co_names, function.__globals__
    scopes = [known, *(vars(one) for one in map(known.get, names) if isinstance(one, ModuleType))]
    return repr(
        [(name, one) for of in scopes for name in names if isinstance(one := of.get(name), int | float)]
    ).encode()


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, waits: bool = False, reads_objects: bool = False) -> Callable[[F], F]: ...
def compiled(function: F | None = None, *, waits: bool = False, reads_objects: bool = False) -> F | Callable[[F], F]:
    """Return the kernel of a function: numba compiles it, without Python objects, and keeps it on disk.

    Parameters
    ----------
    waits
        Whether a call waits for the compiler, instead of being answered by plain Python meanwhile: where a matrix
        product or a sum of numpy's adds up in another order than the kernel does.
    reads_objects
        Whether it calls functions of the interpreter, see `objects`: it keeps other threads from running, and where it
        is not compiled the answer is 0.
    """
    if function is None:
        return partial(compiled, waits=waits, reads_objects=reads_objects)
    made: Any = unread if reads_objects else function
    options = {**_OPTIONS, "nogil": not reads_objects}
    try:
        if is_compiling() and not (reads_objects and _not_found):
            made = numba.njit(cache=True, **options)(function)
            if numba.__version__.rpartition(".")[0] in _PROVED_NUMBA:
                made._cache = _KeptKernel(function)
    except RuntimeError:  # there is nowhere to keep it: neither NUMBA_CACHE_DIR, nor beside this file, nor a home
        made = numba.njit(**options)(function)
    if made not in (function, unread):
        made._compile_for_args = partial(meanwhile.answer, made, made._compile_for_args)
        if waits:
            wait_for(made)
        if reads_objects:
            answer_with(made, unread)
    if made is not unread:
        _kernels.append(made)
    kernel: F = made
    return kernel


def unread(*_: Any) -> int:
    """Return 0: what a kernel that reads Python objects answers where it is not compiled."""
    return 0


def c_function(name: str, returns: str, takes: str) -> Any:
    """Return a function of the interpreter's C interface as kernels call it.

    Parameters
    ----------
    returns, takes
        A letter for each type: "p" is the address of an object or a size, "d" a double, "l" a long long, "i" an int,
        and "v" nothing.
    """
    if not is_compiling():
        return unread
    if import_module("llvmlite.binding").address_of_symbol(name) is None:
        _not_found.append(name)  # an interpreter whose functions compiled code cannot see: Python reads
    types = numba.types
    kinds = {"p": types.intp, "d": types.float64, "l": types.longlong, "i": types.intc, "v": types.void}
    return types.ExternalFunction(name, kinds[returns](*(kinds[one] for one in takes)))


def _functions_of_addresses() -> tuple[Any, Any, Any]:
    """Return `array_at`, `call_for_double` and `call_for_uint32`, which kernels that read objects call."""
    if not is_compiling():
        return unread, unread, unread
    types = numba.types

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def pointer(_: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, _: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], context.get_value_type(types.voidptr))

        return types.voidptr(types.intp), code

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def call_for_double(_: Any, function: Any, state: Any) -> Any:
        """Call a C function, by its address, that takes the address of a state and returns a double."""

        def code(context: Any, builder: Any, _: Any, given: Any) -> Any:
            of_state = context.get_value_type(types.voidptr)
            kind = ir.FunctionType(ir.DoubleType(), [of_state]).as_pointer()
            return builder.call(builder.inttoptr(given[0], kind), [builder.inttoptr(given[1], of_state)])

        return types.float64(types.intp, types.intp), code

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def call_for_uint32(_: Any, function: Any, state: Any) -> Any:
        """Call a C function, by its address, that takes the address of a state and returns 32 bits; as an integer."""

        def code(context: Any, builder: Any, _: Any, given: Any) -> Any:
            of_state = context.get_value_type(types.voidptr)
            kind = ir.FunctionType(ir.IntType(32), [of_state]).as_pointer()
            found = builder.call(builder.inttoptr(given[0], kind), [builder.inttoptr(given[1], of_state)])
            return builder.zext(found, ir.IntType(64))

        return types.int64(types.intp, types.intp), code

    carray = numba.carray

    @numba.extending.register_jitable  # type: ignore[untyped-decorator]
    def array_at(address: int, shape: Any, dtype: Any) -> Any:
        """Return the array of this shape whose memory is at an address, in C order; the caller holds it."""
        return carray(pointer(address), shape, dtype)

    return array_at, call_for_double, call_for_uint32


def is_compiling() -> bool:
    """Return whether kernels are compiled in this process: not with `NUMBA_DISABLE_JIT=1`."""
    return numba is not None and not numba.config.DISABLE_JIT


array_at, call_for_double, call_for_uint32 = _functions_of_addresses()


def cache_folder() -> str | None:
    """Return the folder in which numba keeps compiled kernels; None where it found none that can be written."""
    kept = _kernels[0].stats.cache_path if is_compiling() and _kernels else None
    if kept is None:
        return None
    package = os.path.dirname(__file__)  # noqa: PTH120 - no paths in this package. Kernels are in `__pycache__` of each folder
    return str(numba.config.CACHE_DIR or (package if kept.startswith(package) else kept))


def count_kept() -> tuple[int, int]:
    """Return how many kernels are kept on disk, of how many; all, where that is not known of this release of numba."""
    known = [(kernel._cache, kernel.targetctx) for kernel in _kernels if is_compiling()]
    kept = [not isinstance(cache, _KeptKernel) or cache.holds_any(context) for cache, context in known]
    return sum(kept), len(kept)


class Compilations(events.Listener if events else object):  # type: ignore[misc]
    """Counts the kernels that this process compiles instead of finding them on disk, and tells the user."""

    def __init__(self) -> None:
        self.n = 0
        self.seconds = 0.0
        self.told = False
        """Whether the user knows."""
        self.progress: Callable[[], None] | None = None
        """Called after each kernel that is compiled."""
        self._depth = 0
        self._began = 0.0
        self.next_s = math.inf
        """Seconds of compiling after which the user is told how far it is."""

    def on_start(self, event: Any) -> None:
        """Begin to measure; a kernel that calls another one has it compiled meanwhile."""
        if not _is_ours(event):
            return
        if self._depth == 0:
            self._began = time.monotonic()
        self._depth += 1
        self._tell()

    def on_end(self, event: Any) -> None:
        """Count a kernel that has been compiled."""
        if not _is_ours(event):
            return
        self.n += 1
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.monotonic() - self._began
        self._tell()
        if self.progress is not None:
            self.progress()

    def _tell(self) -> None:
        running = time.monotonic() - self._began if self._depth else 0.0
        spent = self.seconds + running
        if not self.told and spent >= _SLOW_S:
            self.told, self.next_s = True, spent + _EVERY_S
            beside = " beside, and explains more slowly until they are there" * meanwhile.is_busy
            _say(f"attributary compiles its kernels{beside}, which takes about a minute in all: {where_kept()}")
        elif spent >= self.next_s:
            self.next_s = spent + _EVERY_S
            # Some kernels are never needed, and some are compiled for arguments of several types.
            _say(f"attributary has compiled {min(self.n, len(_kernels))} of about {len(_kernels)} kernels")


def _say(text: str) -> None:
    if logger.isEnabledFor(logging.INFO):
        logger.info(text)
    elif logger.level == logging.NOTSET:  # nobody has said what is to be logged, as in a notebook
        print(text, file=sys.stderr)


def where_kept() -> str:
    """Return what becomes of compiled kernels, and what the user can do, as the end of a sentence."""
    folder = cache_folder()
    if folder is None:
        return "each process anew, as no folder can be written. Set NUMBA_CACHE_DIR to one that can"
    return f"once on this machine, kept in {folder}. `attributary warm-up`, in Python `warm_up()`, does it ahead"


compilations = Compilations()
"""Those of this process."""

if events is not None:
    events.register("numba:compile", compilations)


class _Passes(events.Listener if events else object):  # type: ignore[misc]
    """Hears of each step of the compiler: between two of them the thread that compiles can be ended."""

    def on_start(self, event: Any) -> None:
        """End the thread where it is to end."""
        meanwhile.check()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def _hear_passes() -> None:
    events.register("numba:run_pass", _Passes())


meanwhile.on_begin = _hear_passes


@contextmanager
def compiling(progress: Callable[[int, int], None] | None = None) -> Iterator[Compilations]:
    """Compile at once and without the notice, as the caller tells the user; `progress` is called as by `warm_up`."""
    meanwhile.wait()
    before = compilations.told, compilations.next_s
    compilations.told, compilations.next_s = True, math.inf
    n, total = compilations.n, len(_kernels)
    if progress is not None:
        kept = count_kept()[0] % total
        # A kernel may be compiled more than once, for arguments of several types.
        compilations.progress = lambda: progress(min(kept + compilations.n - n, total - 1), total)
    try:
        with waiting():
            yield compilations
        if progress is not None:
            progress(total, total)
    finally:
        (compilations.told, compilations.next_s), compilations.progress = before, None


def _is_ours(event: Any) -> bool:
    return bool(event.data["dispatcher"].py_func.__module__.startswith(logger.name))
