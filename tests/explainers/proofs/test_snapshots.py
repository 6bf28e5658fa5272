"""Snapshot, pickle, restore, continue: the same as never having stopped, bit for bit."""

import copy
import pickle

import numpy as np
import pytest
from river import anomaly, compose, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import (
    LOSS_NAMES,
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    ConditionalImputer,
    ConditionalSampler,
    ConstantImputer,
    GeometricReservoir,
    IncrementalPFI,
    IncrementalSAGE,
    LaggedReservoir,
    MarginalImputer,
    ShiftedImputer,
    SnapshotError,
    as_loss,
    make_reservoir,
)
from tests.explainers.plain_data import strangers

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
STOP, N = 45, 95


def model_for(loss):
    if loss in ("zero_one", "expected_zero_one", "cross_entropy", "brier"):
        return naive_bayes.GaussianNB()
    if loss in ("score", "neg_score"):
        return anomaly.HalfSpaceTrees(n_trees=3, height=3, window_size=20, seed=1)
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())


def stream_for(loss):
    if loss in ("absolute", "squared", "score", "neg_score"):
        return list(synth.Friedman(seed=2).take(N))
    # Probabilities of mixed labels, as River allows.
    return [(x, ("no", 1)[y]) for x, y in synth.Agrawal(classification_function=1, seed=2).take(N)]


def learn(model, x, y):
    if isinstance(model, anomaly.HalfSpaceTrees):
        model.learn_one(x)
    else:
        model.learn_one({name: value for name, value in x.items() if value is not None}, y)


def go_on(explainer, model, stream):
    """Every published quantity after every observation."""
    trace = []
    for x, y in stream:
        explainer.explain_one(x, y)
        learn(model, x, y)
        extra = [getattr(explainer, name, None) for name in ("marginal_loss", "model_loss")]
        counts = (explainer.n_observations, explainer.n_skipped, sorted(explainer.skipped.items()))
        # repr tells every bit of a float, and NaN from NaN equal.
        errors = (explainer.std_error, explainer.half_width, explainer.degrees_of_freedom)
        trace.append(repr((explainer.importance, explainer.raw_importance, errors, extra, counts)))
    return trace


def stop_and_continue(original, model, stream):
    """Check that one restored at STOP goes on as the original does; its snapshot, and model and trace from there on."""
    go_on(original, model, stream[:STOP])
    snapshot = original.snapshot()
    assert strangers(snapshot) == []
    stored, model_then, model_again = pickle.dumps(snapshot), copy.deepcopy(model), copy.deepcopy(model)
    expected = go_on(original, model, stream[STOP:])
    assert pickle.dumps(snapshot) == stored, "the snapshot has changed while the explainer went on"
    restored = type(original).from_snapshot(pickle.loads(stored), model_then)
    assert restored.parameters == original.parameters
    assert go_on(restored, model_then, stream[STOP:]) == expected
    return pickle.loads(stored), model_again, expected


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "loss", "grouped")
def test_restoring_and_continuing_equals_never_having_stopped(explainer, loss, grouped):
    stream, model = stream_for(loss), model_for(loss)
    names = list(stream[0][0])
    original = explainer(
        model,
        loss=loss,
        alpha=0.03,
        n_samples=2,
        reservoir=make_reservoir(RESERVOIR_NAMES[LOSS_NAMES.index(loss) % len(RESERVOIR_NAMES)], 20),
        groups={"pair": [names[0], names[2]]} if grouped else None,
        seed=5,
    )
    stop_and_continue(original, model, stream)
    assert original.n_observations >= N - 3


def make_imputer(removal, reservoir, sampling):
    if removal == "constant":
        return ConstantImputer({"salary": 50_000.0, "age": 40, "elevel": 2})
    storage = make_reservoir(reservoir, 15)
    if removal == "observational":
        return ShiftedImputer(storage, alpha=0.05)
    if removal == "observational-trees":
        # Small leaves, so that trees split before and after the stop.
        sampler = ConditionalSampler(leaf_size=10, grace_period=15, features=["salary", "commission", "age"], seed=3)
        return ConditionalImputer(storage, sampler, sampling=sampling)
    return MarginalImputer(storage, strategy="joint" if removal == "interventional" else removal, sampling=sampling)


def holes(stream):
    """Every seventh observation lacks a value, every eleventh has none at all."""
    for i, (x, y) in enumerate(stream):
        yield ({} if i % 11 == 10 else {**x, "age": None} if i % 7 == 6 else x), y


