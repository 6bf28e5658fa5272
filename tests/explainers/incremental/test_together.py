"""Explainers of one model together say what each says alone, from one evaluation of each observation."""

from __future__ import annotations

import copy
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from river import forest, linear_model, naive_bayes, preprocessing, tree
from sklearn.linear_model import LogisticRegression

from attributary_explainers import (
    IncrementalMDI,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalSAGE,
    SlidingWindowReservoir,
    as_batch,
)
from attributary_explainers.errors import ExplainerError, InvalidParameterError, ModelFailureWarning
from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.incremental.explainers import Explainers
from attributary_explainers.incremental.removal import RemovalExplainer

from ..fast_paths.streams import blobs, line, texts
from ..fast_paths.twins import assert_close, bits, published

PFI, SAGE = IncrementalPFI, IncrementalSAGE
Row = dict[str, Any]


def some(model: Any, **own: Any) -> dict[str, Any]:
    """Explainers that differ in all that they may differ in."""
    shared = {"alpha": 0.05, "n_samples": 3, **own}
    return {
        "pfi": PFI(model, seed=1, **shared),
        "sage": SAGE(model, seed=2, **shared),
        "product": PFI(
            # Of the default one all draws are the same at first.
            model,
            seed=3,
            removal="product",
            sampling="independent",
            reservoir=SlidingWindowReservoir(20),
            **shared,
        ),
        "two": SAGE(model, seed=4, n_permutations=2, groups={"pair": ["x0", "x1"]}, **shared),
        "pdp": IncrementalPDP(model, alpha=0.05, grid_size=4, features=["x1"], seed=3),
    }


def two(model: Any, n_samples: int = 2, **shared: Any) -> dict[str, Any]:
    return {
        "pfi": PFI(model, seed=1, n_samples=n_samples, **shared),
        "sage": SAGE(model, seed=2, n_samples=n_samples, **shared),
    }


def explain_alike(together: Explainers, alone: dict[str, Any], x: Row, y: Any, where: object = "") -> Any:
    """Explain together and alone: both give the same bits."""
    found = together.explain_one(x, y)
    assert bits(found) == bits({name: explainer.explain_one(x, y) for name, explainer in alone.items()}), where
    return found


def assert_published_alike(together: Explainers, alone: dict[str, Any], where: object = "") -> None:
    for name, explainer in alone.items():
        assert bits(published(together.explainers[name])) == bits(published(explainer)), (where, name)


def in_order(prediction: Any) -> Any:
    return dict(sorted(prediction.items())) if isinstance(prediction, dict) else prediction


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], Any], dict[str, Any]]] = {
    "tree": (lambda: tree.HoeffdingTreeClassifier(grace_period=20), blobs, {}),
    "forest": (
        lambda: forest.ARFClassifier(n_models=3, seed=1, grace_period=20),
        lambda n: blobs(n, labels=(0, 1)),
        {},
    ),
    "brier": (naive_bayes.GaussianNB, lambda n: blobs(n, labels=("a", "b")), {"loss": "brier"}),
    "labels": (naive_bayes.GaussianNB, lambda n: blobs(n, labels=("a", "b")), {"loss": "zero_one"}),
    "numbers": (lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(), line, {}),
}


