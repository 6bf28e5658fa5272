"""The shipped check suite: every explainer passes it, and every check fails on an explainer that breaks its promise."""

from __future__ import annotations

import inspect
import os
import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from river import forest, tree

import attributary_explainers
from attributary_explainers import (
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    GeometricReservoir,
    IncrementalExplainer,
    IncrementalMDI,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    IntervalPFI,
    InvalidParameterError,
    MarginalImputer,
    ShiftedImputer,
    SlidingWindowReservoir,
    SlidingWindowSAGE,
    UniformReservoir,
)
from attributary_explainers.checks import Check, CheckFailure, run_checks, state, yield_checks
from attributary_explainers.checks.suite import _CHECKS
from tests.explainers.checks.broken_explainers import BREAKS, SHORT, Swapping, regression

MEMORY = {"memory_is_bounded", "memory_is_bounded_by_names"}
MEASURED = dict.fromkeys(MEMORY, "test_memory.py measures every removal and reservoir over a longer stream")
BY_NAMES = {"memory_is_bounded_by_names": "what is remembered of 2000 names takes long; test_memory.py does it once"}
NOTHING_DRAWN = {"seeds_differ": "PFI with constants draws nothing: there is one value to take"}
NAMED = {"names_of_any_type": "this one is told the names of its features"}
OWN_MODEL = {"model": tree.HoeffdingTreeClassifier(grace_period=20)}
CONSTANTS = {"a": 0.0, "b": 0.0, "noise": 0.0, "kind": "red"}


def small(explainer, reservoir=GeometricReservoir, removal="interventional", **parameters):
    def make(model, seed):
        marginal = isinstance(removal, str)
        return explainer(
            model,
            alpha=0.05,
            n_samples=2,
            reservoir=reservoir(10) if marginal else None,
            removal=removal if marginal else removal(),
            seed=seed,
            **parameters,
        )

    return make


def small_pdp(**parameters):
    return lambda model, seed: IncrementalPDP(model, alpha=0.05, grid_size=3, window=20, seed=seed, **parameters)


def conditional():
    return ConditionalImputer(GeometricReservoir(10), ConditionalSampler(leaf_size=5, forget_after=200, seed=1))


def shifted():
    return ShiftedImputer(GeometricReservoir(10), alpha=0.1)


# Explainer: factory, and what else is handed to the suite: a model, a stream, or a check to leave out with the reason.
# One of each class with all checks, then others of which each makes a choice differently, without those of memory.
MAIN = {
    "IncrementalPFI": (small(IncrementalPFI), BY_NAMES),
    "IncrementalSAGE": (small(IncrementalSAGE), BY_NAMES),
    "IncrementalPDP": (small_pdp(), BY_NAMES),
    "IncrementalMDI": (lambda model, seed: IncrementalMDI(model), OWN_MODEL),
    "IntervalPFI": (lambda model, seed: IntervalPFI(model, interval=6, seed=seed), {}),
    "SlidingWindowSAGE": (
        lambda model, seed: SlidingWindowSAGE(model, window=12, stride=6, n_samples=1, seed=seed),
        {},
    ),
}
VARIANTS = {
    "PFI product": (small(IncrementalPFI, removal="product", groups={"numbers": ["a", "b"]}), {}),
    "PFI observational": (small(IncrementalPFI, removal=shifted), {}),
    "PFI observational-trees": (small(IncrementalPFI, removal=conditional), {}),
    "PFI constant": (small(IncrementalPFI, removal=lambda: ConstantImputer(CONSTANTS)), NOTHING_DRAWN),
    "PFI independent": (small(IncrementalPFI, sampling="independent", reservoir=UniformReservoir), {}),
    "PFI labels": (small(IncrementalPFI, loss="zero_one", reservoir=SlidingWindowReservoir), {}),
    "PFI absent": (small(IncrementalPFI, missing="absent"), {}),
    "PFI skip": (small(IncrementalPFI, missing="skip"), {}),
    "PFI replaced": (small(IncrementalPFI, missing=dict(CONSTANTS)), {}),
    "PFI regression": (small(IncrementalPFI), regression()),
    "SAGE product": (
        small(IncrementalSAGE, removal=lambda: MarginalImputer(GeometricReservoir(10), strategy="product")),
        {},
    ),
    "SAGE observational": (small(IncrementalSAGE, removal=shifted, n_permutations=2), {}),
    "SAGE observational-trees": (small(IncrementalSAGE, removal=conditional, n_permutations=2), {}),
    "SAGE constant": (small(IncrementalSAGE, removal=lambda: ConstantImputer(CONSTANTS)), {}),
    "SAGE uncorrected": (small(IncrementalSAGE, sampling="independent", bias_correction=False), {}),
    "SAGE brier": (small(IncrementalSAGE, loss="brier", groups={"numbers": ["a", "b"]}), {}),
    "SAGE regression": (small(IncrementalSAGE, n_permutations=2), regression()),
    "PDP regression": (
        lambda model, seed: IncrementalPDP(model, alpha=0.05, grid_size=3, window=20, seed=seed),
        regression(),
    ),
    "PDP lines": (
        lambda model, seed: IncrementalPDP(model, ["a", "kind"], n_ice=3, categorical=["kind"], window=40, seed=seed),
        NAMED,
    ),
    "MDI forest": (
        lambda model, seed: IncrementalMDI(model),
        {"model": forest.ARFClassifier(n_models=2, grace_period=20, seed=1)},
    ),
}


