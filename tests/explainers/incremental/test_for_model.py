"""`RemovalExplainer.for_model`: an explainer of a new version, with what the old one has stored."""

import pickle

import numpy as np
import pytest
from river import linear_model

from attributary_explainers import (
    ConstantImputer,
    GeometricReservoir,
    IncrementalPFI,
    IncrementalSAGE,
    MarginalImputer,
    ModelError,
    SlidingWindowReservoir,
    UniformReservoir,
)
from tests.explainers.stand_ins import Linear, Recording, fed

OLD = Linear({"a": 1.0, "b": 2.0})
NEW = Linear({"a": -1.0, "c": 0.5}, intercept=0.25)


def own_loss(y, prediction):
    return (y - prediction) ** 4


def observations(n, seed):
    """Binary features a and b; the label is a."""
    rng = np.random.default_rng(seed)
    return [({"a": int(a), "b": int(b)}, int(a)) for a, b in rng.integers(2, size=(n, 2))]


def stream(n, seed=1):
    """Numbers, of which the label is a function."""
    rows = zip(observations(n, seed), observations(n, seed + 50), strict=True)
    return [
        ({"a": x["a"] + 0.1 * i, "b": z["b"] + 0.5, "c": 0.3 * i}, float(y)) for i, ((x, y), (z, _)) in enumerate(rows)
    ]


FEW = {"reservoir": ("geometric", 20)}
CASES = {
    "pfi": (IncrementalPFI, {"n_samples": 3}),
    "pfi of a window": (IncrementalPFI, {"reservoir": ("sliding_window", 20), "sampling": "independent"}),
    "pfi, own loss": (IncrementalPFI, {"loss": own_loss, "reservoir": ("uniform", 30), "groups": {"ac": ["a", "c"]}}),
    "pfi, product": (IncrementalPFI, {"removal": "product", "groups": {"ac": ["a", "c"]}, "missing": "absent"}),
    "pfi, observational": (
        IncrementalPFI,
        {"removal": "observational", "n_samples": 2, **FEW},
    ),
    "pfi, constant": (IncrementalPFI, {"removal": ConstantImputer({"a": 0.0}), "missing": {"a": 0.5}}),
    "sage": (IncrementalSAGE, {"n_samples": 4}),
    "sage, of many": (IncrementalSAGE, {"n_samples": 50, "n_permutations": 2, "alpha": 0.05}),
    "sage, product": (IncrementalSAGE, {"n_samples": 4, "removal": "product", "bias_correction": False}),
    "sage, observational": (
        IncrementalSAGE,
        {"n_samples": 4, "removal": "observational", **FEW},
    ),
    "sage, an imputer": (IncrementalSAGE, {"n_samples": 4, "removal": MarginalImputer(SlidingWindowReservoir(15))}),
}
RESERVOIRS = {"uniform": UniformReservoir, "sliding_window": SlidingWindowReservoir, "geometric": GeometricReservoir}


def made(case):
    """An explainer of the old model, by case; each with an imputer of its own."""
    explainer, parameters = CASES[case]
    parameters = pickle.loads(pickle.dumps(parameters))
    if "reservoir" in parameters:
        name, size = parameters["reservoir"]
        parameters["reservoir"] = RESERVOIRS[name](size)
    return explainer(OLD, **{"loss": "squared", "alpha": 0.02, "seed": 3, **parameters})


@pytest.mark.parametrize("case", list(CASES))
def test_it_has_the_parameters_and_the_rows_and_no_importance(case):
    old = fed(made(case), stream(60))
    parameters, rows = old.parameters, [dict(row) for row in old.reservoir.rows]
    new = old.for_model(NEW)
    assert type(new) is type(old)
    assert (new.model, new.parameters) == (NEW, parameters)
    assert [dict(row) for row in new.reservoir.rows] == rows
    assert (new.importance, new.raw_importance, new.std_error) == ({}, {}, {})
    assert (new.n_observations, new.n_skipped) == (0, 0)
    assert new.loss.function is old.loss.function