@pytest.mark.parametrize("naive", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.share(2, "name", "naive")
def test_they_say_what_each_says_alone(name: str, naive: bool) -> None:
    make, stream, own = MODELS[name]
    model = make()
    label = None if name == "numbers" else next(y for _, y in stream(1))
    alone, joined = some(model, **own), some(model, **own)
    for explainers in (alone, joined):
        explainers["pdp"] = IncrementalPDP(model, label=label, alpha=0.05, grid_size=4, features=["x1"], seed=3)
    if naive:
        for explainer in alone.values():
            explainer._function = explainer._function._naive
    together = Explainers(model, joined)
    for step, (x, y) in enumerate(stream(80)):
        expected = {key: explainer.explain_one(x, y) for key, explainer in alone.items()}
        given = dict(x)
        y_pred = together.predict(given)
        assert_close(in_order(y_pred), in_order(together.function(x)), f"step {step}")
        given.clear()  # the caller's own again
        found = together.explain(y)
        for key, explainer in alone.items():
            where = f"{key} at step {step}"
            if naive:
                assert_close(found[key], expected[key], where)
                assert_close(published(joined[key]), published(explainer), where)
            else:
                assert bits(found[key]) == bits(expected[key]), where
                assert bits(published(joined[key])) == bits(published(explainer)), where
                assert bits(joined[key].snapshot()) == bits(explainer.snapshot()), where
        model.learn_one(x, y)
    assert together.function.counts["fast"] > 50  # type: ignore[attr-defined]


def test_calls_in_another_order_are_refused_and_of_two_predictions_the_last_is_explained() -> None:
    model = naive_bayes.GaussianNB()
    kinds = {"pfi": PFI, "sage": SAGE}
    pair = Explainers(
        model, {key: kind(model, seed=1, reservoir=SlidingWindowReservoir(20)) for key, kind in kinds.items()}
    )
    with pytest.raises(ExplainerError, match=r"call predict\(x\) first"):
        pair.explain(True)
    rows = list(blobs(10, labels=(True, False)))
    for x, y in rows:
        pair.explain_one(x, y)
        model.learn_one(x, y)
    with pytest.raises(ExplainerError):
        pair.explain(True)
    n = pair.explainers["pfi"].n_observations
    pair.predict(rows[0][0])
    pair.predict(rows[0][0], explain=False)
    with pytest.raises(ExplainerError):
        pair.explain(True)
    assert pair.explainers["pfi"].n_observations == n
    # Of two predictions the last one is explained.
    rare = {**rows[0][0], "x0": 123.0}
    pair.predict(rows[0][0])
    pair.predict(rare)
    pair.explain(True)
    with pytest.raises(ExplainerError):
        pair.explain(True)
    for explainer in pair.explainers.values():
        assert explainer.n_observations == n + 1
        assert list(explainer.reservoir.rows).count(rare) == 1  # type: ignore[attr-defined]
        assert explainer.reservoir.n_seen == 11  # type: ignore[attr-defined]


def test_explainers_of_other_models_or_under_two_names_are_refused() -> None:
    model = naive_bayes.GaussianNB()
    pfi = PFI(model)
    with pytest.raises(InvalidParameterError, match="explainers of the model that is given"):
        Explainers(naive_bayes.GaussianNB(), {"pfi": pfi})
    with pytest.raises(InvalidParameterError, match="each explainer under one name"):
        Explainers(model, {"a": pfi, "b": PFI(model), "c": pfi})


def test_a_company_of_no_explainers_says_nothing() -> None:
    model = naive_bayes.GaussianNB()
    nobody = Explainers(model, {})
    assert nobody.predict({"a": 1.0}) is None
    assert nobody.explain(True) == {}


def test_an_explainer_in_two_companies() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=20)
    alone, joined = PFI(model, seed=1, n_samples=2), PFI(model, seed=1, n_samples=2)
    companies = [Explainers(model, {"pfi": joined}) for _ in range(3)]
    for i, (x, y) in enumerate(blobs(60)):
        company = companies[i % 3]
        company.predict(x)
        companies[(i + 1) % 3].predict(x, explain=False)
        assert bits(company.explain(y)["pfi"]) == bits(alone.explain_one(x, y)), i
        model.learn_one(x, y)
    assert sum(company.function.counts["fast"] for company in companies) >= 60  # type: ignore[attr-defined]


def test_other_outputs_are_asked_for_by_themselves() -> None:
    model = naive_bayes.GaussianNB()

    def made() -> dict[str, Any]:
        losses = {"brier": "brier", "zero_one": "zero_one", "cross_entropy": "cross_entropy"}
        return {name: PFI(model, loss=loss, seed=1, n_samples=2, alpha=0.05) for name, loss in losses.items()}

    for output, of_one_row in (
        (None, model.predict_proba_one),
        ("probabilities", model.predict_proba_one),
        ("label", lambda x: {model.predict_one(x): 1.0}),
    ):
        together = Explainers(model, made(), output)  # type: ignore[arg-type]
        others = made()
        for explainer in together.explainers.values():
            asks_together = explainer._function is together.function  # type: ignore[attr-defined]
            assert asks_together == (explainer.loss.output == (output or "probabilities"))  # type: ignore[attr-defined]
        for x, y in blobs(40):
            y_pred = together.predict(x)
            if y_pred is not None:
                assert_close(in_order(y_pred), in_order(of_one_row(x)), str(output))
            found = together.explain(y)
            assert bits(found) == bits({name: explainer.explain_one(x, y) for name, explainer in others.items()})
            model.learn_one(x, y)
        assert set(others) == set(together.explainers)


