"""Every explainer by the fast path equals itself by the naive one, after every observation."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from river import compose, ensemble, forest, linear_model, naive_bayes, neighbors, preprocessing, tree

from attributary_explainers import (
    ChangeExplainer,
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    ShiftedImputer,
    as_loss,
    batch_pfi,
    batch_sage,
    make_reservoir,
)
from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.pickling import dump_model, load_model

from .harness import learnt
from .streams import agrawal, blobs, line, texts
from .twins import assert_close, bits, explain_both, follow_twins, naive_twin

PFI, SAGE = IncrementalPFI, IncrementalSAGE
Stream = Iterator[tuple[dict[Any, Any], Any]]


def numbers(n: int) -> Stream:
    return blobs(n, labels=("b", "a", "c"))


def pairs(n: int) -> Stream:
    return blobs(n, labels=(True, False))


def coming_and_going(n: int) -> Stream:
    """Features that vanish and come back, rows in any order, and labels that are known to no model yet."""
    rng = random.Random(3)
    for i, (x, y) in enumerate(blobs(n)):
        names = [name for j, name in enumerate(x) if not (n // 3 < i < 2 * n // 3 and j == 1) and i % 17 != j * 5 + 3]
        if i > n // 2:
            rng.shuffle(names)
        yield {name: x[name] for name in names}, "never seen" if i % 23 == 22 else y


def rounded(n: int) -> Stream:
    """Few values, so that stored rows tie; integers, booleans, numpy's scalars."""
    kinds = [int, float, np.int64, np.float64, np.int32, np.float32]
    for i, (x, y) in enumerate(blobs(n, labels=(0, 1))):
        yield (
            {name: kinds[(i + j) % 6](round(value / 2)) for j, (name, value) in enumerate(x.items())}
            | {"b": i % 3 > 1},
            y,
        )


def holes(n: int) -> Stream:
    """NaN, None and infinities now and then."""
    for i, (x, y) in enumerate(blobs(n)):
        strange = {0: {"x1": float("nan")}, 4: {"x2": None}, 8: {"x0": float("nan"), "x3": None}}.get(i % 12, {})
        yield {**x, **strange}, y


def scaled_logistic() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def one_hot_logistic() -> Any:
    encoded = compose.Select("colour", "door", "new") | preprocessing.OneHotEncoder()
    scaled = compose.Select("size", "constant") | preprocessing.StandardScaler()
    return (scaled + encoded) | linear_model.LogisticRegression()


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], Stream], int]] = {
    "tree": (lambda: tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1), numbers, 120),
    "tree, texts": (lambda: tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1), texts, 120),
    "tree, agrawal": (lambda: tree.HoeffdingTreeClassifier(grace_period=30), lambda n: agrawal(n // 2), 120),
    "adaptive tree": (lambda: tree.HoeffdingAdaptiveTreeClassifier(grace_period=20, seed=1), numbers, 120),
    "forest": (lambda: forest.ARFClassifier(n_models=3, seed=1, grace_period=20), numbers, 120),
    "forest, texts": (lambda: forest.ARFClassifier(n_models=3, seed=1, grace_period=20), texts, 120),
    "logistic": (scaled_logistic, pairs, 120),
    "one-hot": (one_hot_logistic, texts, 150),
    "bayes": (naive_bayes.GaussianNB, numbers, 120),
    "bayes, others": (naive_bayes.GaussianNB, coming_and_going, 150),
    "bayes, ties": (naive_bayes.GaussianNB, rounded, 120),
    "neighbours": (lambda: neighbors.KNNClassifier(5, neighbors.LazySearch(60)), numbers, 100),
    "bagging": (
        lambda: ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(grace_period=20), n_models=3, seed=1),
        numbers,
        100,
    ),
    "forest, numbers": (lambda: forest.ARFRegressor(n_models=3, seed=1, grace_period=20), line, 100),
    "linear": (lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(), line, 100),
}
CLASSES = [name for name in MODELS if name not in ("forest, numbers", "linear")]


def both(explainer: Any, model: Any, **parameters: Any) -> tuple[Any, Any]:
    """An explainer and its naive twin; parameters that are callables of no argument are called for each."""
    made = []
    for _ in range(2):
        own = {k: v() if k in ("removal", "reservoir") and callable(v) else v for k, v in parameters.items()}
        made.append(explainer(model, **{"alpha": 0.03, "seed": 5, **own}))
    return made[0], naive_twin(made[1])


