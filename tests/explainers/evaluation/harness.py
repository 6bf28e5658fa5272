"""What tests of the fast path of a function make: the path itself, and two explainers that should agree."""

from __future__ import annotations

from typing import Any

from attributary_explainers import IncrementalPFI
from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.models.function import model_function

from ..fast_paths.twins import naive_twin


def twins(model: Any, explainer: Any = IncrementalPFI, **parameters: Any) -> tuple[Any, Any]:
    parameters = {"n_samples": 3, "alpha": 0.05, "seed": 1, **parameters}
    return explainer(model, **parameters), naive_twin(explainer(model, **parameters))


def fast_function(model: Any, output: Any = "probabilities") -> FastFunction:
    function = model_function(model, output)
    assert isinstance(function, FastFunction)
    return function