def test_policies_for_missing_values_that_differ() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=1000, leaf_prediction="mc")

    def made() -> dict[str, Any]:
        policies = {"absent": "absent", "value": "value", "skip": "skip", "mean": {"x1": 0.5}}
        return {name: PFI(model, missing=policy, seed=1, n_samples=2, alpha=0.05) for name, policy in policies.items()}

    alone, together = made(), Explainers(model, made())
    for i, (x, y) in enumerate(blobs(80)):
        if i % 4 == 3:
            x = {**x, "x1": None if i % 8 == 3 else float("nan")}
        explain_alike(together, alone, x, y, i)
        assert_published_alike(together, alone, i)
        model.learn_one({name: value for name, value in x.items() if name != "x1"}, y)
    assert together.explainers["skip"].skipped == {"missing": 20, "nothing_stored": 1}  # type: ignore[attr-defined]
    assert together.explainers["mean"].n_observations == 79


def test_others_join_in() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1)

    def made() -> dict[str, Any]:
        return {
            "mdi": IncrementalMDI(model),
            "pdp": IncrementalPDP(model, label="a", features=["x0"], seed=3),
            "pfi": PFI(model, seed=1, n_samples=2),
        }

    alone, together = made(), Explainers(model, made())
    for x, y in blobs(120):
        found = explain_alike(together, alone, x, y)
        model.learn_one(x, y)
    assert found["mdi"]
    assert found["pdp"]


class Counted:
    """A model of many rows that counts its calls, and raises where it is told to."""

    def __init__(self, raises: Callable[[Row], bool] = lambda _: False) -> None:
        self.sizes: list[int] = []
        self.raises = raises

    def __call__(self, rows: Any) -> list[float]:
        self.sizes.append(len(rows))
        if any(map(self.raises, rows)):
            raise ValueError("cannot predict this")
        return [2.0 * row["x0"] - row["x1"] for row in rows]


def numbers(n: int) -> Iterator[tuple[Row, float]]:
    return itertools.islice(((x, 2.0 * x["x0"] + y) for x, y in line(n)), n)


def test_one_call_for_all() -> None:
    counted = Counted()
    model = as_batch(counted)
    joined, alone = two(model, 10, loss="squared"), two(as_batch(Counted()), 10, loss="squared")
    together = Explainers(model, joined)
    for n, (x, y) in enumerate(numbers(30), start=1):
        explain_alike(together, alone, x, y)
        assert len(counted.sizes) == n
    assert counted.sizes == [1] + [1 + 5 * 10 + 4 * joined["sage"].n_samples] * 29


