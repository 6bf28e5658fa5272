"""The naive path is the truth: when the fast one is not taken, that this is said, and that nothing is lost by it."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import ensemble, linear_model, naive_bayes, preprocessing, tree

from attributary_explainers import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from attributary_explainers.errors import (
    FastPathFaultWarning,
    NaivePathWarning,
    SlowFeatureWarning,
    UntestedRiverWarning,
)
from attributary_explainers.evaluation import function as functions
from attributary_explainers.evaluation.evaluator import Evaluator, NotCoveredError
from attributary_explainers.evaluation.function import FastFunction

from ..fast_paths.harness import learnt
from ..fast_paths.streams import agrawal, blobs, line
from ..fast_paths.twins import assert_close, explain_both, follow_twins, naive_twin, published
from .harness import fast_function, twins


def logistic() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def pairs(n: int, seed: int = 1) -> Any:
    return blobs(n, labels=(True, False), seed=seed)


def explain_and_learn(explainer: Any, model: Any, stream: Any) -> None:
    for x, y in stream:
        explainer.explain_one(x, y)
        model.learn_one(x, y)


def share_of_the_fast_path(model: Any, n: int = 30) -> float:
    """Explain and learn a stream of two classes, equal to the naive path at every step."""
    return follow_twins(model, *twins(model), pairs(n))


def test_a_subclass_is_asked_itself_and_that_is_said_once() -> None:
    class Mine(linear_model.LogisticRegression):
        def predict_proba_one(self, x: Any) -> Any:
            p = 0.5 + 0.4 * np.tanh(x["x0"])
            return {False: 1.0 - p, True: p}

    with pytest.warns(NaivePathWarning, match="there is no fast path for .*Mine") as said:
        explainers = [IncrementalPFI(Mine(), seed=1), IncrementalPFI(Mine(), seed=1)]
    assert len(said) == 1
    assert not isinstance(explainers[0]._function, FastFunction)
    for x, y in pairs(30):
        found = [explainer.explain_one(x, y) for explainer in explainers]
    assert found[0] == found[1]
    assert found[0]["x0"] != 0.0 == found[0]["x1"]


def test_a_subclass_within_a_pipeline() -> None:
    class Mine(linear_model.LogisticRegression):
        pass

    with pytest.warns(NaivePathWarning) as said:
        assert share_of_the_fast_path(preprocessing.StandardScaler() | Mine(), 40) == 0.0
    assert len(said) == 1


def itself(model: Any) -> Any:
    return model


@pytest.mark.parametrize(
    ("make", "part", "name"),
    [
        (logistic, itemgetter("LogisticRegression"), "predict_proba_one"),
        (logistic, itemgetter("StandardScaler"), "transform_one"),
        (
            lambda: ensemble.BaggingClassifier(linear_model.LogisticRegression(), n_models=2, seed=1),
            itemgetter(0),
            "predict_proba_one",
        ),
        (linear_model.LogisticRegression, itself, "predict_one"),
        (linear_model.LogisticRegression, itself, "predict_proba_one"),
    ],
    ids=["last step", "scaler", "member", "model itself", "its probabilities"],
)
def test_a_part_with_a_method_of_its_own(make: Callable[[], Any], part: Callable[[Any], Any], name: str) -> None:
    model = make()
    patched = part(model)

    def own(x: Any) -> Any:
        p = 1.0 / (1.0 + np.exp(-x["x0"] - 2.0 * x["x1"]))
        return {f: 2.0 * v for f, v in x.items()} if name == "transform_one" else {False: 1.0 - p, True: p}

    setattr(patched, name, own)
    fast, naive = twins(model)
    with pytest.warns(NaivePathWarning, match=f"this {type(patched).__name__} has a {name} of its own"):
        assert follow_twins(model, fast, naive, pairs(30)) == 0.0
    assert fast.n_observations > 20


def other_river(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    monkeypatch.setattr(functions, "version", lambda _: release)
    functions.is_newer_than_tested.cache_clear()


def test_the_tested_release_of_river_is_the_installed_one_and_the_packages_requirement_its_series() -> None:
    assert version("river") == functions.TESTED_RIVER, "run tests/explainers/fast_paths with it, and then name it here"
    series, minor = functions.TESTED_RIVER.split(".")[:2]
    requirement = f'"river>={series}.{minor},<{series}.{int(minor) + 1}"'
    assert requirement in (Path(__file__).parents[3] / "pyproject.toml").read_text()


@pytest.mark.parametrize("release", ["0.26.2", "0.26.10", "0.26.2rc1"])
def test_a_newer_release_of_river_takes_fast_paths_and_says_so_once(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_river(monkeypatch, release)
    with pytest.warns(UntestedRiverWarning, match=r"is newer than 0\.26\.1") as said:
        assert share_of_the_fast_path(logistic()) > 0.9
    assert len(said) == 1
    assert share_of_the_fast_path(naive_bayes.GaussianNB()) > 0.9  # a warning would be an error here


@pytest.mark.parametrize(("release", "until"), [("0.26.1", 2048), ("0.26.2", 1984 + 64)])
def test_a_newer_release_of_river_is_compared_more_often(
    release: str, until: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_river(monkeypatch, release)
    asked: list[Any] = []
    function = fast_function(learnt(logistic(), pairs(50)))
    naive = function._naive
    monkeypatch.setattr(function, "_naive", lambda x: asked.append(x) or naive(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntestedRiverWarning)
        for _ in range(until):
            function.many([{f"x{i}": 1.0 for i in range(4)}])
    # The batches 1, 2, 4, … 2048, and every 1024th, or every 64th, of which some are the same.
    assert len(asked) == (12 if release == "0.26.1" else 12 + 32 - 6)
    assert set(function.counts) == {"fast"}


@pytest.mark.parametrize("release", ["0.27.0", "0.25.9", "1.0"])
def test_another_series_of_river_is_asked_row_by_row(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other_river(monkeypatch, release)
    with pytest.warns(NaivePathWarning, match=rf"tested with River 0\.26, and this is River {release}") as said:
        assert share_of_the_fast_path(logistic()) == 0.0
    assert len(said) == 1


@pytest.mark.parametrize("release", ["0.26.0", "0.26.1"])
def test_nothing_is_said_of_a_tested_release(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other_river(monkeypatch, release)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not functions.is_newer_than_tested()


class Wrong(Evaluator):
    """The right evaluator until `when`, and from then on `fault` of its predictions."""

    def __init__(self, inner: Evaluator, when: list[bool], fault: Callable[[Any], Any]) -> None:
        self.inner, self.when, self.fault = inner, when, fault

    @property
    def labels(self) -> Any:  # type: ignore[override]
        return self.inner.labels

    def predict(self, X: Any) -> Any:
        P = self.inner.predict(X)
        return self.fault(P.copy()) if self.when[0] else P


def wrong(monkeypatch: pytest.MonkeyPatch, fault: Callable[[Any], Any]) -> list[bool]:
    when = [False]
    make = functions.make_evaluator
    monkeypatch.setattr(functions, "make_evaluator", lambda model, schema: Wrong(make(model, schema), when, fault))
    return when


def off(P: Any) -> Any:
    P[:, 0] += 1e-6
    return P


def test_a_path_that_is_off_is_left_at_the_next_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    when = wrong(monkeypatch, off)
    model = logistic()
    fast, naive = twins(model)
    stream = pairs(70)
    assert follow_twins(model, fast, naive, (next(stream) for _ in range(21))) == 1.0
    when[0] = True
    taken = fast._function.counts["fast"]
    with pytest.warns(FastPathFaultWarning, match=r"gives .* and the model") as said:
        explain_and_learn(fast, model, stream)
    assert [one.category for one in said if one.category is not SlowFeatureWarning] == [FastPathFaultWarning]
    # 21 batches were right, and 10 have not been compared; the 32nd is, and is then evaluated by the model.
    assert fast._function.counts["fast"] - taken == 10
    assert fast._function.counts["its fast path has been seen to differ from the model"] == 49 - 10
    assert fast.n_observations == 69


def test_the_observation_of_a_comparison_is_explained_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, off)[0] = True
    with pytest.warns(FastPathFaultWarning):  # the first batch is compared
        assert share_of_the_fast_path(logistic()) == 0.0


def test_every_1024th_batch_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    when = wrong(monkeypatch, off)
    model = learnt(logistic(), pairs(50))
    function = fast_function(model)
    row = {f"x{i}": 1.0 for i in range(4)}
    for _ in range(2049):
        function.many([row])
    when[0] = True
    for _ in range(1022):
        function.many([row])
    with pytest.warns(FastPathFaultWarning):
        assert function.many([row]) == [model.predict_proba_one(row)]
    assert function.counts["fast"] == 3071


def test_batches_are_compared_that_are_powers_of_two_or_each_1024th(monkeypatch: pytest.MonkeyPatch) -> None:
    model = learnt(logistic(), pairs(50))
    function = fast_function(model)
    row = {f"x{i}": 1.0 for i in range(4)}
    compared: list[int] = []
    monkeypatch.setattr(FastFunction, "_compare", lambda self, *_: compared.append(n))
    monkeypatch.setattr(functions, "is_newer_than_tested", lambda: False)
    for n in range(1, 5200):
        function.many([row])
        if n % 700 == 0:
            function = copy.deepcopy(function)  # goes on counting
        if n == 4600:
            monkeypatch.setattr(functions, "is_newer_than_tested", lambda: True)
            function = copy.deepcopy(function)
    assert compared == [*(2**i for i in range(11)), 2048, 3072, 4096, *range(4608, 5200, 64)]
    assert function.counts == {"fast": 5199}
    assert (function.n_evaluated, function.n_naive) == (5199, 0)


def raising(_P: Any) -> Any:
    raise IndexError("index 3 is out of bounds")


def test_a_path_that_raises_costs_no_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    when = wrong(monkeypatch, raising)
    model = logistic()
    fast, naive = twins(model)
    stream = pairs(60)
    assert follow_twins(model, fast, naive, (next(stream) for _ in range(30))) > 0.9
    when[0] = True
    with pytest.warns(FastPathFaultWarning, match=r"raised IndexError\('index 3 is out of bounds'\)") as said:
        assert follow_twins(model, fast, naive, stream) == 0.0
    assert len(said) == 1


def test_a_path_that_raises_when_it_is_made_costs_no_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_evaluator(model: Any, schema: Any) -> Any:
        raise AttributeError("no such attribute")

    monkeypatch.setattr(functions, "make_evaluator", make_evaluator)
    with pytest.warns(FastPathFaultWarning, match="no such attribute") as said:
        assert share_of_the_fast_path(logistic()) == 0.0
    assert len(said) == 1


def test_a_state_that_is_not_covered_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_now(_P: Any) -> Any:
        raise NotCoveredError("not now")

    when = wrong(monkeypatch, not_now)
    model = logistic()
    fast, naive = twins(model)
    stream = pairs(60)
    for covered in (True, False, True):
        when[0] = not covered
        assert (follow_twins(model, fast, naive, (next(stream) for _ in range(20))) > 0.9) == covered
    assert fast._function.counts["not now"] == 20


def test_an_error_of_the_model_itself_is_no_fault_of_the_path() -> None:
    function = fast_function(learnt(linear_model.LinearRegression(), line(20)), "number")
    with pytest.raises(TypeError):
        function.many([{f"x{i}": 1.0 for i in range(5)}, {f"x{i}": "text" if i else 1.0 for i in range(5)}])
    assert function.counts["fast"] == 0


@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
@pytest.mark.parametrize(
    "tied", [linear_model.LogisticRegression, partial(tree.HoeffdingTreeClassifier, leaf_prediction="mc")]
)
def test_classes_that_are_equally_probable_are_no_fault(tied: Any, loss: str) -> None:
    # Not a class is told from another: every prediction is a tie, and which one is named only the model knows.
    rows: list[Any] = [({"a": float(i % 2), "b": float(i % 3)}, "ba"[i // 2 % 2]) for i in range(40)]
    model = tied()
    if isinstance(model, linear_model.LogisticRegression):
        rows = [(x, y == "b") for x, y in rows]
        learnt(model, rows)
        model._weights.clear()
        model.intercept = 0.0
    else:
        learnt(model, rows)
    fast, naive = twins(model, loss=loss)
    for i, (x, y) in enumerate(rows):
        explain_both(fast, naive, x, y, i)
    assert (fast._function.counts["two classes are equally probable"] == 40) == (loss == "zero_one")


def test_a_deep_copy_of_an_explainer_asks_its_own_model() -> None:
    model = learnt(logistic(), pairs(60))
    explainer = IncrementalPFI(model, n_samples=2, seed=1)
    rows = list(pairs(40, seed=3))
    for x, y in rows[:10]:
        explainer.explain_one(x, y)
    copied, same = copy.deepcopy(explainer), naive_twin(copy.deepcopy(explainer))
    learnt(model, [(x, not y) for x, y in rows])
    for x, y in rows[10:]:
        explain_both(copied, same, x, y, "of a copy")
        assert copied._function(x) == copied.model.predict_proba_one(x) != model.predict_proba_one(x)
    assert copied._function.counts["fast"] > 30


@pytest.mark.parametrize("loss", [None, "absolute", lambda y, p: 2.0 * abs(y - p)])
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_a_diverging_model_is_skipped_for_the_same_reason(explainer: Any, loss: Any) -> None:
    model = linear_model.LinearRegression(intercept_lr=0.0)
    fast, naive = twins(model, explainer, loss=loss)
    rows = list(line(70))
    for i, (x, y) in enumerate(rows):
        with np.errstate(all="ignore"):
            explain_both(fast, naive, x, y, i)
        model.learn_one(x, y)
        if i == 20:
            model._weights["x0"] = 1e308
        if i == 35:  # inf - inf: no number at all
            model._weights["x0"], model._weights["x3"] = math.inf, -math.inf
        if i == 50:
            model._weights["x0"] = model._weights["x3"] = 1.0
    assert fast.skipped["no_prediction"] >= 29
    assert fast._function.counts["fast"] > 10


def test_pdp_in_batches() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=50)
    fast, naive = IncrementalPDP(model, n_ice=3, seed=1), naive_twin(IncrementalPDP(model, n_ice=3, seed=1))
    for i, (x, y) in enumerate(agrawal(120)):
        fast.explain_one(x, y)
        naive.explain_one(x, y)
        if i % 10 == 9:
            assert_close([published(fast), fast.ice], [published(naive), naive.ice], f"step {i}")
        model.learn_one(x, y)
    assert fast._function.counts["fast"] > 200
    assert set(fast._function.counts) == {"fast"}


def test_of_equally_probable_classes_the_model_names_its_own() -> None:
    model = naive_bayes.GaussianNB()
    for y in ("b", "a"):
        model.learn_one({"n": 1.0, "m": 2.0}, y)
        model.learn_one({"n": 3.0, "m": 1.0}, y)
    x = {"n": 1.5, "m": 1.0}
    function = fast_function(model)
    schema, row = function.encode(x)
    found = function.first(function.predict(row[None]), x)
    assert isinstance(found, dict)
    assert list(found) == list(model.predict_proba_one(x)) == ["b", "a"]
    assert max(found, key=found.__getitem__) == model.predict_one(x)
    assert schema.features == ("m", "n")


@pytest.mark.parametrize("loss", ["squared", lambda y, p: 2.0 * abs(y - p)])
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_only_the_observation_itself_has_no_finite_prediction(explainer: Any, loss: Any) -> None:
    model = linear_model.LinearRegression()
    model.learn_one({"n": 0.5}, 1.0)
    model._weights["n"] = 1e308
    fast, naive = twins(model, explainer, loss=loss, n_samples=2)
    for value in (1e-308, 2e-308, 1e-308, 10.0, 3e-308):
        with np.errstate(all="ignore"):
            explain_both(fast, naive, {"n": value}, 1.0, value)
    assert fast.skipped["no_prediction"] >= 1
    assert set(fast._function.counts) == {"fast"}