@pytest.mark.parametrize("case", list(CASES))
def test_it_goes_on_as_an_explainer_of_the_new_model_that_has_stored_the_same(case):
    old = fed(made(case), stream(60))
    expected = made(case)
    state = pickle.loads(pickle.dumps((old.snapshot()["imputer"], old.snapshot()["generator"])))
    # An explainer that has explained nothing, given another's imputer, generator and model.
    expected = type(expected)(NEW, **expected._arguments(expected.parameters, expected.loss))
    expected.imputer.restore(state[0])
    expected._rng.bit_generator.state = state[1]
    new = old.for_model(NEW)
    for x, y in stream(40, seed=2):
        assert new.explain_one(x, y) == expected.explain_one(x, y)
        assert repr((new.std_error, new.raw_importance)) == repr((expected.std_error, expected.raw_importance))
        assert [*new.reservoir.rows] == [*expected.reservoir.rows]
    assert new._rng.bit_generator.state == expected._rng.bit_generator.state
    assert new.n_observations == 40  # the first one too: there was something to draw from


@pytest.mark.parametrize("case", list(CASES))
def test_nothing_of_the_old_importance_is_in_the_new(case):
    old = fed(made(case), stream(200))
    assert max(map(abs, old.importance.values())) > 0.0
    new = old.for_model(Linear({}, intercept=3.0))
    fed(new, stream(30, seed=2))
    # A model that is a constant: nothing is of importance, and nothing of the old one is left.
    assert set(new.importance.values()) == {0.0}
    assert "b" in new.importance


@pytest.mark.parametrize("case", [case for case in CASES if "own" not in case and "an imputer" not in case])
def test_a_snapshot_of_it_goes_on_as_if_never_stopped(case):
    new = fed(made(case), stream(60)).for_model(NEW)
    fed(new, stream(7, seed=2))
    other = type(new).from_snapshot(pickle.loads(pickle.dumps(new.snapshot())), NEW)
    for x, y in stream(20, seed=4):
        assert other.explain_one(x, y) == new.explain_one(x, y)


def test_the_old_model_is_not_asked_any_more():
    old_model, new_model = Recording(1.0), Recording(2.0)
    old = fed(IncrementalPFI(old_model, loss="squared", seed=1), stream(20))
    n = len(old_model.rows)
    fed(old.for_model(new_model), stream(5, seed=2))
    assert len(old_model.rows) == n
    # One for the observation itself, and 5 draws, the default, for each of 3 features.
    assert len(new_model.rows) == 5 * 16


def test_a_model_without_the_output_is_refused_and_the_old_explainer_goes_on():
    def run(broken):
        explainer = fed(made("pfi"), stream(40))
        if broken:
            before = repr(explainer.snapshot())
            for bad in (linear_model.LogisticRegression(), Linear, 3):
                with pytest.raises(ModelError):
                    explainer.for_model(bad)
            assert repr(explainer.snapshot()) == before
        return fed(explainer, stream(20, seed=2)).importance

    assert run(broken=True) == run(broken=False)


def test_what_was_skipped_before_is_not_counted():
    old = IncrementalPFI(OLD, loss="squared", missing="skip", seed=1)
    fed(old, [({"a": None, "b": 1.0}, 1.0), ({"a": 1.0, "b": 1.0}, 1.0), ({"a": 2.0, "b": 1.0}, 1.0)])
    assert old.skipped == {"missing": 1, "nothing_stored": 1}
    new = old.for_model(NEW)
    assert (new.skipped, new.n_skipped) == ({}, 0)
    fed(new, [({"a": None, "b": 1.0}, 1.0), ({"a": 1.0, "b": 1.0}, 1.0)])
    assert (new.skipped, new.n_observations) == ({"missing": 1}, 1)


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_before_anything_is_stored_it_begins_as_any_other(explainer):
    new = explainer(OLD, loss="squared", n_samples=4, seed=9).for_model(NEW)
    plain = explainer(NEW, loss="squared", n_samples=4, seed=9)
    for x, y in stream(30):
        assert new.explain_one(x, y) == plain.explain_one(x, y)


def test_the_model_may_predict_another_kind_of_thing():
    # A loss of one's own takes what the model predicts: the stored predictions, which the draws are sorted by, differ.
    def either(y, prediction):
        return abs(y - (prediction if isinstance(prediction, float) else prediction.get("yes", 0.0)))

    old = fed(IncrementalSAGE(OLD, loss=either, n_samples=4, seed=1), stream(150))
    new = fed(old.for_model(yes_or_no), stream(150, seed=2))
    assert new.n_observations == 150
    assert abs(sum(new.importance.values()) - (new.marginal_loss - new.model_loss)) < 1e-9


def yes_or_no(x):
    share = 1.0 / (1.0 + x["a"])
    return {"yes": share, "no": 1.0 - share}
