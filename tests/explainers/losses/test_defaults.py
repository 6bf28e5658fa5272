"""Default losses can be read: no importance exceeds what there is to lose, and no surprise flattens a chart."""

import math
import random
import warnings
from fractions import Fraction

import pytest
from river import linear_model, naive_bayes, tree
from river.datasets import synth

from attributary_explainers import (
    LOSS_NAMES,
    BiasedImportanceWarning,
    IncrementalPFI,
    IncrementalSAGE,
    Loss,
    as_loss,
    loss_statement,
)

ALPHA = 0.001


@pytest.fixture(scope="module")
def sure():
    """An adaptive Hoeffding tree that has learnt Agrawal's rule on age, and explainers of it with default losses."""
    model = tree.HoeffdingAdaptiveTreeClassifier(seed=1)
    pfi, sage = (kind(model, alpha=ALPHA, seed=1) for kind in (IncrementalPFI, IncrementalSAGE))
    for x, y in synth.Agrawal(classification_function=0, seed=1).take(4000):
        for explainer in (pfi, sage):
            explainer.explain_one(x, y)
        model.learn_one(x, y)
    return model, pfi, sage


@pytest.mark.long
def test_no_importance_of_sage_exceeds_the_loss_of_the_baseline(sure):
    _, _, sage = sure
    assert max(sage.importance, key=sage.importance.get) == "age"
    assert max(sage.importance.values()) <= sage.marginal_loss


def test_no_importance_of_pfi_exceeds_that_of_guessing_with_certainty(sure):
    _, pfi, sage = sure
    assert max(pfi.importance, key=pfi.importance.get) == "age"
    # With class shares p the baseline loses 1 - sum p^2, and a sure prediction of another observation 2 (1 - sum p^2).
    assert max(pfi.importance.values()) <= 2.0 * sage.marginal_loss


@pytest.mark.parametrize("of", [1, pytest.param(2, marks=pytest.mark.long)])
def test_one_surprise_moves_no_importance_by_more_than_alpha_times_the_largest_loss(sure, of):
    model, explainer = sure[0], sure[of]
    n_sure = 0
    for x, y in synth.Agrawal(classification_function=0, seed=2).take(200):
        probabilities = model.predict_proba_one(x)
        if probabilities.get(y, 0.0) < 0.999:
            continue
        n_sure += 1
        surprised = type(explainer).from_snapshot(explainer.snapshot(), model)
        before, after = explainer.importance, surprised.explain_one(x, 1 - y)
        # Of 4000 observations the newest weighs alpha / 0.98, and the correction of bias reaches a little beyond.
        assert max(abs(after[name] - (1.0 - ALPHA) * before[name]) for name in before) <= 1.1 * ALPHA * 2.0
    assert n_sure > 100
    assert explainer.loss.largest == 2.0


def test_what_the_losses_are_in_and_what_they_can_be_at_most():
    stated = {name: (as_loss(name).unit, as_loss(name).largest) for name in LOSS_NAMES}
    assert stated == {
        "zero_one": ("share of observations", 1.0),
        "expected_zero_one": ("share of observations", 1.0),
        "cross_entropy": ("nats", -math.log(1e-15)),
        "brier": ("squared probability", 2.0),
        "absolute": ("unit of the target", None),
        "squared": ("unit of the target, squared", None),
        "score": ("unit of the score", None),
        "neg_score": ("unit of the score", None),
    }
    assert as_loss("cross_entropy", epsilon=0.01).largest == -math.log(0.01)
    for name in ("zero_one", "expected_zero_one", "cross_entropy", "brier"):
        loss = as_loss(name)
        assert loss("a", {"b": 1.0}) == loss.largest  # another label, with certainty


def test_a_loss_of_the_user_s_own_says_its_unit_or_has_its_name_for_one():
    def cost(y, prediction):
        return 1.0

    assert (as_loss(cost).unit, as_loss(cost).largest, as_loss(cost).statement) == ("cost", None, "cost loss")
    own = Loss("cost", "number", cost, unit="EUR", largest=12.5)
    assert own.statement == loss_statement("cost", "EUR", 12.5) == "cost loss: EUR, at most 12.5"


