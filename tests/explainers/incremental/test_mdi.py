"""MDI against trees built by hand and a plain recursion, impurity minus impurity, over the leaves' statistics."""

import random
from fractions import Fraction

import numpy as np
import pytest
from river import compose, drift, ensemble, forest, linear_model, naive_bayes, preprocessing, stats, tree
from river.datasets import synth
from river.tree.nodes.branch import NominalMultiwayBranch, NumericBinaryBranch
from river.tree.nodes.htc_nodes import LeafMajorityClass
from river.tree.nodes.htr_nodes import LeafMean

from attributary_explainers.errors import InvalidParameterError, ModelError, SnapshotError
from attributary_explainers.incremental.mdi import IncrementalMDI
from tests.explainers.fast_paths.harness import learnt
from tests.explainers.plain_data import strangers

QUICK = tree.HoeffdingTreeClassifier(grace_period=50, delta=0.01, tau=0.2)
CLASSIFIERS = [
    QUICK,
    tree.HoeffdingTreeClassifier(grace_period=50, delta=0.01, nominal_attributes=["elevel", "car", "zipcode"]),
    tree.HoeffdingAdaptiveTreeClassifier(grace_period=50, delta=0.01, seed=1),
    tree.ExtremelyFastDecisionTreeClassifier(grace_period=50, min_samples_reevaluate=50, delta=0.01),
    tree.LASTClassifier(change_detector=drift.ADWIN(delta=0.3)),
]
REGRESSORS = [
    tree.HoeffdingTreeRegressor(grace_period=50, delta=0.01),
    tree.HoeffdingAdaptiveTreeRegressor(grace_period=50, delta=0.01, seed=1),
]


def leaf(counts):
    return LeafMajorityClass(counts, 1, None)


def mean_leaf(targets):
    var = stats.Var()
    for y in targets:
        var.update(y)
    return LeafMean(var, 1, None)


def split(feature, *children, stats_of_the_split=None):
    if len(children) == 2:
        return NumericBinaryBranch(stats_of_the_split, feature, 0.5, 0, *children)
    return NominalMultiwayBranch(stats_of_the_split, feature, range(len(children)), 0, *children)


def planted(root, model=None):
    model = tree.HoeffdingTreeClassifier() if model is None else model
    model._root = root
    return model


def naive(node):
    """Weight n, sums and sum of squares of the (one-hot) target, n * impurity, n * decreases: the textbook's way."""
    decreases = {}
    if hasattr(node, "children"):
        parts = [naive(child) for child in node.children]
    elif isinstance(node.stats, dict):
        parts = [(count, {label: count}, count, 0.0, {}) for label, count in node.stats.items()]
    else:
        n, mean = node.stats.n, node.stats.mean.get()
        parts = [(n, {None: n * mean}, node.stats.get() * max(n - 1, 0) + n * mean**2, 0.0, {})]
    weight, squares, below = (sum(part[i] for part in parts) for i in (0, 2, 3))
    labels = {label for part in parts for label in part[1]}
    sums = {label: sum(part[1].get(label, 0.0) for part in parts) for label in labels}
    scatter = squares - sum(value**2 for value in sums.values()) / weight if weight else 0.0
    for feature in {feature for part in parts for feature in part[4]}:
        decreases[feature] = sum(part[4].get(feature, 0.0) for part in parts)
    if hasattr(node, "children"):
        decreases[node.feature] = decreases.get(node.feature, 0.0) + scatter - below
    return weight, sums, squares, scatter, decreases


def leaves(node):
    return [leaf for child in node.children for leaf in leaves(child)] if hasattr(node, "children") else [node]


def agrawal(n, seed=3, function=2):
    return synth.Agrawal(classification_function=function, seed=seed).take(n)


def test_one_split_has_the_decrease_of_its_counts():
    model = planted(split("a", leaf({0: 30, 1: 10}), leaf({0: 5, 1: 55})))

    def gini(*counts):
        return 1 - sum(Fraction(count, sum(counts)) ** 2 for count in counts)

    exact = gini(35, 65) - Fraction(40, 100) * gini(30, 10) - Fraction(60, 100) * gini(5, 55)
    mdi = IncrementalMDI(model)
    assert mdi.importance == {"a": pytest.approx(float(exact), abs=1e-15)}
    assert mdi.explain_one({"a": 1.0}, 1) == mdi.explain_one({"b": 1.0}) == mdi.importance


def test_deeper_splits_are_weighted_by_the_share_that_reached_them():
    inner = split("b", leaf({"x": 8}), leaf({"y": 12}))
    model = planted(split("a", inner, leaf({"x": 30}), leaf({"y": 50}), leaf({})))
    # b: the share 20/100 with impurity 0.48, to 0; a: 2 * .38 * .62 before, 0.2 * 0.48 left.
    assert IncrementalMDI(model).importance == {
        "b": pytest.approx(0.2 * 0.48, abs=1e-15),
        "a": pytest.approx(2 * 0.38 * 0.62 - 0.2 * 0.48, abs=1e-15),
    }


