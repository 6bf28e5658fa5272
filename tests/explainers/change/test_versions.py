"""Another model in the place of the present one: explained at once, on the same rows, and what follows."""

import pickle

import pytest
from river import dummy, linear_model

from attributary_explainers import ChangeExplainer, ModelError
from tests.explainers.naive_change import Scheduled, found_in, observations, scripted
from tests.explainers.stand_ins import HoldingALock

K = 10


class Asked:
    """A model that keeps a copy of every row that it was asked about."""

    def __init__(self, feature):
        self.feature, self.rows = feature, []

    def __call__(self, x):
        self.rows.append(dict(x))
        return x[self.feature]

    def learn_one(self, x, y):
        """Learns nothing."""


def plain(change):
    """Everything that the explainer is, to be compared."""
    return pickle.dumps(change.snapshot())


@pytest.mark.parametrize("importances", [("pfi",), ("sage",), ("sage", "pfi")])
def test_both_models_are_asked_about_the_same_recent_rows(monkeypatch, importances):
    old, new = Asked("a"), Asked("b")
    change = scripted(monkeypatch, old, importances=importances)
    stream = observations(37)
    found_in(change, old, stream)
    old.rows.clear()
    explanation = change.new_version(new, "two")
    assert old.rows == new.rows
    recent = [x for x, _ in stream[-K:]]
    assert new.rows[:K] == recent
    of = {feature: {x[feature] for x in recent} for feature in ("a", "b")}
    assert all(row[f] in of[f] for row in new.rows for f in ("a", "b"))
    assert explanation.discrepancy == sum(x["a"] != x["b"] for x in recent) / K
    assert (explanation.n_discrepancy, explanation.window) == (K, K)
    assert list(explanation.importances) == list(importances)


@pytest.mark.parametrize("importances", [("pfi",), ("sage", "pfi")])
@pytest.mark.parametrize("n", [37, 7])
def test_the_change_is_the_models_alone(monkeypatch, importances, n):
    model = Asked("a")
    change = scripted(monkeypatch, model, importances=importances)
    found_in(change, model, observations(n))
    explanation = change.new_version(Asked("b"))
    for of in explanation.importances.values():
        assert of.data_part == {"a": 0.0, "b": 0.0}
        assert of.model_part == of.delta
        assert of.model_part_std_error == of.delta_std_error
        assert of.crossed == of.before
        assert of.crossed_loss == of.before_loss
        assert of.delta["a"] < 0.0
        assert set(of.data_part_p_values.values()) == {1.0}
    assert explanation.cause in ("model", None)
    assert (explanation.kind, explanation.route) == ("model", "version")


@pytest.mark.parametrize("importances", [("pfi",), ("sage",)])
def test_of_equal_models_nothing_differs(monkeypatch, importances):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, importances=importances)
    found_in(change, model, observations(30))
    explanation = change.new_version(Scheduled((0, "a")), "same")
    assert (explanation.discrepancy, explanation.n_discrepancy) == (0.0, K)
    zero = {"a": 0.0, "b": 0.0}
    assert explanation.delta == explanation.model_part == explanation.delta_std_error == zero
    assert (explanation.significant(), explanation.cause) == ([], None)


def test_the_names_of_versions_are_in_what_is_explained_later(monkeypatch):
    model = Scheduled((0, "a"), (K + 5, "b"))
    change = scripted(monkeypatch, model, [6], threshold=0.2, version="one")
    ((_, explanation),) = found_in(change, model, observations(30)).items()
    assert (explanation.version_before, explanation.version) == ("one", "one")
    assert change.new_version(Scheduled((0, "a"))).version is None  # unnamed
    explanation = change.new_version(Scheduled((0, "b")), "three")
    assert (explanation.version_before, explanation.version) == (None, "three")
    assert "version three" in explanation.sentence()


@pytest.mark.parametrize("n", [0, 1, 2, K - 1])
def test_with_fewer_than_a_window_of_rows_it_is_explained_on_these_and_data_are_collected_anew(monkeypatch, n):
    model, new = Scheduled((0, "a")), Scheduled((0, "not a"))
    change = scripted(monkeypatch, model, version="one")
    found_in(change, model, observations(n))
    explanation = change.new_version(new, "two")
    if n < 2:
        assert explanation is None
        assert change.n_explained == 0
    else:
        assert (explanation.window, explanation.n_discrepancy, explanation.discrepancy) == (n, n, 1.0)
        assert change.n_explained == 1
    assert (change.version, change.model, change.reference, change.is_collecting) == ("two", new, None, True)
    found_in(change, new, observations(K - 1))
    assert change.reference is None
    found_in(change, new, observations(1, seed=3))
    # K observations that the new model has learnt from, whatever came before.
    assert change.reference_observation == n + K
    assert change.snapshot()["reference"]["data"] == [*observations(K - 1), *observations(1, seed=3)]