def test_a_score_is_not_called_a_loss() -> None:
    for name in LOSS_NAMES:
        said = as_loss(name).statement
        assert (" loss" in said) == (not as_loss(name).is_score), said
    assert as_loss("neg_score").statement == "score: what a feature adds to it"


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_expected_zero_one_of_a_mean_over_draws_is_the_mean_zero_one_loss_of_the_draws(m):
    draws = [["a", "b", "c"][i * i % 3] for i in range(m)]
    mean = {label: draws.count(label) / m for label in draws}
    for y in "abcd":
        naive = Fraction(sum(as_loss("zero_one")(y, {label: 1.0}) == 1.0 for label in draws), m)
        assert as_loss("expected_zero_one")(y, mean) == pytest.approx(float(naive), abs=1e-15)


def test_expected_zero_one_takes_labels_of_any_type():
    for label in (1, "1", None, (1, 2), True):
        assert as_loss("expected_zero_one")(label, {label: 1.0}) == 0.0
        assert as_loss("expected_zero_one")(label, {"another": 1.0}) == 1.0


SHARES = {"a": 0.3, "b": 0.2, "c": 0.6}


def concept(x):
    return x["a"] or (x["b"] and not x["c"])


def enumerated_sage():
    """SAGE values of the concept, which is also the truth, under the linear loss of the share of wrong draws."""
    names = list(SHARES)
    points = [{n: bool(i >> k & 1) for k, n in enumerate(names)} for i in range(8)]
    weight = [math.prod(SHARES[n] if p[n] else 1.0 - SHARES[n] for n in names) for p in points]

    def loss(known):
        total = 0.0
        for p, w in zip(points, weight, strict=True):
            mixed = [{n: (p if n in known else q)[n] for n in names} for q in points]
            total += w * sum(v * (concept(x) != concept(p)) for x, v in zip(mixed, weight, strict=True))
        return total

    orders = [(i, j, 3 - i - j) for i in range(3) for j in range(3) if i != j]
    values = dict.fromkeys(names, 0.0)
    for order in orders:
        known = set()
        for i in order:
            before = loss(known)
            known.add(names[i])
            values[names[i]] += (before - loss(known)) / len(orders)
    return values


@pytest.mark.parametrize("m", [1, *(pytest.param(m, marks=pytest.mark.long) for m in (2, 5))])
def test_sage_under_expected_zero_one_is_without_bias_at_any_number_of_draws(m):
    exact, runs = enumerated_sage(), []
    for seed in range(12):
        rng = random.Random(seed)
        sage = IncrementalSAGE(concept, loss="expected_zero_one", alpha=0.002, n_samples=m, seed=seed)
        for _ in range(1500):
            x = {name: rng.random() < share for name, share in SHARES.items()}
            sage.explain_one(x, concept(x))
        runs.append(sage.importance)
    for name, value in exact.items():
        found = [run[name] for run in runs]
        mean = sum(found) / len(found)
        error = math.sqrt(sum((f - mean) ** 2 for f in found) / (len(found) - 1) / len(found))
        assert abs(mean - value) < 4.0 * error


@pytest.mark.parametrize(
    ("loss", "m", "said"),
    [
        ("zero_one", 5, "zero_one counts the most probable label of a mean over draws; with 5 draws it is biased"),
        ("zero_one", 1, "one draw: importance is that of a random replacement"),
        ("brier", 1, "one draw"),
        (None, 1, "one draw"),
        (lambda y, p: 0.0, 1, "one draw"),
    ],
)
def test_sage_warns_where_its_values_are_biased(loss, m, said):
    with pytest.warns(BiasedImportanceWarning, match=said) as caught:
        IncrementalSAGE(naive_bayes.GaussianNB(), loss=loss, n_samples=m)
    assert [record.filename for record in caught] == [__file__]


def test_where_nothing_is_biased_nobody_is_warned():
    classifier, regressor = naive_bayes.GaussianNB(), linear_model.LinearRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IncrementalSAGE(classifier)
        IncrementalSAGE(regressor)
        IncrementalSAGE(classifier, loss="cross_entropy", n_samples=2)
        IncrementalSAGE(classifier, loss="expected_zero_one", n_samples=1)
        IncrementalSAGE(lambda x: x["a"], loss="score", n_samples=1)
        IncrementalPFI(classifier, loss="zero_one", n_samples=1)