SHORT = (("lagged", "stratified"), ("geometric", "independent"))
MARGINAL = [
    pytest.param(r, k, s, marks=[] if (k, s) in SHORT else [pytest.mark.long])
    for r in REMOVAL_NAMES[:2]
    for k in RESERVOIR_NAMES
    for s in SAMPLING_NAMES
]
TREES = (("observational-trees", "geometric", s) for s in SAMPLING_NAMES)
OTHERS = [*TREES, ("observational", "geometric", None), ("constant", None, None)]


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize(("removal", "reservoir", "sampling"), [*MARGINAL, *OTHERS])
@pytest.mark.share(2, "explainer", "removal", "reservoir")
def test_every_removal_is_continued_bit_for_bit(explainer, removal, reservoir, sampling):
    stream, model = list(holes(stream_for("brier"))), model_for("brier")
    missing = "absent" if sampling == "stratified" else "skip"
    own = {"n_permutations": 2} if explainer is IncrementalSAGE else {}
    parameters = {"loss": "brier", "alpha": 0.03, "n_samples": 2, "missing": missing, **own}

    def make(model, seed):
        groups = {"money": ["salary", "commission"], "never": ["there"]}
        made = explainer(
            model, removal=make_imputer(removal, reservoir, sampling), groups=groups, seed=seed, **parameters
        )
        made.know_names()  # a group may be of features that never come
        return made

    snapshot, model_again, expected = stop_and_continue(make(model, 5), model, stream)
    # Into one that configuration has made, without a seed.
    taken = make(model_again, None)
    taken.restore(snapshot)
    assert go_on(taken, model_again, stream[STOP:]) == expected


OTHER_PARAMETERS = {
    "alpha": 0.02,
    "n_samples": 7,
    "sampling": "independent",
    "missing": "skip",
    "removal": "product",
    "groups": {"ab": ["a", "b"]},
    "loss": "absolute",
    "reservoir": make_reservoir("uniform", 100),
    "reservoir_size": GeometricReservoir(99),
    "n_permutations": 2,
    "bias_correction": False,
}


@pytest.mark.parametrize("parameter", list(OTHER_PARAMETERS))
def test_restoring_other_parameters_is_refused_by_their_names(parameter):
    def make(**parameters):
        given = {"loss": "squared", "alpha": 0.01, "n_samples": 2, "reservoir": GeometricReservoir(100), **parameters}
        return IncrementalSAGE(lambda x: x["a"], **given)

    snapshot = make().snapshot()
    changed = make(**{parameter.removesuffix("_size"): OTHER_PARAMETERS[parameter]})
    before = repr(changed.snapshot())
    with pytest.raises(SnapshotError) as caught:
        changed.restore(snapshot)
    text = str(caught.value)
    assert f"({parameter} {make().parameters[parameter]!r} there, {changed.parameters[parameter]!r} here)" in text
    assert "from_snapshot" in text
    assert repr(changed.snapshot()) == before


@pytest.mark.parametrize(("parameter", "value"), [("size", 30), ("gap", 20), ("reach", 900)])
def test_restoring_another_size_gap_or_reach_is_refused_by_its_name(parameter, value):
    given = {"size": 20, "gap": 10, "reach": 500}
    makes = [given, {**given, parameter: value}]
    first, other = (IncrementalPFI(lambda x: 0.0, loss="squared", reservoir=LaggedReservoir(**one)) for one in makes)
    with pytest.raises(SnapshotError, match=rf"{parameter} {given[parameter]} there, {value} here"):
        other.restore(first.snapshot())
    again = IncrementalPFI.from_snapshot(first.snapshot(), lambda x: 0.0)
    assert again.parameters == first.parameters


def test_restoring_removal_with_other_parameters_of_its_own_names_them():
    snapshot = IncrementalPFI(lambda x: 0.0, loss="squared", removal=ConstantImputer({"a": 1})).snapshot()
    changed = IncrementalPFI(lambda x: 0.0, loss="squared", removal=ConstantImputer({"a": 2}))
    with pytest.raises(SnapshotError, match=r"\(values \{'a': 1\} there, \{'a': 2\} here\)"):
        changed.restore(snapshot)
    marginal = IncrementalPFI(lambda x: 0.0, loss="squared")
    with pytest.raises(SnapshotError, match=r"removal 'constant' there, 'interventional' here"):
        marginal.restore(snapshot)


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("model", [linear_model.LogisticRegression(), linear_model.SoftmaxRegression()])
def test_the_snapshot_is_plain_whatever_numbers_the_model_predicts(explainer, model):
    explaining = explainer(model, loss="cross_entropy", seed=7)
    go_on(explaining, model, [(x, y) for x, y in synth.SEA(seed=1).take(20)])
    assert strangers(explaining.snapshot()) == []


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_snapshot_is_plain_where_model_and_loss_calculate_in_numpy(explainer):
    explaining = explainer(lambda x: np.float64(x["a"]), loss=lambda y, p: np.float64(abs(y - p)), seed=8)
    for i in range(10):
        explaining.explain_one({"a": float(i), "b": 1.0}, 1.0)
    assert strangers(explaining.snapshot()) == []