@pytest.mark.parametrize("batch", [True, False])
def test_a_model_that_raises_on_mixed_rows_only(batch: bool) -> None:
    # Never in the stream together, so that rows of two observations raise, but not those of one feature of a constant.
    def raises(row: Row) -> bool:
        return bool(row["x4"]) and row["x1"] < 0

    def made(model: Any) -> dict[str, Any]:
        return {
            "pfi": PFI(model, loss="squared", seed=1, n_samples=3),
            "sage": SAGE(model, loss="squared", seed=2, n_samples=2),
            "none": PFI(model, loss="squared", seed=3, n_samples=2, groups={"all": ["x0", "x1", "x2", "x3", "x4"]}),
        }

    counted = Counted(raises)
    model: Any = as_batch(counted) if batch else (lambda x: counted([x])[0])
    alone, together = made(model), Explainers(model, made(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelFailureWarning)
        for x, y in numbers(60):
            x["x4"] = bool(x["x4"]) and x["x1"] >= 0
            explain_alike(together, alone, x, y)
    assert_published_alike(together, alone)
    assert together.explainers["pfi"].skipped["model_error"] > 5  # type: ignore[attr-defined]
    assert together.explainers["none"].n_skipped == 1


@pytest.mark.parametrize("batch", [True, False])
def test_a_model_that_raises_on_the_observation_itself(batch: bool) -> None:
    counted = Counted(lambda row: row["x0"] > 1e6)
    model: Any = as_batch(counted) if batch else (lambda x: counted([x])[0])
    together = Explainers(model, {name: PFI(model, loss="squared", seed=1, n_samples=2) for name in ("a", "b")})
    rows = list(numbers(20))
    for i, (x, y) in enumerate(rows):
        if i % 5 == 4:
            with pytest.raises(ValueError, match="cannot predict this"):
                together.predict({**x, "x0": 1e7})
            with pytest.raises(ExplainerError):
                together.explain(y)
        together.explain_one(x, y)
    for explainer in together.explainers.values():
        assert explainer.n_observations == 19
        assert explainer.skipped == {"nothing_stored": 1}  # type: ignore[attr-defined]


def test_a_path_that_is_left_in_the_middle() -> None:
    # A river model that raises on mixed rows: its own path is asked row by row, each explainer for itself.
    model = tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1)
    alone, together = two(model), Explainers(model, two(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelFailureWarning)
        for i, (x, y) in enumerate(blobs(90)):
            given = {**x, "x1": "text"} if i % 30 == 29 else x
            try:
                explain_alike(together, alone, given, y)
            except TypeError:
                for explainer in alone.values():
                    explainer.explain_one(given, y)
                continue
            model.learn_one(x, y)
    assert isinstance(together.function, FastFunction)
    assert together.function.counts["fast"] > 50


def test_an_estimator_of_scikit_learn() -> None:
    rows = list(blobs(80, labels=(0, 1)))
    estimator = LogisticRegression().fit([list(x.values()) for x, _ in rows[:40]], [y for _, y in rows[:40]])
    alone, together = two(estimator), Explainers(estimator, two(estimator))
    for x, y in rows[40:]:
        y_pred = together.predict(x)
        expected = estimator.predict_proba([list(x.values())])[0]
        assert list(y_pred.values()) == pytest.approx(expected, rel=1e-12)  # type: ignore[union-attr]
        found = together.explain(y)
        each = {name: explainer.explain_one(x, y) for name, explainer in alone.items()}
        assert found == {name: pytest.approx(one, rel=1e-9, abs=1e-12) for name, one in each.items()}
    assert any(found["pfi"].values())


def test_texts_and_late_features() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1)
    alone, together = two(model, 3), Explainers(model, two(model, 3))
    for i, (x, y) in enumerate(texts(90)):
        row = {**x, **({"late": float(np.sin(i))} if i > 45 else {})}
        explain_alike(together, alone, row, y, i)
        model.learn_one(row, y)
    assert together.function.counts["fast"] > 45  # type: ignore[attr-defined]


def test_of_two_predictions_only_the_last_one_is_stored() -> None:
    model = naive_bayes.GaussianNB()
    together, naive = Explainers(model, {"pfi": PFI(model, seed=1, n_samples=2)}), PFI(model, seed=1, n_samples=2)
    naive._function = naive._function._naive  # type: ignore[attr-defined]
    other = Explainers(model, {"pfi": naive})
    assert naive._function is other.function
    naive._function = other.function = other.function._naive  # type: ignore[attr-defined]
    for i, (x, y) in enumerate(blobs(50)):
        for company in (together, other):
            company.predict(x)
            if i % 10 == 5:
                company.predict({})
            company.explain(y)
        assert_close(published(together.explainers["pfi"]), published(naive), f"step {i}")
        model.learn_one(x, y)
    assert naive.skipped["no_features"] == 5


@pytest.mark.parametrize("explainer", [PFI, SAGE])
def test_the_prediction_that_the_caller_has_is_taken(explainer: Any) -> None:
    counted = Counted()
    model = as_batch(counted)
    given, asked = (explainer(model, loss="squared", seed=1, n_samples=2) for _ in range(2))
    for x, y in numbers(30):
        y_pred = 2.0 * x["x0"] - x["x1"]
        counted.sizes.clear()
        found = given.explain_one(x, y, y_pred=y_pred)
        assert len(counted.sizes) <= 1
        n = sum(counted.sizes)
        counted.sizes.clear()
        assert bits(asked.explain_one(x, y)) == bits(found)
        assert sum(counted.sizes) == n + 1
    assert bits(published(given)) == bits(published(asked))


