"""Features that are removed together: one-hot columns moved as a group are the category itself."""

import numpy as np
import pytest

from attributary_explainers import (
    REMOVAL_NAMES,
    SAMPLING_NAMES,
    Explainers,
    GeometricReservoir,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    batch_pfi,
)
from tests.explainers.oracles import FEATURES, medium_or_large, small_and_red, stagger_stream
from tests.explainers.stand_ins import Linear, Recording

of_both = pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])

ONE_HOT = {f: [f"{f}_{value}" for value in (2, 1, 0)] for f in FEATURES}
"""The last category's column first: sorted by their columns, observations are then in the order of their category, so
that draws spread over a reservoir are the same."""


def one_hot(x, *, sparse=False):
    columns = {f"{f}_{value}": int(x[f] == value) for f in FEATURES for value in range(3)}
    return {name: bit for name, bit in columns.items() if bit or not sparse}


def category(x):
    """The category back from its columns; an impossible mixture fails."""
    found = {}
    for f in FEATURES:
        (found[f],) = [value for value in range(3) if x.get(f"{f}_{value}", 0)]
    return found


@of_both
@pytest.mark.parametrize("sampling", SAMPLING_NAMES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
@pytest.mark.share(2, "concept", "sparse", "sampling", "explainer")
def test_moving_the_columns_together_is_permuting_the_category(explainer, sampling, sparse, concept):
    how = {"loss": "squared", "alpha": 0.02, "n_samples": 3, "sampling": sampling, "seed": 1}
    plain = explainer(concept, **how)
    grouped = explainer(lambda x: concept(category(x)), groups=ONE_HOT, **how)
    for x, y in stagger_stream(concept, 200, 1):
        # The same players in the same order make the same draws: equal to the last bit.
        assert plain.explain_one(x, y) == grouped.explain_one(one_hot(x, sparse=sparse), y)
    assert plain.importance == grouped.importance
    assert plain.std_error == grouped.std_error
    assert plain.importance["size"] > 0


@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
def test_batch_pfi_moves_groups_together_too(concept):
    data = stagger_stream(concept, 60, 2)
    plain = batch_pfi(concept, data, loss="zero_one", n_permutations=3, seed=2)
    hot = [(one_hot(x), y) for x, y in data]
    grouped = batch_pfi(lambda x: concept(category(x)), hot, loss="zero_one", n_permutations=3, groups=ONE_HOT, seed=2)
    assert plain == grouped
    assert plain.importance["size"] > 0


@of_both
def test_features_in_no_group_stand_alone(explainer):
    explaining = explainer(Recording(), loss="squared", groups={"pair": ["a", "c"]}, seed=3)
    for i in range(4):
        importance = explaining.explain_one({"a": i, "b": i, "c": i, "d": i}, 0.0)
    assert set(importance) == {"pair", "b", "d"}


@of_both
@pytest.mark.parametrize("sampling", SAMPLING_NAMES)
def test_the_members_of_a_group_always_come_from_one_row(explainer, sampling):
    model = Recording()
    explaining = explainer(model, loss="squared", n_samples=4, groups={"pair": ["a", "c"]}, sampling=sampling, seed=4)
    for i in range(30):
        explaining.explain_one({"a": i, "b": i, "c": i}, 0.0)
    assert all(row["a"] == row["c"] for row in model.rows)
    assert any(row["a"] != row["b"] for row in model.rows)


@of_both
@pytest.mark.parametrize("removal", REMOVAL_NAMES)
def test_the_members_of_a_group_are_removed_together_by_every_removal(explainer, removal):
    model = Recording()
    few = {"reservoir": GeometricReservoir(10), "n_samples": 4, "seed": 7}
    explaining = explainer(model, loss="squared", groups={"pair": ["a", "c"]}, removal=removal, **few)
    together = 0
    for i in range(60):
        model.rows.clear()
        explaining.explain_one({"a": i, "b": i, "c": i}, 0.0)
        # Values drawn apart may differ; but one of both alone is never the observation's own while the other is not.
        assert all((row["a"] == i) == (row["c"] == i) for row in model.rows)
        together += sum(row["a"] != i for row in model.rows)
    assert together > 50


def test_one_group_of_all_features_gets_the_whole_improvement():
    rng = np.random.default_rng(5)
    model = Linear({"a": 1.0, "b": -3.0})
    sage = IncrementalSAGE(model, loss="squared", alpha=0.05, groups={"all": ["a", "b"]}, seed=5)
    for a, b in rng.normal(size=(50, 2)).tolist():
        importance = sage.explain_one({"a": a, "b": b}, a)
    assert list(importance) == ["all"]
    assert importance["all"] == pytest.approx(sage.marginal_loss - sage.model_loss, abs=1e-9)


@of_both
def test_a_group_is_played_even_where_the_observation_has_none_of_it(explainer):
    # Sparse one-hot columns: an observation without any column of `color` may get one from the reservoir.
    model = Linear({"color_red": 1.0})
    explaining = explainer(model, loss="squared", alpha=0.1, n_samples=5, groups={"color": ["color_red"]}, seed=6)
    assert explaining.explain_one({"color_red": 1.0, "a": 0.0}, 1.0) == {}
    importance = explaining.explain_one({"a": 0.0}, 0.0)
    # The only stored row has the column: loss (0 - 1)^2. The mean prediction is that for it.
    assert importance == pytest.approx({"color": 1.0, "a": 0.0}, rel=1e-12)


def test_groups_and_explainers_without_names_are_refused_with_what_to_write():
    model = Linear({"a": 1.0})
    with pytest.raises(InvalidParameterError, match="a mapping of names to lists of features"):
        IncrementalPFI(model, loss="squared", groups=[["a", "b"]])
    with pytest.raises(InvalidParameterError, match="a mapping of names to explainers"):
        Explainers(model, [IncrementalPFI(model, loss="squared")])
