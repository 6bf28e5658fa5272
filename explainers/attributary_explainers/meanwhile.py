"""Plain Python answers for a kernel until a thread has compiled it, so that no observation waits for the compiler.

numba asks a kernel what to call wherever it has no code for the types of the arguments. Here the answer is the kernel's
own source as plain Python, with the same numbers to the last bit, and its code from the first call on that finds it:
such a call comes here no more, and costs what it always does.

There is no thread until a kernel is called that is not on disk, and none as soon as all that were called are compiled.
"""

from __future__ import annotations

import atexit
import builtins
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

WAIT = "wait"
"""Value of `ATTRIBUTARY_KERNELS` with which every call waits until its kernel is compiled."""

_MOMENT_S = 1e-3

_at_once: ContextVar[bool] = ContextVar("at_once", default=False)


@contextmanager
def waiting() -> Iterator[None]:
    """Let kernels be compiled where they are called, inside the block or the function that this decorates.

    For what takes longer with plain Python than with the compiler before it.
    """
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


def is_waited_for() -> bool:
    """Return whether calls wait here until their kernel is compiled: in `waiting`, or in this process altogether."""
    return _at_once.get() or os.environ.get("ATTRIBUTARY_KERNELS") == WAIT


_Call: TypeAlias = tuple[Any, tuple[Any, ...]]
"""A kernel, and the types of its arguments."""


class Ended(SystemExit):
    """Ends the compiling thread: the process ends."""


class Meanwhile:
    """Has kernels compiled in a thread, one after another, and answers for them until then."""

    def __init__(self) -> None:
        self.n_plain = 0
        """Calls that plain Python has answered."""
        self.on_begin: Callable[[], None] = lambda: None
        """Called before the first thread begins."""
        self._has_begun = False
        self._is_ending = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._due: deque[_Call] = deque()
        self._asked: set[_Call] = set()
        self._failed: set[_Call] = set()
        self._thread: threading.Thread | None = None
        self._is_compiling = False
        self._n_forking = 0

    @property
    def is_busy(self) -> bool:
        """Whether kernels are being compiled in the thread."""
        return self._thread is not None

    def answer(self, kernel: Any, compile_now: Callable[..., Callable[..., Any]], *args: Any) -> Callable[..., Any]:
        """Return what is to be called with these arguments, for which the kernel has no code.

        Parameters
        ----------
        kernel
            numba's dispatcher.
        compile_now
            numba's own answer: loads or compiles the code, and returns it.
        """
        plain = None if is_waited_for() else plain_function(kernel)
        if plain is None:
            return compile_now(*args)
        types = tuple(map(kernel.typeof_pyval, args))
        key = kernel, types
        # While the thread compiles, numba loads nothing in another one.
        is_at_hand = key not in self._asked and not self.is_busy and _is_kept(kernel, types)
        if is_at_hand or key in self._failed or types in kernel.overloads:
            return compile_now(*args)
        self._ask(key)

        def answer(*args: Any) -> Any:
            kept = [(array, array.copy()) for array in _arrays(args) if array.flags.writeable]
            try:
                with np.errstate(all="ignore"):
                    found = plain(*(np.float64(one) if type(one) is float else one for one in args))
            except Exception:  # noqa: BLE001 - what is an exception in Python may be an infinite number in the kernel
                for array, before in kept:
                    array[...] = before
                return compile_now(*args)(*args)
            self.n_plain += 1
            self._let_compile()
            return _as_compiled(found)

        return answer

    def wait(self) -> None:
        """Wait until all kernels that were called are compiled."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def check(self) -> None:
        """End the compiling thread, where it is the one that calls this and the process ends."""
        if self._is_ending and threading.current_thread() is self._thread:
            raise Ended

    def _ask(self, key: _Call) -> None:
        with self._changed:
            if key in self._asked or self._is_ending:
                return
            self._asked.add(key)
            self._due.append(key)
            if self._thread is None:
                self._begin()
                self._thread = threading.Thread(target=self._compile, name="attributary-kernels", daemon=True)
                self._thread.start()

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        self.on_begin()
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._hold, after_in_parent=self._let_go, after_in_child=self._begin_anew)

    def _compile(self) -> None:
        while True:
            with self._changed:
                while self._n_forking:
                    self._changed.wait()
                if not self._due or self._is_ending:
                    self._thread = None
                    return
                kernel, types = self._due.popleft()
                self._is_compiling = True
            try:
                kernel.compile(types)
            except Ended:
                return
            except Exception:  # noqa: BLE001 - the next call compiles where it is made, and raises it there
                self._failed.add((kernel, types))
            finally:
                with self._changed:
                    self._is_compiling = False
                    self._changed.notify_all()

    def _let_compile(self) -> None:
        """Leave the interpreter to the compiling thread for a moment: beside Python code it would get little of it."""
        with self._changed:
            if self._thread is not None:
                self._changed.wait(_MOMENT_S)

    def _end(self) -> None:
        """Let the thread end before the interpreter does: LLVM must not be at work while it is taken down."""
        self._is_ending = True
        self.wait()

    def _hold(self) -> None:
        """Wait before a fork until nothing is being compiled: the new process would have the compiler's locks."""
        if threading.current_thread() is self._thread:
            return
        with self._changed:
            self._n_forking += 1
            while self._is_compiling:
                self._changed.wait()

    def _let_go(self) -> None:
        if threading.current_thread() is self._thread:
            return
        with self._changed:
            self._n_forking -= 1
            self._changed.notify_all()