def equal_to_its_twin(
    explainer: Any, name: str, n: int | None = None, *, least_share: float = 0.99, **parameters: Any
) -> None:
    """Explain a model of `MODELS` both ways; at least such a share of the observations takes the fast path."""
    make, stream, of_stream = MODELS[name]
    model = make()
    fast, naive = both(explainer, model, **parameters)
    share = follow_twins(model, fast, naive, stream(of_stream if n is None else n))
    assert share >= least_share, (name, fast._function.counts)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("explainer", [PFI, SAGE])
@pytest.mark.share(2, "explainer", "name")
def test_every_model_is_explained_as_by_the_naive_path(explainer: Any, name: str) -> None:
    least = {"bayes, others": 0.35, "one-hot": 0.9}.get(name, 0.99)
    reservoir = partial(make_reservoir, "geometric", 30)
    equal_to_its_twin(explainer, name, least_share=least, n_samples=4, reservoir=reservoir)


LOSSES: list[Any] = ["cross_entropy", "brier", "zero_one", "expected_zero_one", lambda y, p: 1.0 - p.get(y, 0.0) ** 2]


@pytest.mark.parametrize("loss", [*LOSSES, as_loss("cross_entropy", epsilon=0.1)])
@pytest.mark.parametrize("explainer", [PFI, SAGE])
@pytest.mark.share(2, "explainer", "loss")
def test_losses_of_classes_are_those_of_the_naive_path(explainer: Any, loss: Any) -> None:
    for name in ("tree, texts", "bayes"):
        # A label is not read off where two classes are equally probable.
        least = 0.8 if loss in ("zero_one", "expected_zero_one") else 0.99
        equal_to_its_twin(explainer, name, 80, least_share=least, loss=loss, n_samples=3)


@pytest.mark.parametrize("loss", ["absolute", "squared", lambda y, p: abs(y - p) / 2])
@pytest.mark.parametrize("explainer", [PFI, SAGE])
def test_losses_of_numbers_are_those_of_the_naive_path(explainer: Any, loss: Any) -> None:
    for name in ("forest, numbers", "linear"):
        equal_to_its_twin(explainer, name, 50, loss=loss, n_samples=3)


@pytest.mark.parametrize("explainer", [PFI, SAGE])
def test_a_loss_that_is_made_of_a_known_one(explainer: Any) -> None:
    loss = dataclasses.replace(as_loss("squared"), function=lambda y, p: 10.0 * abs(y - p))
    equal_to_its_twin(explainer, "linear", 40, loss=loss, n_samples=3)


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "bayes, others"])
def test_labels_are_those_of_the_naive_path_and_left_to_it_where_classes_tie(name: str) -> None:
    least = 0.1 if name == "neighbours" else 0.7
    equal_to_its_twin(PFI, name, 60, least_share=least, loss="zero_one", n_samples=3)


@pytest.mark.parametrize("sampling", ["stratified", "independent"])
@pytest.mark.parametrize("n_samples", [1, 2, 5, 10])
@pytest.mark.parametrize(("n_permutations", "bias_correction"), [(1, True), (2, False), (2, True), (3, True)])
@pytest.mark.share(4, "n_permutations", "bias_correction", "n_samples", "sampling")
def test_walks_of_any_shape_are_those_of_the_naive_path(
    n_permutations: int, bias_correction: bool, n_samples: int, sampling: str
) -> None:
    options: dict[str, Any] = {"n_permutations": n_permutations, "bias_correction": bias_correction}
    for name, loss in (("tree, texts", "cross_entropy"), ("linear", "squared")):
        equal_to_its_twin(SAGE, name, 40, loss=loss, n_samples=n_samples, sampling=sampling, **options)


