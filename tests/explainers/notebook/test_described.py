"""Parameters are shown, cloned and completed; what was seen is copied and pickled."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
from river import compose, linear_model, preprocessing
from sklearn.linear_model import LogisticRegression

import attributary_explainers as ae

from . import objects


def test_repr_has_the_parameters_that_differ_from_their_defaults():
    pfi = ae.IncrementalPFI(objects.model(), alpha=0.01, n_samples=5, removal="interventional", seed=7)
    assert repr(pfi) == "IncrementalPFI(ARFClassifier(...), alpha=0.01, seed=7)"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: ae.IncrementalPFI(objects.regressor()), "IncrementalPFI(StandardScaler | LinearRegression)"),
        (lambda: ae.IncrementalPFI(LogisticRegression()), "IncrementalPFI(LogisticRegression())"),
        (lambda: ae.IncrementalSAGE(len, loss="squared"), "IncrementalSAGE(len, loss='squared')"),
        (lambda: ae.IntervalPFI(len, interval=5, loss="squared"), "IntervalPFI(len, interval=5, loss='squared')"),
        (
            lambda: ae.IncrementalMDI(objects.model(), features=iter(["a"])),
            "IncrementalMDI(ARFClassifier(...), features=('a',))",
        ),
        (lambda: ae.LossMonitor(objects.model()), "LossMonitor(ARFClassifier(...))"),
        (lambda: ae.LossMonitor(), "LossMonitor(learns=False)"),
        (lambda: ae.LossMonitor(output="label", learns=True), "LossMonitor(output='label', learns=True)"),
        (lambda: ae.LossMonitor(seed=3), "LossMonitor(seed=3, learns=False)"),
        (lambda: ae.GeometricReservoir(5), "GeometricReservoir(size=5)"),
        (lambda: ae.ConstantImputer({"a": 0}), "ConstantImputer({'a': 0})"),
        (lambda: ae.ConstantImputer(dict.fromkeys(range(99), 0)), "ConstantImputer({... 99 items})"),
        (
            lambda: ae.Explainers(m := objects.model(), {"pfi": ae.IncrementalPFI(m)}),
            "Explainers(ARFClassifier(...), {'pfi': IncrementalPFI(...)})",
        ),
        (
            lambda: ae.IncrementalPFI(len, loss="squared", removal=ae.MarginalImputer(ae.UniformReservoir(9))),
            "IncrementalPFI(len, loss='squared', removal=MarginalImputer(reservoir=UniformReservoir(size=9)))",
        ),
    ],
)
def test_repr_is_one_short_line(made, said):
    assert repr(made()) == said


@pytest.mark.parametrize("name", objects.ALL)
def test_every_object_says_its_parameters_and_has_a_signature(name):
    made = objects.ALL[name]()
    kind = type(made)
    assert repr(made).startswith(f"{kind.__name__}(")
    assert " object at " not in repr(made)
    declared = inspect.signature(kind).parameters
    assert list(declared) == list(inspect.signature(kind.__init__).parameters)[1:]
    kinds = {one.kind for one in declared.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


def test_nothing_public_takes_just_any_keyword():
    for name in ae.__all__:
        value = getattr(ae, name)
        of = [value] if inspect.isfunction(value) else []
        if inspect.isclass(value):
            of = [one for key, one in inspect.getmembers(value, inspect.isfunction) if not key.startswith("_")]
        for function in of:
            kinds = {one.kind for one in inspect.signature(function).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, (name, function.__name__)


@pytest.mark.parametrize("name", objects.ALL)
def test_an_unknown_keyword_is_a_type_error_that_says_what_was_meant(name):
    kind = type(objects.ALL[name]())
    keyword = next(reversed(inspect.signature(kind).parameters))
    with pytest.raises(TypeError, match=f"{kind.__name__}.*'{keyword}x': did you mean '{keyword}'"):
        kind(**{f"{keyword}x": 1})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ae.batch_pfi(len, [], n_permutation=1), "did you mean 'n_permutations'"),
        (lambda: ae.batch_sage(len, [], n_sample=1), "did you mean 'n_samples'"),
        (lambda: ae.exact_sage(len, [], max_feature=1), "did you mean 'max_features'"),
        (lambda: ae.expected_pfi(len, [], lost="squared"), "did you mean 'loss'"),
        (lambda: ae.interval_pfi(len, [], intervall=1), "did you mean 'interval'"),
        (lambda: ae.make_reservoir("lagged", gapp=1), "did you mean 'gap'"),
        (lambda: ae.IncrementalPFI(len, zzz=1), "It takes model, loss, alpha"),
    ],
)
def test_a_function_says_what_was_meant_too(call, said):
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ae.IncrementalPFI(len, loss="squred"), "did you mean 'squared'"),
        (lambda: ae.IncrementalPFI(len, loss="squared", removal="interventionl"), "did you mean 'interventional'"),
        (lambda: ae.IncrementalPFI(len, loss="squared", sampling="stratifid"), "did you mean 'stratified'"),
        (lambda: ae.IncrementalPFI(len, loss="squared", missing="absnt"), "did you mean 'absent'"),
        (lambda: ae.make_reservoir("sliding-window"), "did you mean 'sliding_window'"),
        (lambda: ae.make_detector("adwni"), "did you mean 'adwin'"),
        (lambda: ae.Quality(["acuracy"]), "did you mean 'accuracy'"),
        (lambda: ae.ChangeExplainer(objects.model(), signal="zero-one"), "did you mean 'zero_one'"),
    ],
)
def test_a_misspelt_choice_says_what_was_meant(call, said):
    with pytest.raises(ae.InvalidParameterError, match=said):
        call()


@pytest.mark.parametrize("name", objects.ALL)
def test_a_clone_has_the_parameters_and_no_state(name):
    made = objects.ALL[name]()
    clone = made.clone()
    assert type(clone) is type(made)
    assert repr(clone) == repr(made)
    assert getattr(clone, "model", None) is getattr(made, "model", None)
    if hasattr(made, "parameters"):
        assert clone.parameters == made.parameters
    for attribute in ("reservoir", "imputer", "sampler"):
        if hasattr(made, attribute):
            assert getattr(clone, attribute) is not getattr(made, attribute)


@pytest.mark.parametrize("name", [*objects.EXPLAINERS, *objects.WATCHERS])
def test_a_clone_of_a_fresh_model_says_what_the_first_said(name):
    make = {**objects.EXPLAINERS, **objects.WATCHERS}[name]
    first = make(objects.model())
    told = objects.feed(first, objects.stream())
    clone = first.clone(objects.model())
    assert clone.model is not first.model
    assert objects.feed(clone, objects.stream()) == told


@pytest.mark.parametrize("name", [*objects.EXPLAINERS, *objects.WATCHERS])
@pytest.mark.parametrize("copied", [lambda of: pickle.loads(pickle.dumps(of)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.share(2, "name", "copied")
def test_a_copy_goes_on_bit_for_bit_and_shares_nothing(name, copied):
    make = {**objects.EXPLAINERS, **objects.WATCHERS}[name]
    own, never = objects.taught(make), objects.taught(make)
    copy_of_own = copied(own)
    assert copy_of_own.model is not own.model
    assert repr(copy_of_own) == repr(own)
    more = objects.stream(60, seed=9)
    told = objects.feed(copy_of_own, more)
    assert objects.feed(own, more) == told  # the copy has changed nothing of its original
    assert objects.feed(never, more) == told


@pytest.mark.parametrize("copied", [lambda of: pickle.loads(pickle.dumps(of)), copy.deepcopy], ids=["pickle", "copy"])
def test_a_copy_reads_the_misfit_of_its_own_imputer(copied):
    own = objects.taught(objects.EXPLAINERS["observational"])
    found = copied(own)
    assert found._doubt._misfit() is found.imputer.misfit
    assert found._doubt._misfit() is not own.imputer.misfit


@pytest.mark.parametrize("name", objects.OTHERS)
def test_what_has_no_model_is_pickled_and_copied(name):
    made = objects.OTHERS[name]()
    for found in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert repr(found) == repr(made)
        assert repr(getattr(found, "snapshot", int)()) == repr(getattr(made, "snapshot", int)())


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda: ae.IncrementalPFI(lambda x: 1.0, loss="squared"), "its model has the function .*<lambda>"),
        (
            lambda: ae.IncrementalPFI(objects.model(), loss=lambda y, p: 0.0),
            "its loss has the function .*<lambda>",
        ),
        (
            lambda: ae.IncrementalSAGE(compose.FuncTransformer(lambda x: x) | linear_model.LogisticRegression()),
            "its model has the function .*<lambda>",
        ),
        (lambda: ae.LossMonitor(ae.as_batch(lambda rows: [1.0] * len(rows)), output="number"), "its model has"),
    ],
)
def test_what_cannot_be_pickled_says_so_with_the_remedy_and_can_be_copied(made, named):
    explainer = made()
    with pytest.raises(pickle.PicklingError, match=named) as caught:
        pickle.dumps(explainer)
    assert "at the top of a module" in str(caught.value)
    assert repr(copy.deepcopy(explainer)) == repr(explainer)


def test_model_and_explainer_that_are_pickled_together_stay_together():
    pfi = ae.IncrementalPFI(preprocessing.StandardScaler() | linear_model.LogisticRegression(), seed=1)
    model, found = pickle.loads(pickle.dumps((pfi.model, pfi)))
    assert found.model is model


def test_a_clone_of_what_was_restored_has_its_parameters():
    own = objects.taught(objects.EXPLAINERS["pfi"])
    restored = ae.IncrementalPFI.from_snapshot(own.snapshot(), own.model)
    assert restored.clone().parameters == own.parameters
    assert restored.clone().n_observations == 0


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    import attributary_agents
    import attributary_topics

    for package in (ae, attributary_agents, attributary_topics):
        assert package.__version__ == version("attributary")