def test_a_snapshot_of_another_class_or_format_is_refused_with_advice():
    snapshot = IncrementalPFI(lambda x: 0.0, loss="squared").snapshot()
    with pytest.raises(SnapshotError, match=r"expected a snapshot of 'sage' .*got 'pfi'.*start a new explainer"):
        IncrementalSAGE.from_snapshot(snapshot, lambda x: 0.0)
    for bad in ({**snapshot, "format": 999}, {**snapshot, "format": 1}, {**snapshot, "format": "2"}, {}):
        for restore in (
            lambda bad=bad: IncrementalPFI.from_snapshot(bad, lambda x: 0.0),
            lambda bad=bad: IncrementalPFI(lambda x: 0.0, loss="squared").restore(bad),
        ):
            with pytest.raises(SnapshotError, match="restore it with the release that wrote it, or start a new expl"):
                restore()


def test_a_loss_of_the_users_own_is_passed_again_or_asked_for_and_no_other_is_taken():
    def own(y, prediction):
        return abs(y - prediction)

    def other(y, prediction):
        return 0.0

    snapshot = IncrementalPFI(lambda x: 0.0, loss=own).snapshot()
    assert IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0, loss=own).loss.name == "own"
    with pytest.raises(SnapshotError, match=r"with the loss 'own', not 'other': pass that loss"):
        IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0, loss=other)
    with pytest.raises(SnapshotError, match="own"):
        IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0)


def test_a_named_loss_with_another_epsilon_is_not_taken_for_the_default():
    # Epsilon decides what one sure mistake weighs: 4.6 or 34.5. Either it is kept, or the loss is asked for.
    model = model_for("cross_entropy")
    original = IncrementalPFI(model, loss=as_loss("cross_entropy", epsilon=0.01), seed=9)
    sure = {"a": 1.0, "b": 0.0}
    try:
        restored = IncrementalPFI.from_snapshot(original.snapshot(), model)
    except SnapshotError:
        return
    assert restored.loss("b", sure) == original.loss("b", sure)


def test_a_reservoir_that_this_release_does_not_know_is_refused():
    snapshot = IncrementalPFI(lambda x: 0.0, loss="squared").snapshot()
    for part, key in ((snapshot["imputer"]["reservoir"], "name"), (snapshot["parameters"], "reservoir")):
        part[key] = "fifo"  # in the end in both places, as a later release with a reservoir of its own writes it
        with pytest.raises(SnapshotError, match="fifo"):
            IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0)


class LastInFirstOut(GeometricReservoir):
    """A reservoir of the user's own: its last slot takes all that comes."""

    name = "last_in_first_out"

    def _slot(self, rng):
        return self.size - 1


def test_a_reservoir_of_the_users_own_is_restored_into_an_explainer_that_has_it():
    def make():
        return IncrementalPFI(lambda x: x["a"], loss="squared", reservoir=LastInFirstOut(3), n_samples=2, seed=1)

    original = make()
    for i in range(10):
        original.explain_one({"a": float(i)}, 0.0)
    with pytest.raises(SnapshotError, match="last_in_first_out"):
        IncrementalPFI.from_snapshot(original.snapshot(), lambda x: x["a"])
    again = make()
    again.restore(original.snapshot())
    assert type(again.reservoir) is LastInFirstOut
    for i in range(10):
        assert again.explain_one({"a": float(i)}, 0.0) == original.explain_one({"a": float(i)}, 0.0)


@pytest.mark.parametrize("lost", ["parameters", "smoothed", "generator"])
def test_a_snapshot_that_lacks_a_part_is_refused_with_what_to_do(lost: str) -> None:
    pfi = IncrementalPFI(lambda x: x["a"], loss="squared", seed=1)
    pfi.explain_one({"a": 1.0}, 1.0)
    damaged = {name: part for name, part in pfi.snapshot().items() if name != lost}
    for restore in (pfi.restore, lambda snapshot: IncrementalPFI.from_snapshot(snapshot, pfi.model)):
        with pytest.raises(SnapshotError, match=rf"the snapshot of 'pfi' lacks '{lost}', .*take another one"):
            restore(damaged)