def test_a_regressors_split_has_the_decrease_in_variance():
    rng = np.random.default_rng(1)
    groups = [rng.normal(1000.0 + 3 * i, 1.0, size=n) for i, n in enumerate((40, 7, 1))]
    inner = split("b", mean_leaf(groups[1]), mean_leaf(groups[2]))
    model = planted(split("a", mean_leaf(groups[0]), inner), tree.HoeffdingTreeRegressor())
    everything, below = np.concatenate(groups), np.concatenate(groups[1:])
    b = (below.var() * 8 - groups[1].var() * 7) / 48
    a = everything.var() - (groups[0].var() * 40 + below.var() * 8) / 48
    assert IncrementalMDI(model).importance == {"a": pytest.approx(a, abs=1e-9), "b": pytest.approx(b, abs=1e-9)}


def test_what_a_split_kept_of_its_own_and_alternate_trees_are_not_read():
    root = split("a", leaf({0: 30, 1: 10}), leaf({0: 5, 1: 55}))
    stale = split("a", leaf({0: 30, 1: 10}), leaf({0: 5, 1: 55}), stats_of_the_split={0: 1e6, 1: 1})
    stale._alternate_tree = split("b", leaf({0: 9}), leaf({1: 9}))
    assert IncrementalMDI(planted(stale)).importance == IncrementalMDI(planted(root)).importance


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=lambda m: type(m).__name__)
def test_learnt_trees_equal_the_recursion_and_sum_to_what_the_leaves_lack(model):
    regression = model in REGRESSORS
    model = model.clone()
    mdi = IncrementalMDI(model)
    n_compared = 0
    stream = synth.Friedman(seed=1).take(3000) if regression else [*agrawal(1500), *agrawal(1500, 4, 1)]
    for i, (x, y) in enumerate(stream):
        model.learn_one(x, y)
        if i % 250 == 249 and hasattr(model._root, "children"):
            weight, _, _, scatter, decreases = naive(model._root)
            expected = {feature: decrease / weight for feature, decrease in decreases.items()}
            assert mdi.importance == pytest.approx(expected, abs=1e-12, rel=1e-12)
            assert all(value >= 0.0 for value in mdi.importance.values())
            left = sum(naive(leaf)[3] for leaf in leaves(model._root))
            assert sum(mdi.importance.values()) == pytest.approx((scatter - left) / weight, abs=1e-12, rel=1e-12)
            n_compared += 1
    assert n_compared >= 3


@pytest.mark.parametrize(
    ("model", "n_trees"),
    [
        (forest.ARFClassifier(n_models=4, seed=1, grace_period=50), 4),
        (ensemble.BaggingClassifier(QUICK, n_models=3, seed=1), 3),
        (ensemble.ADWINBaggingClassifier(QUICK, n_models=3, seed=1), 3),
        (ensemble.AdaBoostClassifier(QUICK, n_models=3, seed=1), 3),
        (ensemble.SRPClassifier(QUICK, n_models=3, seed=1), 3),
    ],
    ids=lambda m: type(m).__name__,
)
def test_an_ensemble_has_the_mean_over_its_trees(model, n_trees):
    model = learnt(model.clone(), agrawal(1500))
    mdi = IncrementalMDI(model, features=["loan"])
    members = [getattr(member, "model", member) for member in model]
    expected = {"loan": 0.0}
    for member in members:
        for feature, value in IncrementalMDI(member).importance.items():
            expected[feature] = expected.get(feature, 0.0) + value / n_trees
    assert len(members) == n_trees
    assert sum(expected.values()) > 0.0
    assert mdi.importance == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("model", [forest.ARFRegressor(n_models=3, seed=1), forest.OXTRegressor(n_models=3, seed=1)])
def test_forests_of_regressors(model):
    model = model.clone()
    assert IncrementalMDI(model, features=[0]).importance == {0: 0.0}
    mdi = IncrementalMDI(learnt(model, synth.Friedman(seed=1).take(2000)), normalize=True)
    assert sum(mdi.importance.values()) == pytest.approx(1.0, abs=1e-12)
    # Features 0 to 4 make the target, 3 most of all; 5 to 9 are noise.
    assert max(mdi.importance, key=mdi.importance.get) == 3
    assert sum(mdi.importance.get(feature, 0.0) for feature in range(5)) > 0.75


def test_irrelevant_features_have_less():
    colours = synth.STAGGER(classification_function=0, seed=1).take(2000)  # size is small and color is red
    importance = IncrementalMDI(learnt(QUICK.clone(), colours), features=["shape"]).importance
    assert importance["shape"] < 0.01 < 0.03 < min(importance["size"], importance["color"])
    importance = IncrementalMDI(learnt(tree.HoeffdingTreeClassifier(), agrawal(5000, function=0))).importance
    assert importance["age"] > 0.3 > 10 * sum(value for feature, value in importance.items() if feature != "age")


