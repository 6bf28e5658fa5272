"""Plain Python answers for kernels until they are compiled: the same numbers, to the last bit, and nobody waits."""

from __future__ import annotations

import ast
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attributary_explainers.meanwhile import Ended, Meanwhile, plain_function, wait_for, waiting

from .test_compiled import run


@pytest.fixture(autouse=True)
def meanwhile_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the library: tests, as workers, let kernels be waited for otherwise."""
    monkeypatch.delenv("ATTRIBUTARY_KERNELS", raising=False)


class Kernel:
    """A dispatcher whose compiler takes as long as the test lets it."""

    _cache = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func, self.n_compiled, self.overloads = function, 0, dict[tuple[str, ...], str]()
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.fault: Exception | None = None

    def typeof_pyval(self, value: Any) -> str:
        return type(value).__name__

    def compile(self, _types: tuple[str, ...]) -> None:
        self.has_begun.set()
        assert self.may_end.wait(60)
        if self.fault is not None:
            raise self.fault
        self.n_compiled += 1

    def code(self, *_: Any) -> Callable[..., str]:
        """What numba's own answer would be."""
        return lambda *_: "compiled"


@pytest.fixture
def meanwhile() -> Iterator[Meanwhile]:
    """One of this test, which is waited for."""
    one = Meanwhile()
    one._has_begun = True  # nothing is left for the end of the process
    yield one
    one.wait()


def root(values: Any, x: float) -> Any:
    values[0] += 1.0
    return math.sqrt(x) / values[1]


def test_plain_python_answers_until_the_kernel_is_compiled(meanwhile: Meanwhile) -> None:
    kernel, values = Kernel(root), np.array([1.0, 2.0])
    for n in range(1, 4):
        found = meanwhile.answer(kernel, kernel.code, values, 9.0)(values, 9.0)
        assert (found, type(found), values[0], meanwhile.n_plain) == (1.5, float, 1.0 + n, n)
    assert (meanwhile.is_busy, kernel.n_compiled) == (True, 0)
    kernel.may_end.set()
    meanwhile.wait()
    assert (meanwhile.is_busy, kernel.n_compiled) == (False, 1)


def test_numbers_are_those_of_compiled_code_where_python_would_raise(meanwhile: Meanwhile) -> None:
    kernel, values = Kernel(root), np.array([1.0, 0.0])
    assert meanwhile.answer(kernel, kernel.code, values, 9.0)(values, 9.0) == math.inf
    kernel.may_end.set()
    of = Kernel(
        lambda x: (math.exp(x), np.exp(-x), math.log(0.0 * x), math.log(-x), math.sqrt(-x), np.log(x), 1.0 / (x - x))
    )
    of.may_end.set()
    found = meanwhile.answer(of, of.code, 1e3)(1e3)
    expected = math.inf, 0.0, -math.inf, math.nan, math.nan, math.log(1e3), math.inf
    assert repr(found) == repr(expected)
    assert {type(one) for one in found} == {float}


def test_where_plain_python_raises_all_the_same_the_kernel_is_waited_for_with_what_was_given(
    meanwhile: Meanwhile,
) -> None:
    def raises(both: Any, _x: int) -> None:
        both[0][:] = 7.0
        both[1][0] = 7.0
        raise ZeroDivisionError

    kernel, both = Kernel(raises), (np.arange(3.0), np.arange(2.0))
    kernel.may_end.set()
    assert meanwhile.answer(kernel, kernel.code, both, 1)(both, 1) == "compiled"
    assert [one.tolist() for one in both] == [[0.0, 1.0, 2.0], [0.0, 1.0]]
    assert meanwhile.n_plain == 0


