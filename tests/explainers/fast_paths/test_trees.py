"""The fast path of single trees equals the trees, whatever they do to themselves."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from river import drift, linear_model, tree
from river.tree import splitter as splitters

from attributary_explainers.core.evaluators import trees
from attributary_explainers.evaluation.evaluator import Evaluator, NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator, read_as_categories
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.typing import Array

from . import harness
from .harness import by_the_model, equals_the_model, learnt, predicted, refused
from .tree_cases import branches, drifting, growing_numbers, leaves


def evaluator_and_rows(model: Any, rows: list[harness.Row]) -> tuple[Evaluator, Array]:
    schema = Schema(rows[0])
    return make_evaluator(model, schema), schema.encode_many(rows)


QUICK: dict[str, Any] = {"grace_period": 20, "delta": 0.05, "tau": 0.1}
"""Trees that split soon and often."""


all_covered = partial(harness.all_covered, n_rows=8, fresh_every=25, copy_every=200)


@pytest.mark.parametrize("categories", [0, 6])
@pytest.mark.parametrize("leaf_prediction", ["mc", "nb", "nba"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (tree.HoeffdingTreeClassifier, {}),
        (tree.HoeffdingTreeClassifier, {"binary_split": True, "nb_threshold": 15, "max_depth": 4}),
        (tree.HoeffdingAdaptiveTreeClassifier, {"seed": 1, "drift_window_threshold": 30}),
        (tree.ExtremelyFastDecisionTreeClassifier, {"min_samples_reevaluate": 10}),
    ],
)
@pytest.mark.share(3, "options", "leaf_prediction", "categories")
def test_a_classifier_is_the_model(kind: Any, options: dict[str, Any], leaf_prediction: str, categories: int) -> None:
    model, most = kind(**QUICK, **options, leaf_prediction=leaf_prediction), []
    all_covered(model, drifting(700, categories=categories), after=lambda _, model: most.append(model.n_nodes))
    assert max(most) > 5


@pytest.mark.parametrize("labels", [("x",), ("a", "b", "c"), (1, 0, 2), tuple(range(10)), (True, "a", 3)])
def test_labels_of_any_kind_are_in_the_order_of_the_model(labels: tuple[Any, ...]) -> None:
    # River's plain trees sort their classes, and nominal features theirs, which fails where these are of several types.
    mixed = len({type(label) for label in labels}) > 1
    model = (tree.HoeffdingAdaptiveTreeClassifier if mixed else tree.HoeffdingTreeClassifier)(**QUICK)
    stream = drifting(500, labels, categories=0 if mixed else 4)
    all_covered(model, stream)
    schema = Schema(stream[0][0], () if mixed else ("colour", "shape"))
    evaluator = make_evaluator(model, schema)
    evaluator.predict(schema.encode_many([stream[0][0]]))
    assert evaluator.labels == ((True, 3, "a") if mixed else tuple(sorted(labels)))


def test_a_new_class_late_and_sorted_before_all_others() -> None:
    stream = drifting(400, ("m", "n")) + drifting(300, ("a", "m", "z"), seed=2)
    model = tree.HoeffdingTreeClassifier(**QUICK)
    all_covered(model, stream)
    assert model.n_branches > 1


def test_before_the_first_observation() -> None:
    row = {"a": 1.0, "b": 2.0}
    assert predicted(tree.HoeffdingTreeClassifier(), [row, row]).shape == (2, 0)
    for kind in (tree.HoeffdingTreeRegressor, tree.HoeffdingAdaptiveTreeRegressor):
        assert predicted(kind(), [row]).tolist() == [[0.0]]


def test_numbers_that_the_tree_reads_as_categories() -> None:
    stream = [({"k": i * 7919 % 5, "n": i * 31 % 17 / 3.0}, (i * 7919 % 5) in (1, 3)) for i in range(400)]
    for binary in (False, True):
        model = tree.HoeffdingTreeClassifier(**QUICK, nominal_attributes=["k"], binary_split=binary)
        assert read_as_categories(model) == {"k"}
        all_covered(model, stream)
        assert any(branch.feature == "k" for branch in branches(model))


def test_a_category_that_a_split_does_not_know_goes_where_most_weight_is() -> None:
    stream = drifting(300, numbers=1, categories=3)
    model = learnt(tree.HoeffdingTreeClassifier(**QUICK), stream)
    assert any(branch.max_branches() == -1 for branch in branches(model))
    rows = [
        {**x, "colour": "unheard-of", "shape": shape} for (x, _), shape in zip(stream[:12], "abcd" * 3, strict=True)
    ]
    schema = Schema(rows[0], ("colour", "shape"))
    evaluator = make_evaluator(model, schema)
    rng = random.Random(4)
    gone = set()
    for _ in range(300):
        equals_the_model(evaluator.predict(schema.encode_many(rows)), model, rows)
        gone.add(id(next(branch for branch in branches(model) if branch.max_branches() == -1).most_common_path()[1]))
        x, y = rng.choice(stream)
        model.learn_one({**x, "colour": "c1"} if len(gone) < 2 else x, y, w=5.0)
    assert len(gone) > 1, "the way did not change, so that the test shows nothing"


def test_an_unknown_category_counts_an_alternate_leaf_twice_as_river_does() -> None:
    stream = drifting(600, numbers=3, categories=3, noise=0.0)
    model = learnt(tree.HoeffdingAdaptiveTreeClassifier(**QUICK, seed=1), stream)
    top = next(branch for branch in branches(model) if branch.max_branches() == -1)
    _, below = top.most_common_path()
    if not hasattr(below, "children"):
        left, right = (model._new_leaf(counts, parent=below) for counts in ({False: 300.0, True: 1.0}, {True: 500.0}))
        split = (dict(below.stats), "n0", 5.0, below.depth, left, right)
        below = model._branch_selector()(*split, drift_detector=drift.ADWIN())
        left._mean_error.update(1)
        right._mean_error.update(0.5)
        top.children[top.most_common_path()[0]] = below
    below._alternate_tree = model._new_leaf({False: 3.0, True: 7.0}, parent=below)
    below._alternate_tree._mean_error.update(0.25)
    rows = [{**x, "colour": "unheard-of", "shape": "unheard-of"} for x, _ in stream[:20]]
    expected = by_the_model(model, rows)
    equals_the_model(predicted(model, rows, Schema(rows[0], ("colour", "shape"))), model, rows)
    below._alternate_tree = None
    assert np.abs(expected - by_the_model(model, rows)).max() > 1e-3


def test_alternate_trees_come_and_go() -> None:
    model = tree.HoeffdingAdaptiveTreeClassifier(
        grace_period=60, delta=0.05, seed=3, drift_window_threshold=20, drift_detector=drift.ADWIN(0.05, clock=4)
    )
    with_alternates = []

    def after(_: int, model: Any) -> None:
        with_alternates.append(any(branch._alternate_tree is not None for branch in branches(model)))

    rows = [x for seed in range(4) for x, _ in drifting(300, numbers=3, seed=seed)]
    stream = [(x, ((x["n0"] > 5) != (x["n1"] > 0)) != i // 300 % 2) for i, x in enumerate(rows)]
    all_covered(model, stream, after=after)
    assert with_alternates.count(True) > 100
    assert model.n_switch_alternate_trees
    assert model.n_pruned_alternate_trees


def test_memory_management_that_puts_leaves_to_sleep_and_wakes_them() -> None:
    model = tree.HoeffdingTreeClassifier(**QUICK, max_size=0.06, memory_estimate_period=10)
    asleep: list[frozenset[int]] = []
    keep: list[Any] = []

    def after(_: int, model: Any) -> None:
        keep.extend(leaves(model))
        asleep.append(frozenset(id(leaf) for leaf in leaves(model) if not leaf.is_active()))

    all_covered(model, drifting(700, categories=3), after=after)
    assert any(asleep)
    assert any(before - now for before, now in pairwise(asleep)), "no leaf woke up"


def test_a_leaf_that_slept_and_woke_between_two_calls_has_forgotten_its_observers() -> None:
    stream = drifting(400)
    model = learnt(tree.HoeffdingTreeClassifier(**QUICK, leaf_prediction="nb"), stream)
    rows = [x for x, _ in stream[:40]]
    evaluator, X = evaluator_and_rows(model, rows)
    before = evaluator.predict(X).copy()
    model.max_size = 1e-6
    model._estimate_model_size()
    assert model.n_active_leaves == 0
    model.max_size = 100.0
    model._enforce_size_limit()
    assert model.n_inactive_leaves == 0
    model.learn_one(rows[0], stream[0][1], w=1e-9)
    found = evaluator.predict(X)
    equals_the_model(found, model, rows)
    assert np.abs(found - before).max() > 1e-3


@pytest.mark.parametrize("how", ["one leaf falls asleep", "one falls asleep and one wakes up"])
def test_other_leaves_fall_asleep_while_the_known_one_learns(how: str) -> None:
    # As River's memory management does it, which needs a tree of many megabytes to do just this.
    stream = drifting(500)
    model = learnt(tree.HoeffdingTreeClassifier(**QUICK, leaf_prediction="nb"), stream)
    first, *rest = [leaf for leaf in leaves(model) if len(leaf.stats) == 2]
    rest[0].deactivate()
    rows = sorted((x for x, _ in stream), key=lambda x: model._root.traverse(x) is not first)[:400]
    evaluator, X = evaluator_and_rows(model, rows)
    evaluator.predict(X)
    before = evaluator.predict(X).copy()
    rest[1].deactivate()
    if how == "one leaf falls asleep":
        model._n_inactive_leaves += 1
        model._n_active_leaves -= 1
    else:
        rest[0].activate()
        model._size_estimate_overhead_fraction *= 1.5
    first.last_split_attempt_at = first.total_weight
    model.learn_one(rows[0], True)
    found = evaluator.predict(X)
    equals_the_model(found, model, rows)
    assert sum(model._root.traverse(row) is rest[1] for row in rows) > 0
    assert np.abs(found - before).max() > 1e-3


@pytest.mark.parametrize("leaf_prediction", ["nb", "nba"])
def test_other_observations_with_weights_are_learnt_between_two_calls(leaf_prediction: str) -> None:
    rng = random.Random(7)
    stream = drifting(500, categories=4)

    def after(step: int, model: Any) -> None:
        for _ in range(rng.randrange(3)):
            x, y = rng.choice(stream[: step + 1])
            model.learn_one(x, y, w=rng.choice((0.1, 0.5, 1, 3, 2.5)))

    for kind in (tree.HoeffdingTreeClassifier, tree.HoeffdingAdaptiveTreeClassifier):
        all_covered(kind(**QUICK, leaf_prediction=leaf_prediction), stream, after=after)


def test_weight_moves_from_one_leaf_to_another_of_the_same_size() -> None:
    # The row of the last call is not the one that is learnt, and another leaf learns as much as it would have.
    stream = drifting(500)
    model, rows = learnt(tree.HoeffdingTreeClassifier(**QUICK), stream[:400]), [x for x, _ in stream[:50]]
    evaluator, X = evaluator_and_rows(model, rows)
    evaluator.predict(X)
    for x, y in stream[400:]:
        model.learn_one(x, y)
        equals_the_model(evaluator.predict(X), model, rows)


def test_a_class_without_weight_votes() -> None:
    stream = [({"a": "xyz"[i % 3], "b": "uv"[i % 2]}, i % 3 == 0) for i in range(60)]

    def after(step: int, model: Any) -> None:
        if step > 10:
            model.learn_one(stream[step][0], "weightless", w=0.0)

    model = tree.HoeffdingAdaptiveTreeClassifier(leaf_prediction="nb", bootstrap_sampling=False, seed=1)
    all_covered(model, stream, after=after)
    assert model.predict_proba_one(stream[0][0])["weightless"] > 0.01


@pytest.mark.parametrize("leaf_prediction", ["mc", "nb"])
def test_a_leaf_without_any_weight_says_nothing(leaf_prediction: str) -> None:
    model = tree.HoeffdingTreeClassifier(leaf_prediction=leaf_prediction)
    model.learn_one({"a": "x"}, "weightless", w=0.0)
    assert model.predict_proba_one({"a": "x"}) == {"weightless": 0.0}
    assert predicted(model, [{"a": "x"}], Schema(("a",), ("a",))).tolist() == [[0.0]]


def test_an_adaptive_leaf_whose_error_alone_changes() -> None:
    # Alone at the root it cancels; beside an alternate leaf it does not.
    model = tree.HoeffdingAdaptiveTreeClassifier(**QUICK, seed=1)
    stream = [({"a": "xyz"[i % 3], "b": "uv"[i % 2]}, (i % 3 == 0) != (i % 7 == 0)) for i in range(300)]

    def after(step: int, model: Any) -> None:
        if step == 200:
            model._root._alternate_tree = model._new_leaf({True: 3.0, False: 5.0}, parent=model._root)
            model._root._alternate_tree._mean_error.update(0.5)
        model.learn_one(*stream[step // 2], w=0.0)

    all_covered(model, stream, after=after)
    assert model.n_branches > 0


def test_settings_that_are_changed_on_the_way() -> None:
    def after(step: int, model: Any) -> None:
        if step == 150:
            model.nb_threshold = 60
        if step == 250:
            model.nb_threshold = 0
        if step == 300 and isinstance(model, tree.HoeffdingAdaptiveTreeClassifier):
            model.leaf_prediction = "mc"

    for kind in (tree.HoeffdingTreeClassifier, tree.HoeffdingAdaptiveTreeClassifier):
        all_covered(kind(**QUICK, leaf_prediction="nb"), drifting(400), after=after)


def test_a_threshold_that_is_changed_while_nothing_is_learnt() -> None:
    model = learnt(tree.HoeffdingTreeClassifier(**QUICK, leaf_prediction="nb"), drifting(500))
    rows = [x for x, _ in drifting(500)]
    evaluator, X = evaluator_and_rows(model, rows)
    evaluator.predict(X)
    before = evaluator.predict(X).copy()
    model.nb_threshold = 10**6
    found = evaluator.predict(X)
    equals_the_model(found, model, rows)
    assert np.abs(found - before).max() > 1e-3


@pytest.mark.long
def test_thousands_of_nodes_and_thirty_features() -> None:
    rng = random.Random(2)
    options: dict[str, Any] = {"grace_period": 4, "delta": 0.99, "tau": 2.0, "leaf_prediction": "nba"}
    model = tree.HoeffdingTreeClassifier(**options, merit_preprune=False)
    for i in range(4000):
        model.learn_one({"a": f"v{rng.randrange(60)}", "b": f"w{rng.randrange(60)}", "c": rng.random()}, i % 4)
    assert model.n_nodes > 1500
    stream = [({"a": f"v{i % 70}", "b": f"w{i * 7 % 60}", "c": rng.random()}, i % 4) for i in range(60)]
    all_covered(model, stream)
    all_covered(tree.HoeffdingTreeClassifier(**QUICK), drifting(300, numbers=30))


@pytest.mark.parametrize("leaf_prediction", ["mean", "model", "adaptive"])
@pytest.mark.parametrize("kind", [tree.HoeffdingTreeRegressor, tree.HoeffdingAdaptiveTreeRegressor])
@pytest.mark.parametrize("splitter", [None, splitters.QOSplitter(allow_multiway_splits=True), splitters.EBSTSplitter()])
@pytest.mark.share(3, "splitter", "kind", "leaf_prediction")
def test_a_regressor_is_the_model(kind: Any, leaf_prediction: str, splitter: Any) -> None:
    # A linear model has no use for strings.
    categories = 4 if leaf_prediction == "mean" else 0
    model, most = kind(grace_period=20, delta=0.05, leaf_prediction=leaf_prediction, splitter=splitter), []
    stream = growing_numbers(500, categories=categories)
    all_covered(model, stream, number=True, after=lambda _, model: most.append(model.n_nodes))
    assert max(most) > 5


def test_an_adaptive_regressor_with_alternate_trees() -> None:
    model = tree.HoeffdingAdaptiveTreeRegressor(
        grace_period=20, delta=0.1, seed=1, drift_window_threshold=20, drift_detector=drift.ADWIN(0.3, grace_period=5)
    )
    stream = [(x, y * (1 if i // 300 % 2 else -2)) for i, (x, y) in enumerate(growing_numbers(1200))]
    all_covered(model, stream, number=True)
    assert model.n_alternate_trees > 0


def test_a_linear_leaf_in_which_too_much_cancels_is_refused() -> None:
    stream = (({"a": i % 5 / 5, "b": i % 7 / 7, "c": 1.0}, i % 5 + i % 7) for i in range(50))
    model = learnt(tree.HoeffdingTreeRegressor(leaf_prediction="model"), stream)
    x = {"a": 0.5, "b": 0.25, "c": 1.0}
    evaluator, X = evaluator_and_rows(model, [x])
    assert evaluator.predict(X).item() == pytest.approx(model.predict_one(x), abs=1e-12)
    weights = model._root._leaf_model.weights
    X[0, :2] = 1e9 / weights["a"], -1e9 / weights["b"]
    with pytest.raises(NotCoveredError, match="cancels"):
        evaluator.predict(X)


def test_trees_that_are_not_covered_are_refused() -> None:
    class Mine(tree.HoeffdingTreeClassifier):
        pass

    histograms = splitters.HistogramSplitter()
    for match, model in (
        ("no fast path", Mine()),
        ("HistogramSplitter", tree.HoeffdingTreeClassifier(splitter=histograms)),
        ("PARegressor", tree.HoeffdingTreeRegressor(leaf_prediction="model", leaf_model=linear_model.PARegressor())),
        ("no fast path", tree.SGTClassifier()),
    ):
        learnt(model, (({"a": float(i), "b": 1.0}, i % 2) for i in range(30)))
        refused(match, model, Schema(("a", "b")), to_predict=True)
    beside_a_text = learnt(
        tree.HoeffdingTreeRegressor(leaf_prediction="model"), (({"a": 0.1 * i}, i) for i in range(30))
    )
    with pytest.raises(TypeError, match="real numbers"):
        beside_a_text.predict_one({"a": 1.0, "note": "b"})
    refused("reads no categories", beside_a_text, Schema(("a", "note"), ("note",)), to_predict=True)
    # What is not asked for does no harm.
    all_covered(tree.HoeffdingTreeClassifier(splitter=histograms, leaf_prediction="mc"), drifting(200))


def test_a_refused_call_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tree.HoeffdingTreeClassifier(**QUICK)
    stream = drifting(400)
    schema = Schema(stream[0][0])
    evaluator = None
    refusals = 0
    for step, (x, y) in enumerate(stream):
        model.learn_one(x, y)
        rows = [row for row, _ in stream[max(0, step - 20) : step + 1]]
        X = schema.encode_many(rows)
        evaluator = evaluator or make_evaluator(model, schema)
        with monkeypatch.context() as patch:
            patch.setattr(trees, "CLASS_LEAVES", {})
            try:
                evaluator.predict(X)
            except NotCoveredError:
                refusals += 1
                continue
            finally:
                model.learn_one(*stream[step // 2])
        found = evaluator.predict(X)
        assert evaluator.labels is not None
        equals_the_model(found, model, rows, evaluator.labels)
    assert refusals > 3


def test_a_value_so_far_away_that_river_itself_fails() -> None:
    stream = (({"a": float(i % 7)}, i % 2) for i in range(50))
    model = learnt(tree.HoeffdingTreeClassifier(leaf_prediction="nb"), stream)
    with pytest.raises(OverflowError):
        model.predict_proba_one({"a": 1e200})
    with pytest.raises(NotCoveredError, match="too far"):
        predicted(model, [{"a": 1e200}])
