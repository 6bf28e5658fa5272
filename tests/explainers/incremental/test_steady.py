"""Observations of one form, evaluated in the memory of the one before: what is found is the same, to the last bit."""

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
from attributary_explainers.compiled import is_compiling
from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.imputers.generators import CFunctions
from attributary_explainers.imputers.stored import StoredRows
from attributary_explainers.incremental import redrawing, steady
from attributary_explainers.incremental.steady import Steady
from attributary_explainers.incremental.together import Explainers
from attributary_explainers.meanwhile import waiting

from ..fast_paths.streams import blobs, line, texts
from ..fast_paths.twins import bits, published

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


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each observation was evaluated as the one before."""
    taken: list[bool] = []
    predict = Steady.predict

    def counted(self: Steady, *given: Any) -> Any:
        found = predict(self, *given)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(Steady, "predict", counted)
    return taken


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whether compiled code has taken each observation that it was given."""
    found: list[int] = []
    take = steady.take

    def counted(*given: Any) -> int:
        found.append(take(*given))
        return found[-1]

    monkeypatch.setattr(steady, "take", counted)
    return found


def run(name: str, reservoir: Callable[[], Any], stream: list[tuple[Row, Any]], alone: bool, **shared: Any) -> Any:
    """What explainers say after each observation, and all that is stored of them at the end."""
    model = MODELS[name][0]()
    some = explainers(model, reservoir, **shared)
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
    return [bits(one) for one in found], {of: bits(published(explainer)) for of, explainer in some.items()}