@pytest.mark.parametrize("kind", ["geometric", "uniform", "sliding_window"])
@pytest.mark.parametrize("sampling", ["stratified", "independent"])
@pytest.mark.parametrize("n_samples", [1, 2, 5, 10])
@pytest.mark.share(3, "n_samples", "sampling", "kind")
def test_draws_from_any_reservoir_are_those_of_the_naive_path(n_samples: int, sampling: str, kind: str) -> None:
    reservoir = partial(make_reservoir, kind, 7)
    for name in ("tree, texts", "bayes, ties"):
        equal_to_its_twin(PFI, name, 40, n_samples=n_samples, sampling=sampling, reservoir=reservoir)


def conditional() -> ConditionalImputer:
    return ConditionalImputer(
        make_reservoir("geometric", 20), ConditionalSampler(leaf_size=20, grace_period=10, seed=4)
    )


REMOVALS: dict[str, Any] = {
    "interventional": "interventional",
    "product": "product",
    "observational-trees": conditional,
    "observational": lambda: ShiftedImputer(make_reservoir("geometric", 20), alpha=0.02),
    "constant": lambda: ConstantImputer({"x0": 0.0, "x1": 1, "x2": -1.0, "x3": True}),
    "constant without some": lambda: ConstantImputer({"x0": 0.0}),
}


@pytest.mark.parametrize(
    "groups", [None, {"two": ["x0", "x2"]}, {"none": ["y1", "y2"], "all": ["x0", "x1", "x2", "x3"]}]
)
@pytest.mark.parametrize("removal", list(REMOVALS))
@pytest.mark.parametrize("explainer", [PFI, SAGE])
@pytest.mark.share(3, "explainer", "removal", "groups")
def test_features_are_removed_as_by_the_naive_path(explainer: Any, removal: str, groups: Any) -> None:
    model = naive_bayes.GaussianNB()
    fast, naive = both(explainer, model, removal=REMOVALS[removal], groups=groups, n_samples=3)
    fast.know_names()  # a group may be of features that never come
    naive.know_names()
    share = follow_twins(model, fast, naive, numbers(60))
    assert share >= 0.99, fast._function.counts


@pytest.mark.parametrize("missing", ["value", "absent", "skip", {"x1": 0.5, "x0": 1, "x2": -1.0, "x3": 0.0}])
@pytest.mark.parametrize("explainer", [PFI, SAGE])
def test_missing_values_are_read_as_by_the_naive_path(explainer: Any, missing: Any) -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="mc")  # takes any value
    fast, naive = both(explainer, model, missing=missing, n_samples=3)
    n = 120
    for step, (x, y) in enumerate(holes(n)):
        explain_both(fast, naive, x, y, step)
        model.learn_one({name: value for name, value in x.items() if value == value and value is not None}, y)
    taken = fast._function.counts["fast"]
    if missing == "skip":
        assert taken == 90 == n - fast.skipped["missing"]
    elif isinstance(missing, dict) or missing == "absent":
        assert taken == n
    else:
        assert 0 < taken < n


@pytest.mark.parametrize("explainer", [PFI, SAGE])
def test_a_single_feature_is_explained_as_by_the_naive_path(explainer: Any) -> None:
    model = naive_bayes.GaussianNB()
    fast, naive = both(explainer, model, n_samples=3)
    assert follow_twins(model, fast, naive, (({"x1": x["x1"]}, y) for x, y in numbers(60))) >= 0.99


def test_partial_dependence_is_that_of_the_naive_path() -> None:
    for name in ("tree, texts", "linear", "bayes, others"):
        make, stream, n = MODELS[name]
        model = make()
        settings = {"alpha": 0.05, "window": 40, "seed": 1}
        fast, naive = IncrementalPDP(model, **settings), naive_twin(IncrementalPDP(model, **settings))
        for step, (x, y) in enumerate(stream(n)):
            explain_both(fast, naive, x, y, f"{name}, {step}")
            model.learn_one(x, y)
        assert fast._function.counts["fast"] > n / 2, fast._function.counts