def checks_of(name: str) -> list[Check]:
    make, options = {**MAIN, **VARIANTS}[name]
    arguments: dict[str, Any] = {"without": {}}
    for key, value in options.items():
        arguments.update({key: value} if key in ("model", "stream", "horizon") else {"without": {key: value}})
    if name in VARIANTS:
        arguments["without"] = {**arguments["without"], **MEASURED}
    arguments.setdefault("stream", SHORT)
    return list(yield_checks(make, **arguments))


def long_if_of_memory(check: Check) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if str(check) in MEMORY else []


@pytest.mark.parametrize(
    "check", [pytest.param(c, id=f"{name}-{c}", marks=long_if_of_memory(c)) for name in MAIN for c in checks_of(name)]
)
def test_every_explainer_passes(check):
    check()


@pytest.mark.long
@pytest.mark.parametrize("name", VARIANTS)
def test_every_way_to_remove_features_passes(name):
    for check in checks_of(name):  # a failure says which check it is of
        check()


EVERYTHING = {"is_made", *(check.__name__ for check, _ in _CHECKS)}
OF_MODELS = {"model_predicts_nothing", "model_predicts_nan", "model_predicts_infinity", "model_raises"}
NOT_YIELDED = {
    "IncrementalPFI": {"targets_not_finite"},  # of regression
    "IncrementalSAGE": {"targets_not_finite"},
    "IncrementalPDP": {"targets_not_finite", "prediction_given"},  # reads no loss
    "IncrementalMDI": {"targets_not_finite", "prediction_given", "seeds_differ", *OF_MODELS},  # asks for no prediction
    "IntervalPFI": {"targets_not_finite"},
    "SlidingWindowSAGE": {"targets_not_finite"},
}


def test_every_concrete_explainer_goes_through_the_suite():
    concrete = {
        name
        for name in attributary_explainers.__all__
        if inspect.isclass(cls := getattr(attributary_explainers, name))
        and issubclass(cls, IncrementalExplainer)
        and not inspect.isabstract(cls)
    }
    assert set(MAIN) == concrete


@pytest.mark.parametrize("name", MAIN)
def test_the_checks_that_are_yielded_are_those_that_apply(name):
    names = [str(check) for check in checks_of(name)]
    assert len(set(names)) == len(names)
    assert set(names) == EVERYTHING - NOT_YIELDED[name] - MAIN[name][1].keys()


def test_a_regression_has_its_own_checks():
    names = {str(check) for check in checks_of("PFI regression")}
    assert names == EVERYTHING - {"labels_of_any_type"} - MEMORY


def test_what_is_left_out_is_left_out_for_a_reason_that_is_reported():
    make, _ = MAIN["IncrementalMDI"]
    report = run_checks(make, **OWN_MODEL, stream=SHORT, without=MEASURED)
    assert report.passed, report
    assert not report.failures
    assert {result.name for result in report.results} == EVERYTHING - NOT_YIELDED["IncrementalMDI"] - MEMORY
    assert "left out  memory_is_bounded: test_memory.py measures" in str(report)
    assert str(report).endswith(f"{len(report.results)} of {len(report.results)} checks passed")


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"without": {"no_such_check": "-"}}, "without"),
        ({"horizon": 10}, "horizon"),
        ({"stream": SHORT[:10]}, "stream"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, parameter):
    with pytest.raises(InvalidParameterError) as error:
        next(yield_checks(MAIN["IncrementalPFI"][0], **arguments))
    assert error.value.parameter == parameter


