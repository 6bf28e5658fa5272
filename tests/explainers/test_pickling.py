"""Copies of models predict and learn as the original does, share nothing with it, and are small."""

import gc
import io
import pickle
import sys
import threading
from contextlib import nullcontext

import pytest
from river import compose, forest, linear_model, naive_bayes, preprocessing, proba, tree
from river.datasets import synth

from attributary_explainers import ModelError, dump_model, freeze, load_model
from attributary_explainers.pickling import _restore_gaussian, _restore_search_tree
from tests.explainers.oracles import small_and_red
from tests.explainers.stand_ins import Counting, HoldingALock

MODELS = {
    "forest": lambda: forest.ARFClassifier(n_models=3, seed=1),
    "tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(grace_period=50, seed=1),
    "bayes": naive_bayes.GaussianNB,
    "scaled": lambda: compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
}
FIRST = list(synth.Agrawal(classification_function=1, seed=1).take(1200))
THEN = list(synth.Agrawal(classification_function=2, seed=2).take(300))


def taught(name):
    model = MODELS[name]()
    for x, y in FIRST:
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("name", list(MODELS))
def test_a_copy_predicts_and_learns_as_the_original(name):
    model = taught(name)
    for copied in (load_model(dump_model(model)), freeze(model)):
        original = pickle.loads(pickle.dumps(model))  # its own original, as both go on learning
        for x, y in THEN:
            assert copied.predict_proba_one(x) == original.predict_proba_one(x)
            copied.learn_one(x, y)
            original.learn_one(x, y)


def test_a_copy_of_a_copy_goes_on_in_the_same_way():
    model = taught("forest")
    second = load_model(dump_model(load_model(dump_model(model))))
    for x, y in THEN:
        assert second.predict_proba_one(x) == model.predict_proba_one(x)
        second.learn_one(x, y)
        model.learn_one(x, y)


def test_a_copy_selects_features_in_the_order_of_the_original():
    select = compose.Select(7, 15)  # both have the same place in a set of this size
    x = {7: 1.0, 15: 2.0}
    order = list(select.transform_one(x))
    assert list(pickle.loads(pickle.dumps(select)).transform_one(x)) != order
    copied = load_model(dump_model(select))
    for again in (copied, freeze(select), freeze(copied), pickle.loads(pickle.dumps(copied))):
        assert list(again.transform_one(x)) == order
        assert again.keys == select.keys


@pytest.mark.parametrize("learner", ["original", "copy"])
@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.share(2, "name", "learner")
def test_what_one_of_original_and_frozen_copy_learns_leaves_the_other_as_it_was(name, learner):
    model = taught(name)
    learning, other = (model, freeze(model)) if learner == "original" else (freeze(model), model)
    before = [model.predict_proba_one(x) for x, _ in THEN]
    for x, y in THEN:
        learning.learn_one(x, 1 - y)
    assert [other.predict_proba_one(x) for x, _ in THEN] == before
    assert [learning.predict_proba_one(x) for x, _ in THEN] != before


def test_the_bytes_are_much_smaller_than_a_pickle():
    model = taught("forest")
    # A Mersenne Twister is 2.5 kB in every Gaussian of every leaf: 9 features, 2 classes.
    assert len(dump_model(model)) < len(pickle.dumps(model, 5)) / 2


class AskingOfEach(pickle.Pickler):
    """Asks Python about every object, as `dump_model` asks about those of a few types."""

    def reducer_override(self, obj):
        if type(obj) is proba.Gaussian and obj.seed is None:
            return _restore_gaussian, ({name: value for name, value in vars(obj).items() if name != "_rng"},)
        return NotImplemented


def test_the_bytes_are_the_same_whoever_is_asked_and_whatever_is_noted():
    model = taught("forest")
    expected, named = io.BytesIO(), {}
    AskingOfEach(expected, 5).dump(model)
    assert dump_model(model) == dump_model(model, named) == expected.getvalue()
    assert {type(model), _restore_gaussian} <= {*named.values()}


def test_a_seeded_gaussian_keeps_its_generator():
    gaussian = proba.Gaussian(seed=3)
    gaussian.update(1.0)
    gaussian.update(2.0)
    copied = load_model(dump_model(gaussian))
    assert [copied.sample() for _ in range(5)] == [gaussian.sample() for _ in range(5)]


def test_a_frozen_object_is_a_copy_and_a_frozen_function_itself():
    model = Counting()
    frozen = freeze(model)
    model.learn_one({}, 0)
    assert (frozen({}), model({})) == (0.0, 1.0)
    assert freeze(small_and_red) is small_and_red


def test_a_frozen_method_does_not_follow_its_object():
    # model.predict_one is a callable x -> prediction, as a plain function is; but what it predicts changes.
    model = linear_model.LinearRegression()
    frozen = freeze(model.predict_one)
    before = frozen({"a": 1.0})
    for _ in range(10):
        model.learn_one({"a": 1.0}, 5.0)
    assert model.predict_one({"a": 1.0}) != before
    assert frozen({"a": 1.0}) == before


def test_a_frozen_closure_does_not_follow_what_it_closes_over():
    # `lambda x: model.predict_one(x)` is a plain function, but no copy of itself: refuse it, or copy the model.
    model = linear_model.LinearRegression()
    try:
        frozen = freeze(lambda x: model.predict_one(x))
    except ModelError:
        return
    before = frozen({"a": 1.0})
    for _ in range(10):
        model.learn_one({"a": 1.0}, 5.0)
    assert frozen({"a": 1.0}) == before


