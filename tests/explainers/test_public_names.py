"""What the packages promise is there, and nothing public is left out of the promise."""

import importlib
import inspect
import pkgutil

import pytest

import attributary_explainers
import attributary_topics
from attributary_explainers import RemovalExplainer

INTERNAL_MODULES = {
    "change_alarms": "what raises the alarms of ChangeExplainer",
    "change_reference": "what ChangeExplainer compares with",
    "coalitions": "losses of coalitions inside one step of iSAGE",
    "conditional_encoding": "how the conditional sampler reads values",
    "conditional_leaves": "leaves of the conditional sampler's trees",
    "conditional_splitters": "splits of the conditional sampler's trees",
    "conditional_trees": "the conditional sampler's trees",
    "contributions": "increments by observation inside the batch methods",
    "feature_sampling": "which features PFI evaluates at an observation",
    "influence": "the variance inside SmoothedImportance",
    "loss_watch": "a warning of the explainers by removal",
    "strata": "the order of the rows inside the imputers",
}
NOT_EXPORTED = {
    "Weights": "the shared recursion inside the smoothed means: nobody makes one without a mean",
    "DataTable": "a model on a data set inside the batch methods",
    "IncrementalDiscrepancy": "inside ChangeExplainer, which gives its value",
    "BatchFunction": "what model_function returns for models of many rows: known by its protocol",
    "CompatFunction": "what model_function returns for River's wrappers: known by its protocol",
}


@pytest.mark.parametrize("package", [attributary_explainers, attributary_topics])
def test_every_promised_name_exists_once_and_in_order(package):
    assert sorted(set(package.__all__)) == sorted(package.__all__)
    missing = [name for name in package.__all__ if not hasattr(package, name)]
    assert missing == []


def public_classes(package):
    found = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if value.__module__ == module.name and not name.startswith("_"):
                found[name] = module.name
    return found


@pytest.mark.parametrize("package", [attributary_explainers, attributary_topics])
def test_every_public_class_is_promised_or_left_out_for_a_reason(package):
    found = public_classes(package)
    assert len(found) >= 10
    left_out = {name: module.rpartition(".")[2] for name, module in found.items() if name not in package.__all__}
    unexplained = {name for name, module in left_out.items() if module not in INTERNAL_MODULES} - set(NOT_EXPORTED)
    assert unexplained == set()


def test_what_is_left_out_for_a_reason_is_there():
    found = public_classes(attributary_explainers)
    assert set(NOT_EXPORTED) <= set(found)
    assert set(INTERNAL_MODULES) <= {module.rpartition(".")[2] for module in found.values()}
    assert not (set(NOT_EXPORTED) & set(attributary_explainers.__all__))


def test_every_public_explainer_is_covered_by_these_checks():
    # A new explainer belongs into the parametrised lists of test_streams, test_snapshots and the oracles.
    concrete = {
        name
        for name in attributary_explainers.__all__
        if inspect.isclass(cls := getattr(attributary_explainers, name))
        and issubclass(cls, attributary_explainers.IncrementalExplainer)
        and not inspect.isabstract(cls)
    }
    from_batches = {"IntervalPFI", "SlidingWindowSAGE"}
    assert concrete == {"IncrementalMDI", "IncrementalPDP", "IncrementalPFI", "IncrementalSAGE"} | from_batches
    by_removal = {n for n in concrete if issubclass(getattr(attributary_explainers, n), RemovalExplainer)}
    assert by_removal == {"IncrementalPFI", "IncrementalSAGE"}