SCRIPT = """
import hashlib
from tests.explainers.checks.broken_explainers import SHORT
from tests.explainers.checks.test_suite import MAIN, VARIANTS
from attributary_explainers.checks.subject import Subject
for name, (make, options) in {**MAIN, **VARIANTS}.items():
    options = {key: value for key, value in options.items() if key in ("model", "stream")}
    trace = Subject(make, **{"stream": SHORT, **options}).trace()
    print(name, hashlib.sha256("".join(trace).encode()).hexdigest())
"""


@pytest.mark.long
def test_seeded_runs_repeat_in_another_process_whatever_its_hashes():
    outputs = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert len(outputs[0]) == len(MAIN) + len(VARIANTS)
    assert outputs[0] == outputs[1]


def failing(make, **options):
    # A horizon of twice the memory of Swapping: by then it has forgotten what it is to forget.
    return {failure.check: failure for failure in run_checks(make, horizon=100, **options).failures}


THE_LEAST = list(yield_checks(lambda model, seed: Swapping(model, seed=seed), stream=SHORT, horizon=100))


@pytest.mark.parametrize("check", THE_LEAST, ids=str)
def test_the_least_explainer_passes(check):
    check()


def test_all_checks_apply_to_the_least_explainer_but_that_of_regression():
    assert {str(check) for check in THE_LEAST} == EVERYTHING - {"targets_not_finite"}


@pytest.mark.long
@pytest.mark.parametrize("name", BREAKS)
def test_each_check_fails_where_its_promise_is_broken_and_no_other_does(name):
    cls, expected, options = BREAKS[name]
    found = failing(lambda model, seed: cls(model, seed=seed), **options)
    assert set(found) == expected, "\n".join(map(str, found.values()))
    for check, failure in found.items():
        assert str(failure) == f"{check}: expected {failure.expected}; saw {failure.seen}"
        assert failure.expected
        assert failure.seen


def test_every_check_can_fail():
    assert set().union(*(expected for _, expected, _ in BREAKS.values())) == EVERYTHING


def test_an_explainer_that_raises_at_once_fails_every_check_that_uses_it():
    class Raises(Swapping):
        def explain_one(self, x, y=None, *, y_pred=None):
            raise KeyError("size")

    found = failing(lambda model, seed: Raises(model, seed=seed), stream=SHORT)
    untouched = {"is_made", "before_any_data", "other_snapshots_refused", "other_parameters_refused"}
    assert set(found) == EVERYTHING - untouched - {"targets_not_finite"}
    assert "saw KeyError('size')" in str(found["runs_repeat"])
    assert isinstance(found["runs_repeat"].__cause__, KeyError)


def test_a_factory_that_makes_no_explainer_or_the_same_one_is_told_so():
    model = tree.HoeffdingTreeClassifier()
    one = Swapping(model, seed=1)
    for make, said in ((lambda m, s: print, "to make an IncrementalExplainer"), (lambda m, s: one, "a new explainer")):
        with pytest.raises(CheckFailure, match=said):
            next(yield_checks(make))()


def test_a_miscount_is_found_with_the_observation():
    class CountsTwice(Swapping):
        def store(self, x):
            super().store(x)
            self._n_skipped += len(x) == 0

    failure = failing(lambda model, seed: CountsTwice(model, seed=seed), stream=SHORT)["empty_observations"]
    assert "n_observations + n_skipped to be 1 after as many observations" in str(failure)
    assert "0 + 2 after {}" in str(failure)


class DrawnNowAndThen:
    """A subject that draws nothing, in a process whose other threads draw during the traces that are numbered."""

    def __init__(self, during):
        self._during = during
        self._n = 0

    def trace(self):
        self._n += 1
        if self._n in self._during:
            random.random()
            np.random.random()
        return ["the same"]


def test_draws_of_another_thread_now_and_then_are_not_taken_for_those_of_the_explainer():
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        state.global_random_state(DrawnNowAndThen({1, 2, 5}))
        with pytest.raises(CheckFailure, match=r"another of `numpy\.random` and `random`"):
            state.global_random_state(DrawnNowAndThen({1, 2, 3}))
    finally:
        over.set()
        other.join()


def test_in_a_process_without_other_threads_a_single_draw_is_the_explainers(monkeypatch):
    monkeypatch.setattr(state.sys, "_current_frames", lambda: {threading.get_ident(): None})
    with pytest.raises(CheckFailure, match=r"another of `numpy\.random` and `random`"):
        state.global_random_state(DrawnNowAndThen({1}))