def test_paths_count_how_observations_were_evaluated() -> None:
    learner = preprocessing.StandardScaler() | linear_model.LinearRegression()
    fast = Explainers(learner, {"pfi": IncrementalPFI(learner, n_samples=2, missing="value", seed=1)})
    naive = Explainers(linear, {"pfi": IncrementalPFI(linear, loss="squared", n_samples=2, seed=1)})
    for i in range(20):
        x = {"a": float(i % 3), "b": float(i % 5)}
        for together in (fast, naive):
            together.skip(x) if i % 2 else together.explain_one(x, 1.0)
    light = "one row of a light model, which takes the model itself less time"
    assert fast.paths == {"fast": 10, light: 10}
    assert naive.paths == {"there is no fast path for this type": 20}
    fast.skip({"a": float("nan"), "b": 1.0})
    assert fast.paths["fast"] == 10
    assert fast.paths.total() == 21
    fast.paths.clear()
    assert fast.paths.total() == 21, "a copy is given"


@pytest.mark.parametrize("name", ["linear", "forest", "function", "estimator"])
@pytest.mark.parametrize("explained", [False, True])
def test_a_row_by_itself_is_predicted_as_the_model_does(name: str, explained: bool) -> None:
    """A light model is asked itself, to the bit; a heavy one by its fast path, which is faster for one row, too."""
    model: Any = {
        "linear": preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "forest": forest.ARFClassifier(n_models=3, seed=1),
        "function": lambda x: {False: 0.5 + 0.1 * (x["x0"] > 0), True: 0.5 - 0.1 * (x["x0"] > 0)},
        "estimator": LogisticRegression(),
    }[name]
    rows = list(blobs(60, labels=(False, True)))
    if name == "estimator":
        model.fit([list(x.values()) for x, _ in rows], [y for _, y in rows])
    explainers = {"pfi": PFI(model, loss="brier", n_samples=2, seed=1)} if explained else {}
    company = Explainers(model, explainers, "probabilities")
    for n, (x, y) in enumerate(rows):
        found = company.predict(x, explain=not explained)
        own = company.function(x)
        if name == "forest":
            assert (found or {}) == pytest.approx(own or {}, rel=1e-12)
        else:
            assert found == own
        assert company.n_rows == 1
        if explained:
            company.pass_over()
            assert explainers["pfi"].skipped["budget"] == n + 1
        else:
            assert company.explain(y) == {}
        if hasattr(model, "learn_one"):
            model.learn_one(x, y)
    counts = company.paths
    assert counts["fast"] == (0 if name != "forest" else counts.total())


def linear(x: dict[str, float]) -> float:
    return x["a"] - 2.0 * x["b"]


@pytest.mark.parametrize("cls", [IncrementalPFI, IncrementalSAGE])
def test_a_signature_names_every_parameter_with_the_default_of_all_explainers_by_removal(cls: Any) -> None:
    shared = dict(inspect.signature(RemovalExplainer).parameters)
    own = dict(inspect.signature(cls).parameters)
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in own.values())
    assert {name for name, parameter in shared.items() if own[name].default != parameter.default} == set()


@pytest.mark.parametrize("policy", ["absent", "skip", {"x1": 0.5}])
def test_a_policy_that_all_share_is_that_of_the_prediction_too(policy: Any) -> None:
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()  # raises on None

    def made() -> dict[str, Any]:
        return {
            "pfi": IncrementalPFI(model, missing=policy, seed=1, n_samples=2),
            "sage": IncrementalSAGE(model, missing=policy, seed=2, n_samples=2),
        }

    alone, together = made(), Explainers(model, made())
    for i, (x, y) in enumerate(blobs(80)):
        read = {"x1": 0.5} if isinstance(policy, dict) else {}
        given = {**{name: value for name, value in x.items() if name != "x1"}, **read} if i % 4 == 3 else x
        x = {**x, "x1": None} if i % 4 == 3 else x
        # What the model is asked for is the row by the policy, with the prediction of that row.
        assert together.predict(x) == pytest.approx(model.predict_proba_one(given))
        for name, found in together.explain(y == "a").items():  # batches of other sizes sum in another order
            assert found == pytest.approx(alone[name].explain_one(x, y == "a"), rel=1e-9)
        model.learn_one(given, y == "a")
    skipped = 20 if policy == "skip" else 0
    assert [one.skipped["missing"] for one in together.explainers.values()] == [skipped] * 2  # type: ignore[attr-defined]