class HoldingALambda(HoldingALock):
    def __init__(self):
        self.function = lambda x: 0.0


@pytest.mark.parametrize("model", [HoldingALock(), HoldingALambda()])
def test_what_cannot_be_pickled_is_refused_with_advice(model):
    for function in (dump_model, freeze):
        with pytest.raises(ModelError, match=rf"cannot save {type(model).__name__}: .*no lambdas, locks or open files"):
            function(model)


BY_TIME = {
    "regressor": lambda: tree.HoeffdingTreeRegressor(grace_period=900),
    "classifier": lambda: tree.HoeffdingTreeClassifier(
        grace_period=900, splitter=tree.splitter.ExhaustiveSplitter(), leaf_prediction="mc"
    ),
    "several targets": lambda: tree.ISOUPTreeRegressor(grace_period=900),
}


@pytest.mark.parametrize("name", list(BY_TIME))
def test_a_tree_that_has_seen_a_time_grow_is_copied_and_learns_as_the_original(name):
    """River keeps the values that a leaf has seen in a search tree: of growing ones, a chain."""
    model = BY_TIME[name]()
    targets = {"regressor": float, "classifier": bool, "several targets": lambda high: {"u": 9e5 * high, "v": 1.0}}
    label = targets[name]

    def learn(learner, first, last):
        for t in range(first, last):
            learner.learn_one({"time": t, "noise": (t * 7919) % 101}, label(t % 500 > 200))

    learn(model, 0, 800)
    assert model.n_branches == 0
    with pytest.raises(RecursionError):
        pickle.dumps(model)

    first = load_model(dump_model(model))
    copied = load_model(dump_model(first))
    # Not the bytes: two names in a set of targets may change places each time that it is copied.
    assert len(dump_model(copied)) == len(dump_model(first))
    for one in (model, copied):
        learn(one, 800, 2000)
    assert (model.height, model.n_leaves) == (copied.height, copied.n_leaves) != (0, 0)
    for t in range(0, 2500, 50):
        x = {"time": t, "noise": t % 101}
        assert copied.predict_one(x) == model.predict_one(x)


def test_no_other_class_is_restored_as_a_search_tree():
    with pytest.raises(ModelError, match="unknown kind"):
        _restore_search_tree(HoldingALock, [(0, (1.0,))])


class Link:
    def __init__(self, following):
        self.following = following


def chain(length):
    link = None
    for _ in range(length):
        link = Link(link)
    return link


def test_parts_within_parts_deeper_than_python_recurses_are_copied():
    before = (sys.getrecursionlimit(), threading.stack_size())
    copied, length = freeze(chain(3000)), 0
    with pytest.raises(RecursionError):
        pickle.dumps(chain(3000))
    while copied is not None:
        copied, length = copied.following, length + 1
    assert length == 3000
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


def test_parts_within_parts_that_never_end_are_refused_with_advice():
    before = (sys.getrecursionlimit(), threading.stack_size())
    with pytest.raises(ModelError, match=r"cannot save Link: .* Give trees a max_depth"):
        dump_model(chain(50_000))
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


@pytest.mark.parametrize("model", [HoldingALock(), HoldingALambda()])
def test_what_cannot_be_pickled_deep_inside_is_refused_with_the_same_advice(model):
    deep = chain(3000)
    last = deep
    while last.following is not None:
        last = last.following
    last.following = model
    with pytest.raises(ModelError, match=r"cannot save Link: .*no lambdas, locks or open files"):
        dump_model(deep)


def test_loading_leaves_the_garbage_collector_as_it_was():
    data = dump_model(taught("bayes"))
    assert gc.isenabled()
    load_model(data)
    assert gc.isenabled()
    gc.disable()
    try:
        load_model(data)
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(pickle.UnpicklingError):
        load_model(b"not a model")
    assert gc.isenabled()


class Noting:
    """Notes at each pickle whether the garbage collector may run meanwhile; one that fails ends the pickle."""

    def __init__(self, fails=False):
        self.fails, self.seen = fails, []

    def __reduce__(self):
        self.seen.append(gc.isenabled())
        if self.fails:
            raise TypeError("cannot be pickled")
        return Noting, ()


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_collected_while_a_model_is_dumped(fails):
    """A full collection looks through all models of a worker, in the middle of the state of one."""
    model = Noting(fails)
    with pytest.raises(ModelError) if fails else nullcontext():
        dump_model(model)
    assert model.seen == [False]
    assert gc.isenabled()


class AskedMeanwhile:
    """Has a scaler asked of a feature that is new to it, as by another thread, whenever it is pickled."""

    def __init__(self, scaler, times):
        self.scaler, self.times = scaler, times

    def __reduce__(self):
        if self.times > 0:
            self.times -= 1
            self.scaler.transform_one({f"new-{self.times}": 1.0})
        return str, ("asked",)


@pytest.mark.parametrize(("times", "is_saved"), [(1, True), (3, True), (1000, False)])
def test_a_model_that_is_asked_while_it_is_saved_is_saved(times, is_saved):
    scaler = preprocessing.StandardScaler()
    for x, _ in FIRST[:20]:
        scaler.learn_one({"age": x["age"]})
    expected = scaler.transform_one({"age": 30.0})
    asked = AskedMeanwhile(scaler, times)
    scaler.vars["asked"] = asked
    with nullcontext() if is_saved else pytest.raises(RuntimeError, match="changed size"):
        assert load_model(dump_model(scaler)).transform_one({"age": 30.0}) == expected
    assert asked.times == (0 if is_saved else times - 20)