def test_before_the_first_reference_a_full_window_is_enough_for_one(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, min_observations=40)
    found_in(change, model, observations(20))
    assert change.reference is None
    assert change.new_version(Scheduled((0, "b"))).window == K
    assert (change.reference_observation, change.is_collecting) == (20, False)


def test_without_an_explanation_the_model_is_replaced_and_not_asked(monkeypatch):
    model, new = Scheduled((0, "a")), Asked("b")
    change = scripted(monkeypatch, model, threshold=0.3)
    found_in(change, model, observations(K + 4))
    assert change.new_version(new, "two", explain=False) is None
    assert (change.version, change.model, new.rows) == ("two", new, [])


@pytest.mark.parametrize("importances", [("pfi",), ()])
@pytest.mark.parametrize("kinds", [("nothing", "a"), ("a", "nothing"), ("a", "b or nothing"), ("b or nothing", "a")])
def test_where_one_of_the_two_predicts_nothing_the_model_is_only_replaced(monkeypatch, kinds, importances):
    old, new = (Scheduled((0, kind)) for kind in kinds)
    change = scripted(monkeypatch, old, importances=importances)
    for x, y in observations(30):
        change.update(x, y, y)
    assert change.new_version(new, "two") is None
    assert (change.version, change.model, change.n_explained, change.reference) == ("two", new, 0, None)


class Raising:
    """Raises for every row, or only for rows that no stream of these tests has: put together from two."""

    def __init__(self, only_mixed=False):
        self.only_mixed = only_mixed

    def __call__(self, x):
        if not self.only_mixed or x["a"] != x["b"]:
            raise OSError("gone")
        return x["a"]


ERRORS = {
    "raises": (Raising(), OSError),
    "raises for mixed rows": (Raising(only_mixed=True), OSError),
    "no copy": (HoldingALock(), ModelError),
    "no label": (linear_model.LinearRegression(), ModelError),
    "a class": (Scheduled, ModelError),
    "no model": (3, ModelError),
}


@pytest.mark.parametrize(("bad", "error"), list(ERRORS.values()), ids=list(ERRORS))
@pytest.mark.parametrize("n", [25, 13, 7])
def test_an_error_leaves_everything_as_it_was(monkeypatch, bad, error, n):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [2, 3], version="one")
    for i in range(n):
        change.update({"a": i % 2, "b": i % 2}, i % 2, i % 2)
    before = plain(change)
    with pytest.raises(error):
        change.new_version(bad, "two")
    assert change.model is model
    assert len(change.detectors) == 1
    assert plain(change) == before


def test_what_the_present_model_raises_leaves_it_in_place_until_it_is_only_replaced(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, version="one")
    found_in(change, model, observations(15))
    change.model = broken = Raising()
    with pytest.raises(OSError, match="gone"):
        change.new_version(Scheduled((0, "b")), "two")
    assert (change.model, change.version) == (broken, "one")
    assert change.new_version(Scheduled((0, "b")), "two", explain=False) is None
    assert change.version == "two"


def test_a_river_model_that_has_learnt_nothing_can_come(monkeypatch):
    model = dummy.NoChangeClassifier()
    change = ChangeExplainer(model, window=5, seed=1)
    for i in range(8):
        model.learn_one({"a": i}, i % 2)
        change.update({"a": i}, i % 2, model.predict_one({"a": i}))
    assert change.new_version(dummy.NoChangeClassifier(), "fresh") is None
    assert (change.version, change.is_collecting) == ("fresh", True)


def test_the_quiet_after_a_rejection_ends_with_a_version(monkeypatch):
    # The models differ on all that comes after K + 1, and on nothing before: 0.5 on both data sets.
    model = Scheduled((0, "a"), (K + 1, "b"))
    change = scripted(monkeypatch, model, detector=None, threshold=0.7)
    for row in [({"a": 0, "b": 0}, 0)] * (K + 1) + [({"a": 1, "b": 0}, 1)] * 3 * K:
        if change.n_rejected == 0:
            found_in(change, model, [row])
    assert (change.n_rejected, change.n_alarms["discrepancy"]) == (1, 1)
    change.new_version(Scheduled((0, "a")))
    for _ in range(K // 2):
        change.update({"a": 1, "b": 0}, 1, 0)
    assert change.n_alarms == {"detector": 0, "discrepancy": 2}
