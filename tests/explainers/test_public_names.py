"""What the packages promise is there, and nothing public is left out of the promise."""

import importlib
import inspect
import pkgutil

import pytest

import attributary_explainers
import attributary_topics

NOT_EXPORTED = {
    "Weights": "the shared recursion inside the smoothed means: nobody makes one without a mean",
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
    left_out = {name: module for name, module in found.items() if name not in package.__all__}
    assert set(left_out) == (set(NOT_EXPORTED) if package is attributary_explainers else set())


def test_every_public_explainer_is_covered_by_these_checks():
    # A new explainer belongs into the parametrised lists of test_streams, test_snapshots and the oracles.
    concrete = {
        name
        for name in attributary_explainers.__all__
        if inspect.isclass(cls := getattr(attributary_explainers, name))
        and issubclass(cls, attributary_explainers.IncrementalExplainer)
        and not inspect.isabstract(cls)
    }
    assert concrete == {"IncrementalPFI", "IncrementalSAGE"}