@pytest.mark.parametrize("alone", [False, True], ids=["together", "alone"])
@pytest.mark.parametrize("reservoir", [lambda: GeometricReservoir(20), lambda: LaggedReservoir(20, 5, 30)])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.share(2, "name", "reservoir", "alone")
def test_an_observation_that_is_evaluated_as_the_one_before_is_explained_as_any_other(
    name: str,
    reservoir: Callable[[], Any],
    alone: bool,
    steps: list[bool],
    taken: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = labelled(MODELS[name][1], N)
    found = run(name, reservoir, stream, alone)
    n_by_compiled_code = sum(steps) - (2 if alone else 1) if is_compiling() and name != "texts" else 0
    # All but the first one of each, and the one after which the halves of the stored rows have more room.
    assert n_by_compiled_code - 1 <= sum(taken) <= n_by_compiled_code
    assert sum(steps) > 0.85 * N * (2 if alone else 1), "as nearly always"
    monkeypatch.setattr(Steady, "after", classmethod(lambda *_: None))
    assert found == run(name, reservoir, stream, alone)


@pytest.mark.parametrize("reservoir", [lambda: GeometricReservoir(20), lambda: LaggedReservoir(20, 5, 30)])
@pytest.mark.parametrize("sampling", ["independent", "stratified"])
def test_draws_without_halves_are_made_anew_in_the_same_memory(
    sampling: str, reservoir: Callable[[], Any], steps: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> Any:
        model = MODELS["forest"][0]()
        given = {"model": model, "sampling": sampling, "seed": 1}
        plain = {of: IncrementalSAGE(**given, reservoir=reservoir(), **own) for of, own in walks.items()}
        together = Explainers(model, {"pfi": IncrementalPFI(**given, reservoir=reservoir()), **plain})
        said = []
        for x, y in labelled(blobs, 120):
            said.append(bits(together.explain_one(x, y)))
            model.learn_one(x, y)
        return said, [bits(published(explainer)) for explainer in plain.values()]

    walks: dict[str, dict[str, Any]] = {"one draw": {"n_samples": 1}, "as it is": {"bias_correction": False}}
    expected = found()
    assert sum(steps) > 100
    monkeypatch.setattr(Steady, "after", classmethod(lambda *_: None))
    assert expected == found()


@pytest.mark.parametrize("missing", ["absent", "skip", "value", {"x0": 0.0}], ids=str)
@pytest.mark.parametrize("name", ["scaled", "tree", "bayes"])
@pytest.mark.share(3, "name", "missing")
def test_observations_of_other_forms_between_them_are_explained_as_ever(
    name: str, missing: Any, steps: list[bool], taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = list(strange(labelled(MODELS[name][1], N)))
    found = run(name, lambda: GeometricReservoir(20), stream, False, missing=missing)
    assert any(steps)
    assert is_compiling() <= (0 < sum(taken) < sum(steps))
    assert not all(steps)
    monkeypatch.setattr(Steady, "after", classmethod(lambda *_: None))
    assert found == run(name, lambda: GeometricReservoir(20), stream, False, missing=missing)


def test_what_the_fast_path_refuses_the_model_is_asked_with_the_same_draws(steps: list[bool]) -> None:
    """One of the two refuses each third observation, with the draws made; the other one has no fast path."""
    by_name = {}
    for refuses in (True, False):
        model = MODELS["bayes"][0]()
        some = explainers(model, lambda: GeometricReservoir(20))
        together = Explainers(model, some)
        assert isinstance(together.function, FastFunction)
        own, counter = together.function.predict, itertools.count()

        def refusing(X: Any, order: Any, own: Any = own, counter: Any = counter) -> Any:
            if next(counter) % 3 == 2:
                raise NotCoveredError("this time not")
            return own(X, order)

        if refuses:
            together.function.predict = refusing  # type: ignore[method-assign]
        for x, y in labelled(blobs, N):
            found = together.explain_one(x, y)
            model.learn_one(x, y)
        by_name[refuses] = found
        assert (together.paths["this time not"] > N // 4) == refuses
    for name, values in by_name[False].items():
        assert by_name[True][name] == pytest.approx(values, abs=1e-12)
    assert any(steps)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda of: pickle.loads(pickle.dumps(of))], ids=["copy", "bytes"])
def test_a_copy_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    model = MODELS["tree"][0]()
    together = Explainers(model, explainers(model, lambda: GeometricReservoir(20)))
    stream = labelled(blobs, N)
    for x, y in stream[:100]:
        together.explain_one(x, y)
        model.learn_one(x, y)
    other = copied(together)
    assert (other._steady, together._steady is None) == (None, False)
    for x, y in stream[100:]:
        assert bits(together.explain_one(x, y)) == bits(other.explain_one(x, y))
        for of in (together, other):
            of.model.learn_one(x, y)


def test_a_model_that_raises_is_counted_as_ever() -> None:
    """Of a row that only the model refuses, when its fast path does not answer."""
    scaler = preprocessing.StandardScaler()
    model = scaler | linear_model.LogisticRegression()
    pfi = IncrementalPFI(model, seed=1, n_samples=2, reservoir=GeometricReservoir(20))
    for x, y in labelled(blobs, 60):
        pfi.explain_one(x, y)
        model.learn_one(x, y)
    assert pfi._steady is not None
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
    assert sage._steady is not None
    assert isinstance(sage._function, FastFunction)
    before, by_model = sage.n_observations, sage._function.n_naive
    with compose.learn_during_predict():
        sage.explain_one(*labelled(blobs, 61)[-1])
    assert (sage.n_observations, sage._function.n_naive) == (before + 1, by_model + 1)


def test_numbers_of_numpy_whose_sum_is_infinite_warn_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    model = MODELS["bayes"][0]()
    pfi = IncrementalPFI(model, seed=1, n_samples=2, reservoir=GeometricReservoir(20))
    for x, y in of_arrays(60):
        pfi.explain_one(x, y)
        model.learn_one(x, y)
    assert pfi._steady is not None
    assert not pfi._steady.read(dict.fromkeys(x, np.float64(1e308)))
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_draws_are_those_of_numpy_whatever_generator_both_explainers_share(
    kind: Callable[[int], Any], taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(walks: int) -> Any:
        generator = np.random.Generator(kind(1))
        model = MODELS["scaled"][0]()
        both = explainers(model, lambda: LaggedReservoir(20, 5, 30), (generator, generator))
        together = Explainers(model, both)
        both["sage"].n_permutations = walks
        said = []
        for x, y in labelled(blobs, 60):
            said.append(bits(together.explain_one(x, y)))
            model.learn_one(x, y)
        return said, generator.random()

    expected = {walks: found(walks) for walks in (1, 2, 3)}
    assert is_compiling() <= (sum(taken) > 150)
    assert expected[1] != expected[2] != expected[3]
    monkeypatch.setattr(steady, "take", lambda *_: 0)
    assert expected == {walks: found(walks) for walks in (1, 2, 3)}
    monkeypatch.setattr(Steady, "after", classmethod(lambda *_: None))
    assert expected[3] == found(3)


@pytest.mark.skipif(not is_compiling(), reason="kernels are not compiled")
@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_orders_are_shuffled_as_numpy_does(kind: Callable[[int], Any]) -> None:
    assert np.__version__.rpartition(".")[0] in redrawing._PROVED_NUMPY, "not proved: its own `shuffle` is called"
    one, other = (np.random.Generator(kind(7)) for _ in range(2))
    functions = CFunctions(other)
    with waiting():
        for i in range(500):
            expected, order = (np.arange(i % 50, dtype=np.int64) for _ in range(2))
            one.shuffle(expected)
            redrawing._shuffle(functions.next_uint32, functions.state, order)
            assert order.tolist() == expected.tolist()
            if i % 3 == 0:
                assert one.random() == other.random()
    assert repr(one.bit_generator.state) == repr(other.bit_generator.state)


def test_what_compiled_code_refuses_has_changed_nothing_and_rows_in_other_memory_are_found(taken: list[int]) -> None:
    model = MODELS["scaled"][0]()
    both = explainers(model, lambda: GeometricReservoir(20))
    together = Explainers(model, both)
    stream = labelled(blobs, 100)
    for x, y in stream[:60]:
        together.explain_one(x, y)
        model.learn_one(x, y)
    one = together._steady
    assert one is not None
    before = bits(published(both["pfi"])), bits(published(both["sage"])), one._X.tobytes()
    name = next(iter(x))
    del taken[:]
    for odd in (math.nan, math.inf, 2**60, 10**400, 2.0**52, None, "text", np.int64(3)):
        assert steady.take(id({**x, name: odd}), one._at) == 0
    for odd_row in ({}, {**x, "more": 1.0}, dict(reversed(x.items())), {1: 2.0, **x}, list(x)):
        assert steady.take(id(odd_row), one._at) == 0
    assert before == (bits(published(both["pfi"])), bits(published(both["sage"])), one._X.tobytes())
    stored = both["pfi"].imputer.stored
    assert isinstance(stored, StoredRows)
    for x, y in stream[60:]:
        stored.matrix = stored.matrix.copy()
        together.explain_one(x, y)
        assert together._steady is one
    assert not any(taken), "rows are in other memory each time"
    for x, y in stream:
        together.explain_one(x, y)
    assert is_compiling() <= all(taken[-99:])
