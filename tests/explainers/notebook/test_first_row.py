"""What a parameter names and no row has is an error at the first row, and not an importance of 0 for ever."""

from __future__ import annotations

import pytest

import attributary_explainers as ae

from . import objects

ROW = {"age": 34, "income": 1.0, "city_bern": 1}


def model(x):
    return float(x.get("age", 0.0))


def first(explainer, x=ROW):
    return (
        explainer.explain_one(x, 1.0) if hasattr(explainer, "explain_one") else explainer.update(x, True, {True: 1.0})
    )


MAKERS = [
    lambda groups: ae.IncrementalPFI(model, loss="squared", groups=groups),
    lambda groups: ae.IncrementalSAGE(model, loss="squared", groups=groups),
    lambda groups: ae.IntervalPFI(model, loss="squared", interval=5, groups=groups),
    lambda groups: ae.SlidingWindowSAGE(model, loss="squared", window=5, stride=2, groups=groups),
    lambda groups: ae.Explainers(model, {"pfi": ae.IncrementalPFI(model, loss="squared", groups=groups)}),
    lambda groups: ae.ChangeExplainer(objects.model(), groups=groups),
    lambda groups: ae.PaperChangeExplainer(objects.model(), groups=groups),
    lambda groups: ae.LossMonitor(objects.model(), groups=groups),
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_group_without_a_feature_is_an_error(make):
    explainer = make({"who": ["agee", "incom"]})
    with pytest.raises(ae.InvalidParameterError, match=r"'who'.*did you mean 'age'"):
        first(explainer)
    with pytest.raises(ae.InvalidParameterError):  # again: nothing was taken in
        first(explainer)


@pytest.mark.parametrize("make", MAKERS)
def test_one_feature_of_a_group_is_enough(make):
    explainer = make({"city": ["city_bern", "city_basel"], "rest": ["age"]})
    first(explainer)
    first(explainer, {"other": 1.0, "age": 3})  # and later rows may have none of them


def test_batch_methods_look_at_all_rows():
    data = [(ROW, 1.0), ({"age": 3, "late": 1}, 2.0)]
    assert set(ae.batch_pfi(model, data, loss="squared", groups={"g": ["late"]}).importance) >= {"g"}
    with pytest.raises(ae.InvalidParameterError, match="did you mean 'late'"):
        ae.batch_pfi(model, data, loss="squared", groups={"g": ["lat"]})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ae.IncrementalPFI(model, loss="squared", removal=ae.ConstantImputer({"agee": 1})), "mean 'age'"),
        (lambda: ae.IncrementalPFI(model, loss="squared", removal=ae.ConstantImputer({"zip": 1})), "got 'zip'"),
        (
            lambda: ae.IncrementalSAGE(model, loss="squared", removal=ae.ConstantImputer({"age": 1, "incme": 1})),
            "income",
        ),
        (lambda: ae.IncrementalPDP(model, ["agee"]), "did you mean 'age'"),
        (lambda: ae.IncrementalPDP(model, ["age", "incme"]), "did you mean 'income'"),
        (lambda: ae.IncrementalPDP(model, ["zip"]), "features must be made of features that the rows have"),
    ],
)
def test_a_named_feature_that_is_not_there_is_an_error(make, said):
    with pytest.raises(ae.InvalidParameterError, match=said):
        first(make())


@pytest.mark.parametrize(
    "make",
    [
        lambda: ae.IncrementalPFI(model, loss="squared", removal=ae.ConstantImputer({"age": 1, "zip": 1})),
        lambda: ae.IncrementalPFI(model, loss="squared", removal=ae.ConstantImputer({})),
        lambda: ae.IncrementalPDP(model, ["age", "zip"]),
        lambda: ae.IncrementalPDP(model),
    ],
)
def test_a_feature_that_may_come_later_is_none(make):
    first(make())


def test_keyword_of_the_plural_is_named():
    with pytest.raises(TypeError, match="'feature': did you mean 'features'"):
        ae.IncrementalPDP(model, feature="age")


def test_a_restored_explainer_takes_rows_as_they_come():
    own = ae.IncrementalPFI(model, loss="squared", groups={"city": ["city_bern"]}, seed=1)
    first(own)
    restored = ae.IncrementalPFI.from_snapshot(own.snapshot(), model)
    first(restored, {"age": 3})


def test_predict_and_explain_check_the_first_row_too():
    both = ae.Explainers(model, {"pfi": ae.IncrementalPFI(model, loss="squared", groups={"city": ["city_ben"]})})
    with pytest.raises(ae.InvalidParameterError, match="did you mean 'city_bern'"):
        both.predict(ROW)
    assert both.n_predicted == 0


@pytest.mark.parametrize("make", [make for make in MAKERS if hasattr(make({"city": ["city_bern"]}), "know_names")])
def test_who_knows_better_says_so(make):
    explainer = make({"city": ["city_bern"]})
    explainer.know_names()
    first(explainer, {"age": 3})


def test_a_group_that_vanishes_for_an_interval_is_no_error():
    pfi = ae.IntervalPFI(model, loss="squared", interval=3, groups={"city": ["city_bern"]}, seed=1)
    for n in range(6):
        pfi.explain_one({"age": n, "city_bern": 1} if n < 3 else {"age": n}, float(n))
    assert pfi.importance["city"] == 0.0


def test_another_model_takes_rows_as_they_come():
    own = ae.IncrementalPFI(model, loss="squared", groups={"city": ["city_bern"]}, seed=1)
    first(own)
    first(own.for_model(model), {"age": 3})