def test_a_call_waits_where_it_is_told_to(meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(root)
    with waiting():
        assert meanwhile.answer(kernel, kernel.code, np.ones(2), 1.0)() == "compiled"
    with monkeypatch.context() as patch:
        patch.setenv("ATTRIBUTARY_KERNELS", "wait")
        assert meanwhile.answer(kernel, kernel.code, np.ones(2), 1.0)() == "compiled"
    wait_for(other := Kernel(lambda x: x + 1.0))
    caller = Kernel(_calling(other))
    for one in (other, caller):
        assert plain_function(one) is None
        assert meanwhile.answer(one, one.code, 1.0)() == "compiled"
    assert not meanwhile.is_busy


def _calling(inner: Any) -> Callable[..., Any]:
    known: dict[str, Any] = {"inner": inner}
    exec("def outer(x):\n    return inner(x)", known)
    outer: Callable[..., Any] = known["outer"]
    return outer


def test_what_cannot_be_compiled_is_an_error_where_it_is_called(meanwhile: Meanwhile) -> None:
    kernel = Kernel(root)
    kernel.fault = TypeError("no such type")
    kernel.may_end.set()
    assert meanwhile.answer(kernel, kernel.code, np.ones(2), 1.0)(np.ones(2), 1.0) == 1.0
    meanwhile.wait()
    assert meanwhile.answer(kernel, kernel.code, np.ones(2), 1.0)() == "compiled"


def test_a_kernel_where_one_lay_that_is_gone_is_answered_for_by_its_own_source(meanwhile: Meanwhile) -> None:
    def made(n: int) -> Kernel:
        kernel = Kernel(lambda: n)
        kernel.may_end.set()
        return kernel

    def answered(n: int) -> tuple[int, int]:
        kernel = made(n)
        if n % 3 == 0:
            wait_for(kernel)
        found = meanwhile.answer(kernel, lambda: lambda: n)()
        meanwhile.wait()
        return id(kernel), found

    seen = [answered(n) for n in range(100)]
    assert [found for _, found in seen] == list(range(100))
    assert len({place for place, _ in seen}) == len(seen), "none of them is gone: it would be answered for by another"
    assert meanwhile.n_plain == sum(n % 3 > 0 for n in range(100)), "those of them that are not waited for"


def test_a_fork_waits_for_the_kernel_that_is_being_compiled_and_the_next_one_for_the_fork(meanwhile: Meanwhile) -> None:
    first, second = Kernel(root), Kernel(root)
    for kernel in (first, second):
        meanwhile.answer(kernel, kernel.code, np.ones(2), 1.0)
    second.may_end.set()
    assert first.has_begun.wait(60)
    held = threading.Thread(target=meanwhile._hold)
    held.start()
    assert held.is_alive(), "the first is being compiled"
    first.may_end.set()
    held.join(60)
    assert (first.n_compiled, second.n_compiled) == (1, 0)
    meanwhile._let_go()
    meanwhile.wait()
    assert second.n_compiled == 1


def test_the_end_of_the_process_ends_the_thread_between_two_steps_of_the_compiler(meanwhile: Meanwhile) -> None:
    class Endless(Kernel):
        def compile(self, _types: tuple[str, ...]) -> None:
            while True:
                meanwhile.check()
                self.may_end.wait(0.01)

    kernel = Endless(root)
    meanwhile.answer(kernel, kernel.code, np.ones(2), 1.0)
    meanwhile._end()
    assert not meanwhile.is_busy
    meanwhile.check()  # in another thread it ends nothing
    assert issubclass(Ended, SystemExit)


EXPLAIN = """
import random, sys
from attributary_explainers import Explainers, IncrementalPFI, IncrementalSAGE
from attributary_explainers.compiled import compilations
from attributary_explainers.meanwhile import meanwhile
from river import forest, linear_model, naive_bayes, preprocessing

MODELS = (
    lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    lambda: forest.ARFClassifier(n_models=2, seed=1),
)


def explained(make, seed, n):
    model, rng = make(), random.Random(seed)
    both = Explainers(model, {
        "pfi": IncrementalPFI(model, n_samples=3, seed=1), "sage": IncrementalSAGE(model, n_samples=3, seed=1)
    })
    for _ in range(n):
        x = {name: rng.random() for name in "abc"}
        y = x["a"] > x["b"]
        both.explain_one(x, y)
        model.learn_one(x, y)
    assert both.function.n_fast
    return [[value.hex() for part in (one.importance, one.std_error) for value in part.values()]
            for one in both.explainers.values()]


"""

HOW = """
found, how = [], []
for make in MODELS:
    found.append(explained(make, 1, 5))
    how.append((meanwhile.n_plain, meanwhile.is_busy))
for _ in range(3):
    n = meanwhile.n_plain
    found += [explained(make, 2, 40) for make in MODELS]
    meanwhile.wait()
print(found)
print((*how, meanwhile.n_plain - n, meanwhile.is_busy, compilations.n))
"""


@pytest.mark.long
def test_a_fresh_install_explains_at_once_and_gets_faster_with_the_same_numbers(tmp_path: Path) -> None:
    fresh = run(EXPLAIN + HOW, tmp_path)
    waited = run(EXPLAIN + HOW, tmp_path / "kernels", ATTRIBUTARY_KERNELS="wait")
    (numbers, how), (expected, compiled) = fresh.stdout.splitlines(), waited.stdout.splitlines()
    assert numbers == expected
    first, second, n_last, is_busy, n_compiled = ast.literal_eval(how)
    assert first[0] > 10, "plain Python has answered"
    assert first[1], "and the kernels are being compiled"
    assert second[0] > first[0]
    assert (n_last, is_busy) == (0, False), "in the end kernels answer alone"
    assert n_compiled > 10
    *alone, n_compiled = ast.literal_eval(compiled)
    assert alone == [(0, False), (0, False), 0, False]
    assert n_compiled > 10
    assert "attributary compiles its kernels beside, and explains more slowly until they are there" in fresh.stderr
    kept = run(EXPLAIN + HOW, tmp_path)
    assert kept.stdout.splitlines()[0] == numbers
    assert ast.literal_eval(kept.stdout.splitlines()[1]) == ((0, False), (0, False), 0, False, 0), "all are kept"


LEAVE = """
import os
import attributary_explainers.compiled as compiled
compiled._SLOW_S = 1e9
explained(MODELS[1], 1, 3)
assert meanwhile.is_busy
if (child := os.fork()) == 0:
    assert not meanwhile.is_busy
    print(explained(MODELS[1], 1, 3), flush=True)
    meanwhile.wait()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(explained(MODELS[1], 1, 3))
meanwhile.wait()
explained(naive_bayes.GaussianNB, 1, 3)
assert meanwhile.is_busy
"""


@pytest.mark.long
def test_a_process_that_compiles_can_fork_and_ends_when_it_is_done(tmp_path: Path) -> None:
    found = run(EXPLAIN + LEAVE, tmp_path)
    assert found.stderr == "", "no trace of the thread that was ended"
    child, parent = found.stdout.splitlines()
    assert child == parent