def test_features_of_a_pipeline_are_named_as_they_reach_the_tree():
    encoder = compose.Select("size", "color") | preprocessing.OneHotEncoder()
    model = compose.Pipeline(encoder, tree.HoeffdingTreeClassifier())
    learnt(model, synth.STAGGER(classification_function=2, seed=1).take(1000))
    bagged = ensemble.BaggingClassifier(model.clone(), n_models=2, seed=1)
    learnt(bagged, synth.STAGGER(classification_function=2, seed=1).take(1000))
    for explained in (model, bagged):
        importance = IncrementalMDI(explained).importance
        assert max(importance, key=importance.get).startswith("size_")


@pytest.mark.parametrize(
    "model",
    [
        tree.HoeffdingTreeClassifier(),
        tree.HoeffdingTreeRegressor(),
        forest.ARFClassifier(),
        ensemble.SRPClassifier(tree.HoeffdingTreeClassifier()),
        ensemble.SRPRegressor(),
        compose.Pipeline(preprocessing.StandardScaler(), forest.ARFRegressor()),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("normalize", [False, True])
def test_before_any_split_only_the_named_features_are_there(model, normalize):
    model = model.clone()
    for _ in range(2):
        assert IncrementalMDI(model, normalize=normalize).importance == {}
        assert IncrementalMDI(model, features=["a", "b"], normalize=normalize).importance == {"a": 0.0, "b": 0.0}
        model.learn_one({"a": 1.0, "b": 2.0}, 1)


def test_normalized_importance_sums_to_one():
    model = learnt(tree.HoeffdingTreeClassifier(), agrawal(3000))
    plain, normalized = (IncrementalMDI(model, normalize=n).importance for n in (False, True))
    total = sum(plain.values())
    assert normalized == pytest.approx({feature: value / total for feature, value in plain.items()}, abs=1e-15)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LogisticRegression(),
        tree.SGTClassifier(),
        tree.SGTRegressor(),
        tree.ISOUPTreeRegressor(),
        forest.AMFClassifier(n_estimators=2),
        compose.Pipeline(preprocessing.StandardScaler(), naive_bayes.GaussianNB()),
        ensemble.BaggingClassifier(naive_bayes.GaussianNB(), n_models=2),
        ensemble.SRPClassifier(naive_bayes.GaussianNB(), n_models=2),
        ensemble.VotingClassifier([tree.HoeffdingTreeClassifier(), naive_bayes.GaussianNB()]),
        ensemble.StackingClassifier(
            [tree.HoeffdingTreeClassifier(), tree.HoeffdingTreeClassifier()], tree.HoeffdingTreeClassifier()
        ),
        lambda x: 0.0,
    ],
    ids=lambda m: type(m).__name__,
)
def test_any_other_model_is_refused_by_name(model):
    with pytest.raises(ModelError, match="expected a Hoeffding tree") as caught:
        IncrementalMDI(model)
    named = str(caught.value).split(" for ")[1].split(":")[0]
    assert named in {type(model).__name__, "GaussianNB"}


def test_a_bare_string_is_no_list_of_features():
    with pytest.raises(InvalidParameterError, match="features must be"):
        IncrementalMDI(tree.HoeffdingTreeClassifier(), features="size")


def test_a_snapshot_is_plain_and_has_the_parameters():
    model = learnt(tree.HoeffdingTreeClassifier(), agrawal(1000))
    mdi = IncrementalMDI(model, features=["loan"], normalize=True)
    snapshot = mdi.snapshot()
    again = IncrementalMDI.from_snapshot(snapshot, model)
    assert (again.importance, again.parameters, again.snapshot()) == (mdi.importance, mdi.parameters, snapshot)
    assert strangers(snapshot) == []
    for wrong in ({**snapshot, "explainer": "pfi"}, {**snapshot, "format": 0}):
        with pytest.raises(SnapshotError):
            IncrementalMDI.from_snapshot(wrong, model)


def test_explain_one_reads_every_so_often_and_a_restored_one_at_the_same_observations():
    model = learnt(forest.ARFClassifier(n_models=2, seed=1, grace_period=50), agrawal(500))
    mdi, again, read_at, last = IncrementalMDI(model), None, [], {}
    for i, (x, y) in enumerate(agrawal(250, seed=4)):
        model.learn_one(x, y)
        if i == 70:
            again = IncrementalMDI.from_snapshot(mdi.snapshot(), model)
        now, told = mdi.importance, mdi.explain_one(x, y)
        if told == now:
            read_at.append(i)
        else:
            assert told == last, "what was read last"
        if again is not None:
            assert again.explain_one(x, y) == told
            assert again.snapshot() == mdi.snapshot()
        last = dict(told)
        told.clear()  # the caller's own
    n_nodes = sum(member.n_nodes for member in model)
    assert n_nodes >= 30, "so many that the interval follows from them"
    gaps = np.diff(read_at)
    assert len(gaps) >= 2
    assert 25 <= gaps.min() <= gaps.max() <= n_nodes
    assert gaps.max() > 25


def test_reading_changes_no_model():
    one, other = (forest.ARFClassifier(n_models=2, seed=1) for _ in range(2))
    mdi, rng = IncrementalMDI(one), random.Random(1)
    for x, y in agrawal(800):
        mdi.explain_one(x, y, y_pred=rng.random())
        one.learn_one(x, y)
        other.learn_one(x, y)
    assert IncrementalMDI(other).importance == mdi.importance