def test_a_prediction_of_another_row_is_not_used_for_an_explainer_with_another_policy() -> None:
    rows: list[dict[str, Any]] = []

    def model(x: dict[str, Any]) -> float:
        rows.append(dict(x))
        return float(x.get("b") is None and "b" in x)

    explainer = IncrementalPFI(model, loss="squared", missing="value", seed=1)
    together = Explainers(model, {"pfi": explainer}, missing="skip")
    assert together.predict({"a": 1.0, "b": None}) == 0.0
    together.explain(1.0)
    assert rows == [{"a": 1.0}, {"a": 1.0, "b": None}]


@pytest.mark.parametrize("kind", ["called", "fast"])
def test_one_asked_by_itself_between_prediction_and_explanation_takes_nothing_of_the_others(kind: str) -> None:
    """Orders and draws are in memory that is used anew: a feature that is not read would get what others have."""
    line = linear_model.LinearRegression()
    line.weights["x0"] = 3.0
    model: Any = line if kind == "fast" else (lambda x: 3.0 * x["x0"])
    both = Explainers(model, two(model, n_samples=4, loss="squared"))
    sage = both.explainers["sage"]
    rows = [x for x, _ in blobs(80, seed=3)]
    for x in rows[:40]:
        both.explain_one(x, 0.0)
    for x, other in itertools.pairwise(rows[40:]):
        both.predict(x)
        sage.explain_one(other, 0.0)
        before = both.explainers["pfi"].n_observations, sage.n_observations
        both.explain(0.0)
        assert (both.explainers["pfi"].n_observations, sage.n_observations) == (before[0] + 1, before[1] + 1)
        names, increments = sage.latest_increments
        found = dict(zip(names, increments.tolist(), strict=True))
        # The first of the order gets what the mean prediction lacks.
        assert sum(found[name] == 0.0 for name in ("x1", "x2", "x3")) >= 2


def test_a_copy_between_prediction_and_explanation_explains_as_the_original() -> None:
    model = forest.ARFClassifier(n_models=2, seed=1)
    both = Explainers(model, two(model, loss="zero_one"))
    for x, y in blobs(60, seed=3):
        both.explain_one(x, y)
        model.learn_one(x, y)
    x, y = next(iter(blobs(1, seed=9)))
    both.predict(x)
    copied = copy.deepcopy(both)
    assert bits(copied.explain(y)) == bits(both.explain(y))


def test_each_explainer_reads_what_is_missing_by_its_own_policy() -> None:
    policies: list[Any] = ["absent", "skip", {"x1": 0.25}]
    model = naive_bayes.GaussianNB()
    mine = {str(i): PFI(model, missing=policy, seed=1) for i, policy in enumerate(policies)}
    alone = {str(i): PFI(model, missing=policy, seed=1) for i, policy in enumerate(policies)}
    both = Explainers(model, mine, missing="absent")
    for i, (x, y) in enumerate(blobs(80, seed=3)):
        row = {**x, "x1": None} if i % 5 == 4 else x
        explained = both.explain_one(row, y)
        for name, one in alone.items():
            assert_close(explained[name], one.explain_one(row, y), f"{i}: {name}")
        model.learn_one(x, y)
    assert mine["1"].skipped["missing"] == 16
    assert mine["0"].skipped["missing"] == mine["2"].skipped["missing"] == 0


def test_an_observation_that_no_explainer_takes_is_asked_for_once() -> None:
    asked: list[Row] = []

    def model(x: Row) -> float:
        asked.append(dict(x))
        return float(x.get("x0", 0.0))

    both = Explainers(model, two(model, loss="squared", missing="skip"), missing="absent")
    rows = [x for x, _ in blobs(12, seed=3)]
    for x in rows:
        both.explain_one(x, 0.0)
    asked.clear()
    both.explain_one({**rows[0], "x1": None}, 0.0)
    assert len(asked) == 1
    assert [e.skipped["missing"] for e in both.explainers.values()] == [1, 1]