def equal_without_fast_paths(found: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call twice: with fast paths, which have to be taken for more than 1000 rows, and row by row."""
    n_rows, predict = [], FastFunction.predict
    monkeypatch.setattr(FastFunction, "predict", lambda self, X: n_rows.append(len(X)) or predict(self, X))
    fast = found()
    assert fast
    assert sum(n_rows) > 1000
    monkeypatch.setattr(FastFunction, "many", lambda self, rows: [self._naive(row) for row in rows])
    assert_close(fast, found(), "row by row")


@pytest.mark.parametrize("name", ["tree", "forest", "one-hot", "bayes"])
def test_batches_are_explained_as_by_the_naive_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, stream, _ = MODELS[name]
    model = learnt(make(), stream(150))
    data = list(itertools.islice(stream(120), 60, 100))

    def found() -> list[Any]:
        results = [
            batch_pfi(model, data, seed=1, n_permutations=2, exact=False),
            batch_sage(model, data, seed=1, n_samples=3, exact=False),
            batch_sage(model, data, seed=1, loss="brier", n_permutations=2, exact=False),
        ]
        return [[result.importance, result.std_error] for result in results]

    equal_without_fast_paths(found, monkeypatch)


def test_changes_are_explained_as_by_the_naive_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def explanations() -> list[Any]:
        model = forest.ARFClassifier(n_models=3, seed=1, grace_period=20)
        parameters: dict[str, Any] = {"window": 60, "threshold": 0.2, "detector_params": {"delta": 0.2}, "seed": 1}
        change = ChangeExplainer(model, importances=("pfi", "sage"), loss="brier", n_samples=3, **parameters)
        found = []
        for i, (x, y) in enumerate(itertools.chain(agrawal(200, 0, seed=2), agrawal(250, 4, seed=3))):
            for event in change.update(x, y, model.predict_one(x)):
                found.append([i, event])
            model.learn_one(x, y)
        return found

    equal_without_fast_paths(explanations, monkeypatch)


SAVED: dict[str, tuple[Callable[[], Any], Callable[[int], Stream]]] = {
    **{
        name: MODELS[name][:2] for name in ("forest", "tree, texts", "one-hot", "bayes, others", "neighbours", "linear")
    },
    "unknown": (
        lambda: tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="mc"),
        lambda n: (({**x, "x2": "unknown"} if i % 10 > 7 else x, y) for i, (x, y) in enumerate(numbers(n))),
    ),
}


def learn(model: Any, x: Any, y: Any) -> None:
    if x.get("x2") != "unknown":  # among numbers no model learns it
        model.learn_one(x, y)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if i % 2 else []) for i, name in enumerate(SAVED)]
)
def test_continuing_from_a_snapshot_gives_the_same_bits(name: str) -> None:
    make, stream = SAVED[name]
    model = make()
    going: dict[str, Any] = {
        "pfi": PFI(model, n_samples=3, alpha=0.03, seed=1),
        "sage": SAGE(model, n_samples=4, alpha=0.03, seed=1, n_permutations=2),
        "pdp": IncrementalPDP(
            model, alpha=0.05, grid_size=4, window=16, seed=1, label="b" if name == "unknown" else None
        ),
    }
    if name in ("forest", "bayes, others", "neighbours"):
        del going["pdp"]
    restored: list[tuple[int, Any, dict[str, Any]]] = []
    for step, (x, y) in enumerate(stream(130)):
        if step in (1, 30, 44, 70, 100):
            copied = load_model(dump_model(model))
            again = {key: type(one).from_snapshot(one.snapshot(), copied) for key, one in going.items()}
            restored.append((step, copied, again))
        for explainer in going.values():
            explainer.explain_one(x, y)
        expected = {key: bits(one.snapshot()) for key, one in going.items()}
        for since, copied, again in restored:
            for key, explainer in again.items():
                explainer.explain_one(x, y)
                assert bits(explainer.snapshot()) == expected[key], f"{key} since {since}, at {step}"
            learn(copied, x, y)
        learn(model, x, y)
    for explainer in going.values():
        assert explainer._function.counts["fast"] > 40


@pytest.mark.parametrize("explainer", [PFI, SAGE])
def test_a_used_explainer_takes_the_state_of_another(explainer: Any) -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=20)
    one, other = (explainer(model, n_samples=3, alpha=0.05, seed=seed) for seed in (1, 2))
    rows = list(numbers(120))
    for i, (x, y) in enumerate(rows):
        if i == 60:
            other.restore(one.snapshot())
        one.explain_one(x, y)
        other.explain_one(*(rows[-1 - i] if i < 60 else (x, y)))
        model.learn_one(x, y)
        if i >= 60:
            assert bits(other.snapshot()) == bits(one.snapshot()), i