meanwhile = Meanwhile()
"""That of this process."""


def plain_function(kernel: Any) -> Callable[..., Any] | None:
    """Return the source of a kernel as plain Python, which calls other kernels as plain Python, too.

    None where it has to be waited for: it, or one that it calls, adds up in another order as plain Python.
    """
    if kernel not in _plain:
        source = kernel.py_func
        known: dict[str, Any] = {"__builtins__": builtins}
        function = FunctionType(source.__code__, known, source.__name__, source.__defaults__, source.__closure__)
        _plain[kernel] = function if kernel not in _waited_for else None
        for name in source.__code__.co_names:
            if name not in source.__globals__:
                continue
            value = known[name] = source.__globals__[name]
            if value is np or value is math:
                known[name] = _LikeCompiled(value)
            elif hasattr(value, "py_func"):
                known[name] = plain_function(value)
                if known[name] is None:
                    _plain[kernel] = None
    return _plain[kernel]


def wait_for(kernel: Any) -> None:
    """Let a kernel, and those that call it, never be answered for by plain Python."""
    _waited_for.add(kernel)


def answer_with(kernel: Any, plain: Callable[..., Any]) -> None:
    """Let a function answer for a kernel whose own source is none that plain Python can run."""
    _plain[kernel] = plain


# By the kernels themselves, which are kept: another one would get the address of one that is gone, and its answers.
_plain: dict[Any, Callable[..., Any] | None] = {}
_waited_for: set[Any] = set()


class _LikeCompiled:
    """A module whose functions of one number return what compiled code gets from the C library, infinity included.

    numpy has an exponential and a logarithm of its own, and Python raises where C returns an infinite number or none.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def exp(self, x: Any) -> Any:
        """Return e to the power of x."""
        if isinstance(x, np.ndarray):
            return self._module.exp(x)
        try:
            return np.float64(math.exp(x))
        except OverflowError:
            return np.float64(math.inf)

    def log(self, x: Any) -> Any:
        """Return the natural logarithm of x."""
        if isinstance(x, np.ndarray):
            return self._module.log(x)
        if x > 0.0:
            return np.float64(math.log(x))
        return np.float64(-math.inf if x == 0.0 else math.nan)

    def sqrt(self, x: Any) -> Any:
        """Return the square root of x."""
        return np.sqrt(x)


def _is_kept(kernel: Any, types: tuple[Any, ...]) -> bool:
    """Return whether the code is on disk; False where that is not known of this release of numba: the thread looks."""
    holds = getattr(kernel._cache, "holds", None)
    return holds is not None and holds(types, kernel.targetctx)


def _arrays(args: tuple[Any, ...]) -> Iterator[np.ndarray[Any, Any]]:
    for one in args:
        if isinstance(one, np.ndarray):
            yield one
        elif isinstance(one, tuple):
            yield from _arrays(one)


def _as_compiled(found: Any) -> Any:
    """Return numbers as those that compiled code returns: of Python's own types."""
    if isinstance(found, np.generic):
        return found.item()
    return tuple(map(_as_compiled, found)) if type(found) is tuple else found
