"""Observations of any form, one after another: explained together as alone, by copies, and where a model refuses."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from river import compose, forest, linear_model, naive_bayes, preprocessing, tree

from attributary_explainers import GeometricReservoir, IncrementalPFI, IncrementalSAGE, LaggedReservoir
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.incremental import removal as batching
from attributary_explainers.incremental.explainers import Explainers

from ..fast_paths.streams import blobs, line, texts
from ..fast_paths.twins import assert_close, bits, naive_twin, published

Row = dict[str, Any]
Make = Callable[[], Any]
N = 260


def of_arrays(n: int) -> Iterator[tuple[Row, Any]]:
    """Rows as they come of arrays and data frames."""
    for x, y in blobs(n, labels=(False, True)):
        yield {name: np.float64(value) for name, value in x.items()}, y


MODELS: dict[str, tuple[Make, Callable[[int], Any]]] = {
    "scaled": (lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(), blobs),
    "numbers": (lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(), line),
    "tree": (lambda: tree.HoeffdingTreeClassifier(grace_period=20), blobs),
    "forest": (lambda: forest.ARFClassifier(n_models=3, seed=1, grace_period=20), blobs),
    "bayes": (naive_bayes.GaussianNB, blobs),
    "arrays": (naive_bayes.GaussianNB, of_arrays),
    "texts": (lambda: tree.HoeffdingTreeClassifier(grace_period=20), texts),
}


def labelled(stream: Callable[[int], Any], n: int) -> list[tuple[Row, Any]]:
    """A stream whose labels a logistic regression can take."""
    kinds = {"labels": (False, True)} if stream is blobs else {}
    return [(dict(x), y) for x, y in stream(n, **kinds)]


def strange(stream: list[tuple[Row, Any]]) -> Iterator[tuple[Row, Any]]:
    """Observations of another form between the others: in another order, with gaps, other types, one feature more."""
    for i, (x, y) in enumerate(stream):
        name = next(iter(x))
        if i % 40 == 25:
            x = dict(reversed(x.items()))
        elif i % 40 == 29:
            x = {**x, name: None}
        elif i % 40 == 31:
            x = {**x, name: math.nan}
        elif i % 40 == 33:
            x = {**x, name: 2**60}
        elif i % 40 == 35:
            x = {key: value for key, value in x.items() if key != name}
        elif i % 40 == 37:
            x = {**x, "more": 1.0}
        elif i % 40 == 38:
            x = {**x, name: 10**400}
        elif i % 40 == 39:
            x = {**x, name: "text"}
        yield x, y


def is_plain(x: Row) -> bool:
    """Whether every model can learn it."""
    return all(isinstance(value, str) or (value is not None and abs(value) < 1e9) for value in x.values())


def explainers(
    model: Any, reservoir: Callable[[], Any], seeds: tuple[Any, Any] = (1, 2), **shared: Any
) -> dict[str, Any]:
    return {
        "pfi": IncrementalPFI(model, seed=seeds[0], alpha=0.05, n_samples=3, reservoir=reservoir(), **shared),
        "sage": IncrementalSAGE(model, seed=seeds[1], alpha=0.05, n_samples=4, reservoir=reservoir(), **shared),
    }


def run(
    name: str,
    reservoir: Callable[[], Any],
    stream: list[tuple[Row, Any]],
    alone: bool,
    by_model: bool = False,
    **shared: Any,
) -> Any:
    """What explainers say after each observation, and all that is stored of them at the end."""
    model = MODELS[name][0]()
    some = explainers(model, reservoir)
    if by_model:
        for explainer in some.values():
            naive_twin(explainer)
    together = Explainers(model, some)
    found, names = [], tuple(stream[0][0])
    for x, y in stream:
        if alone:
            found.append({of: explainer.explain_one(x, y) for of, explainer in some.items()})
        else:
            given = dict(x)
            try:
                together.predict(given)
            except (TypeError, OverflowError):  # River's, of a row that no model takes
                found.append({"raised": together.n_predicted})
                continue
            given.clear()  # the caller may do that
            found.append(together.explain(y))
        if tuple(x) == names and is_plain(x):
            model.learn_one(x, y)
    return found, {of: published(explainer) for of, explainer in some.items()}


@pytest.mark.parametrize("reservoir", [lambda: GeometricReservoir(20), lambda: LaggedReservoir(20, 5, 30)])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.share(2, "name", "reservoir")
def test_an_observation_is_explained_as_by_asking_the_model(name: str, reservoir: Callable[[], Any]) -> None:
    stream = labelled(MODELS[name][1], N)
    found, expected = (run(name, reservoir, stream, True, by_model=by_model) for by_model in (False, True))
    for i, (one, other) in enumerate(zip(found[0], expected[0], strict=True)):
        assert_close(one, other, f"observation {i}")


@pytest.mark.parametrize("name", ["forest", "texts"])
def test_an_observation_with_one_feature_more_is_explained_as_by_asking_the_model(name: str) -> None:
    stream = labelled(MODELS[name][1], 120)
    stream = [({**x, "more": float(i)} if i % 20 == 19 else x, y) for i, (x, y) in enumerate(stream)]
    found, expected = (
        run(name, lambda: GeometricReservoir(20), stream, True, by_model=by_model) for by_model in (False, True)
    )
    for i, (one, other) in enumerate(zip(found[0], expected[0], strict=True)):
        assert_close(one, other, f"observation {i}")
    assert "more" in found[0][-1]["pfi"]


@pytest.mark.parametrize("missing", ["absent", "skip", "value", {"x0": 0.0}], ids=str)
@pytest.mark.parametrize("name", ["scaled", "tree", "bayes"])
@pytest.mark.share(3, "name", "missing")
def test_observations_of_other_forms_are_explained_by_themselves_as_by_a_copy(name: str, missing: Any) -> None:
    """Nothing that was made for the form before is left: a copy, which has nothing of it, says the same."""
    stream = list(strange(labelled(MODELS[name][1], N)))
    model = MODELS[name][0]()
    together = Explainers(model, explainers(model, lambda: GeometricReservoir(20), missing=missing))
    names = tuple(stream[0][0])
    for i, (x, y) in enumerate(stream):
        other = copy.deepcopy(together) if i % 7 == 0 else None
        found, raised = [], False
        for one in (together, other):
            try:
                found.append(None if one is None else bits(one.explain_one(x, y)))
            except (TypeError, OverflowError) as error:  # River's, of a row that no model takes
                raised = True
                found.append(repr(error))
        assert other is None or found[0] == found[1], i
        if tuple(x) == names and is_plain(x) and not raised:
            model.learn_one(x, y)


def test_what_the_fast_path_refuses_the_model_is_asked_with_the_same_draws() -> None:
    """One of the two refuses each third observation, with the draws made; the other one has no fast path."""
    by_name = {}
    for refuses in (True, False):
        model = MODELS["bayes"][0]()
        some = explainers(model, lambda: GeometricReservoir(20))
        together = Explainers(model, some)
        assert isinstance(together.function, FastFunction)
        own, counter = together.function.predict, itertools.count()

        def refusing(X: Any, own: Any = own, counter: Any = counter) -> Any:
            if next(counter) % 3 == 2:
                raise NotCoveredError("this time not")
            return own(X)

        if refuses:
            together.function.predict = refusing  # type: ignore[method-assign]
        for x, y in labelled(blobs, N):
            found = together.explain_one(x, y)
            model.learn_one(x, y)
        by_name[refuses] = found
        assert (together.paths["this time not"] > N // 4) == refuses
    for name, values in by_name[False].items():
        assert by_name[True][name] == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda of: pickle.loads(pickle.dumps(of))], ids=["copy", "bytes"])
def test_a_copy_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    model = MODELS["tree"][0]()
    together = Explainers(model, explainers(model, lambda: GeometricReservoir(20)))
    stream = labelled(blobs, N)
    for x, y in stream[:100]:
        together.explain_one(x, y)
        model.learn_one(x, y)
    other = copied(together)
    for x, y in stream[100:]:
        assert bits(together.explain_one(x, y)) == bits(other.explain_one(x, y))
        for of in (together, other):
            of.model.learn_one(x, y)


def test_a_model_that_raises_is_counted() -> None:
    """Of a row that only the model refuses, when its fast path does not answer."""
    scaler = preprocessing.StandardScaler()
    model = scaler | linear_model.LogisticRegression()
    pfi = IncrementalPFI(model, seed=1, n_samples=2, reservoir=GeometricReservoir(20))
    for x, y in labelled(blobs, 60):
        pfi.explain_one(x, y)
        model.learn_one(x, y)
    scaler.vars["x0"] = -1.0  # the root of which is complex: River raises
    with pytest.warns(UserWarning, match="raised"):
        pfi.explain_one(*labelled(blobs, 61)[-1])
    assert pfi.skipped["model_error"] == 1


def test_a_pipeline_that_learns_while_it_predicts_is_asked_itself() -> None:
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    sage = IncrementalSAGE(model, seed=1, n_samples=2, n_permutations=2, reservoir=GeometricReservoir(20))
    for x, y in labelled(blobs, 60):
        sage.explain_one(x, y)
        model.learn_one(x, y)
    assert isinstance(sage._function, FastFunction)
    before, by_model = sage.n_observations, sage._function.n_naive
    with compose.learn_during_predict():
        sage.explain_one(*labelled(blobs, 61)[-1])
    assert (sage.n_observations, sage._function.n_naive) == (before + 1, by_model + 1)


def test_importances_are_new_dicts_and_increments_are_copies() -> None:
    model = MODELS["numbers"][0]()
    pfi = IncrementalPFI(model, seed=1)
    seen = []
    for x, y in line(40):
        found = pfi.explain_one(x, y)
        seen.append((found, dict(found), *pfi.latest_increments, pfi.latest_increments[1].copy()))
        model.learn_one(x, y)
    assert len({id(found) for found, *_ in seen}) == len(seen)
    for found, then, _, increments, before in seen:
        assert found == then
        assert increments.tolist() == before.tolist()


@pytest.mark.parametrize("largest", [1, 500, 3000])
def test_wide_observations_are_evaluated_in_slices_to_the_same_bits(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a slice of one player or coalition on; a thousand features would be 80 MB of rows otherwise."""

    def explained() -> list[Any]:
        model = MODELS["scaled"][0]()
        shared: dict[str, Any] = {"alpha": 0.05, "reservoir": LaggedReservoir(20, 5, 30)}
        walks = IncrementalSAGE(model, seed=2, n_samples=4, n_permutations=2, **shared)
        pfi = IncrementalPFI(model, seed=1, n_samples=3, alpha=0.05, reservoir=GeometricReservoir(20))
        together, rng, found = Explainers(model, {"pfi": pfi, "sage": walks}), np.random.default_rng(1), []
        for _ in range(60):
            x = {f"x{j}": value for j, value in enumerate(rng.normal(size=30).tolist())}
            found.append(bits(together.explain_one(x, x["x0"] > 0.0)))
            model.learn_one(x, x["x0"] > 0.0)
        assert together.n_rows == 1 + 30 * 3 + 29 * 2 * 4
        assert together.paths["fast"] >= 60
        return found

    whole = explained()
    monkeypatch.setattr(batching, "_LARGE", largest)
    assert explained() == whole
