"""Results that look like results and are none: a loss that never varies, a model that raises."""

import pickle
import warnings

import numpy as np
import pytest

from attributary_explainers import (
    ConstantLossWarning,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    ModelError,
    ModelFailureWarning,
)
from attributary_explainers.losses.watch import ConstantLossWatch

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
N = 1000


def of_strings(x):
    """Classes that are written otherwise than the labels of the stream."""
    p = 0.1 + 0.8 * (x["a"] > 0)
    return {"0": 1.0 - p, "1": p}


def feed(explaining, n, seed=1, label=lambda x: f"class {int(x['a'] > 0)}"):
    """The warnings of each observation that had some, by its number, and their texts."""
    rng, found = np.random.default_rng(seed), {}
    for i in range(n):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            explaining.explain_one(x, label(x))
        if caught:
            found[i + 1] = caught
    return found


@pytest.mark.parametrize(
    ("loss", "model"),
    [
        ("zero_one", lambda x: str(int(x["a"] > 0))),
        ("cross_entropy", of_strings),
        ("brier", lambda x: {"0": 0.5, "1": 0.5}),  # it varies with any other prediction, whatever the label
    ],
)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_labels_that_no_class_is_are_named_after_a_thousand_observations(explainer, loss, model):
    explaining = explainer(model, loss=loss, n_samples=1, seed=1)
    found = feed(explaining, N + 300)
    assert list(found) == [N + 1]  # the first observation has nothing to draw from: a thousand were explained
    (warning,) = found[N + 1]
    assert warning.category is ConstantLossWarning
    text = str(warning.message)
    assert repr(loss) in text
    assert str(N) in text
    assert "labels have the type of the model's classes" in text
    assert warning.filename == __file__  # the line of the caller's, not one of ours
    assert set(explaining.importance.values()) == {0.0}


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_one_other_value_is_enough_to_be_silent(explainer):
    explaining = explainer(of_strings, loss="cross_entropy", n_samples=2, seed=2)
    state = {"n": 0}

    def label(x):
        state["n"] += 1
        return str(int(x["a"] > 0)) if state["n"] == N else "another"

    assert feed(explaining, N + 300, label=label) == {}


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_loss_that_varies_with_the_stream_is_no_reason_to_warn(explainer):
    # The model predicts a constant, and importance is rightly 0: the loss still varies with the target.
    explaining = explainer(lambda x: 0.0, loss="squared", n_samples=1, seed=3)
    assert feed(explaining, N + 100, label=lambda x: x["a"]) == {}


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_loss_that_varies_with_the_replaced_features_only_is_no_reason_to_warn(explainer):
    def model(x):
        return float(x["a"] == x["b"])  # 1 at every observation, 0 where one of both was replaced

    explaining = explainer(model, loss="squared", n_samples=1, seed=4)
    rng = np.random.default_rng(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in rng.normal(size=N + 100).tolist():
            explaining.explain_one({"a": value, "b": value}, 1.0)
    assert explaining.importance["a"] != 0.0


@pytest.mark.parametrize("stop", [500, N + 50])
@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.share(2, "explainer", "stop")
def test_a_restored_explainer_goes_on_counting_and_says_it_once(explainer, stop):
    first = explainer(of_strings, loss="cross_entropy", n_samples=1, seed=5)
    said = list(feed(first, stop))
    snapshot = pickle.loads(pickle.dumps(first.snapshot()))
    again = explainer.from_snapshot(snapshot, of_strings)
    taken = explainer(of_strings, loss="cross_entropy", n_samples=1, seed=6)
    taken.restore(snapshot)
    for restored in (again, taken):
        numbers = [stop + number for number in feed(restored, 2 * N, seed=7)]
        assert said + numbers == [N + 1]


def test_all_losses_of_an_observation_count_as_one():
    watch = ConstantLossWatch("own")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(N - 1):
            watch.update([2.0] * 50)
    with pytest.warns(ConstantLossWarning, match=r"'own' was 2\.0 for every prediction of 1000 observations"):
        watch.update([2.0])


class Failing:
    """Raises for what it does not know."""

    def __init__(self, error):
        self.error, self.failing = error, False

    def __call__(self, x):
        if self.failing:
            raise self.error
        return x["a"] - x["b"]


@pytest.mark.parametrize("error", [ValueError("no such category"), KeyError("b"), ZeroDivisionError(), OverflowError()])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_model_that_raises_is_counted_and_named_once(explainer, error):
    model = Failing(error)
    explaining = explainer(model, loss="squared", alpha=0.1, seed=8)
    found, rng = [], np.random.default_rng(8)
    for i, (a, b) in enumerate(rng.normal(size=(40, 2)).tolist()):
        model.failing = i % 10 == 5
        before = explaining.importance
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            after = explaining.explain_one({"a": a, "b": b}, 0.0)
        found += [(i, w) for w in caught]
        assert (after == before) == (model.failing or i == 0)
    ((i, warning),) = found
    assert (i, warning.category) == (5, ModelFailureWarning)
    assert "Failing" in str(warning.message)
    assert repr(error) in str(warning.message)
    assert warning.filename == __file__
    assert dict(explaining.skipped) == {"nothing_stored": 1, "model_error": 4}
    assert explaining.n_observations == 35
    assert explaining.reservoir.n_seen == 36  # what the model raises at would make it raise again where it is drawn
    if explainer is IncrementalSAGE:
        assert sum(after.values()) == pytest.approx(explaining.marginal_loss - explaining.model_loss, abs=1e-9)


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_model_that_raises_on_replaced_features_only_is_counted(explainer):
    def model(x):
        if x["a"] != x["b"]:
            raise ValueError("never seen together")
        return float(x["a"])

    explaining = explainer(model, loss="squared", alpha=0.1, n_samples=1, seed=9)

    def feed_all():
        for i in range(40):
            explaining.explain_one({"a": i % 2, "b": i % 2}, 0.0, y_pred=float(i % 2))

    with pytest.warns(ModelFailureWarning, match="never seen together"):
        feed_all()
    assert explaining.skipped["model_error"] > 5
    assert explaining.n_observations > 5
    assert explaining.n_observations + explaining.n_skipped == 40


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_warning_is_not_repeated_after_a_restart(explainer):
    model = Failing(ValueError("no"))
    model.failing = True
    explaining = explainer(model, loss="squared", seed=10)
    with pytest.warns(ModelFailureWarning):
        explaining.explain_one({"a": 1.0, "b": 1.0}, 0.0)
    restored = explainer.from_snapshot(pickle.loads(pickle.dumps(explaining.snapshot())), model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restored.explain_one({"a": 1.0, "b": 1.0}, 0.0)
    assert dict(restored.skipped) == {"model_error": 2}


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_model_that_cannot_be_explained_is_still_an_error(explainer):
    # A ModelError is about the explainer's set-up, not about an observation: the caller has to know.
    explaining = explainer(lambda x: "text", loss="squared", seed=11)
    with pytest.raises(ModelError):
        explaining.explain_one({"a": 1.0, "b": 1.0}, 0.0)
    targets = explainer(lambda x: 1.0, loss="squared", seed=11)
    targets.explain_one({"a": 1.0, "b": 1.0}, 0.0)
    with pytest.raises(ModelError, match="must be a number, got 'red'"):
        targets.explain_one({"a": 1.0, "b": 1.0}, "red")
    assert targets.n_observations == 0


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_group_named_like_a_feature_is_an_error_and_no_failure_of_the_model(explainer):
    explaining = explainer(lambda x: 0.0, loss="squared", groups={"g": ["a"]}, seed=12)
    explaining.explain_one({"a": 1.0}, 0.0)
    with pytest.raises(InvalidParameterError, match=r"^groups must be names that no feature has, got 'g'"):
        explaining.explain_one({"a": 1.0, "g": 2.0}, 0.0)


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_an_interrupt_is_let_through(explainer):
    explaining = explainer(Failing(KeyboardInterrupt()), loss="squared", seed=13)
    explaining.model.failing = True
    with pytest.raises(KeyboardInterrupt):
        explaining.explain_one({"a": 1.0, "b": 1.0}, 0.0)
