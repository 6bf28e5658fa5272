"""An explainer by the fast path and its twin by the naive one, compared after every observation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.incremental.base import IncrementalExplainer

TOLERANCE = 1e-12


def naive_twin(explainer: Any) -> Any:
    """The same explainer, asking the model row by row."""
    assert isinstance(explainer._function, FastFunction)
    explainer._function = explainer._function._naive
    return explainer


def published(explainer: IncrementalExplainer) -> dict[str, Any]:
    """All that can be read of an explainer, numbers of it by name."""
    found: dict[str, Any] = {"n": explainer.n_observations, "n_skipped": explainer.n_skipped}
    for name in ("importance", "std_error", "skipped", "marginal_loss", "model_loss", "pdp", "n_missing"):
        value = getattr(explainer, name, None)
        found[name] = dict(value) if isinstance(value, dict) else value
    return found


def assert_close(found: Any, expected: Any, where: str) -> None:
    """Numbers to 1e-12, relative where they are larger than 1; everything else equal; keys in the same order."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for name, value in expected.items():
            assert_close(found[name], value, f"{where}: {name!r}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_close(one, other, f"{where}: {i}")
    elif isinstance(expected, float):
        if math.isnan(expected) or math.isinf(expected):
            assert repr(found) == repr(expected), where
        else:
            difference = abs(found - expected) / max(1.0, abs(expected))
            assert difference <= TOLERANCE, f"{where}: {found!r} by the fast path, {expected!r} by the model"
    else:
        assert found == expected, where


def bits(value: Any) -> Any:
    """A value whose equality is that of every bit."""
    if isinstance(value, dict):
        return [(name, bits(one)) for name, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [bits(one) for one in value]
    return value.hex() if isinstance(value, float) else repr(value)


def explain_both(fast: Any, naive: Any, x: dict[Any, Any], y: Any, step: object) -> None:
    """Explain an observation both ways, and compare all that can be read."""
    fast.explain_one(x, y)
    naive.explain_one(dict(x), y)
    assert_close(published(fast), published(naive), f"step {step}")


def follow_twins(model: Any, fast: Any, naive: Any, stream: Iterable[tuple[Any, Any]]) -> float:
    """Explain each observation both ways, compare, and let the model learn it; the share that took the fast path."""
    before = fast._function.counts["fast"]
    steps = 0
    for step, (x, y) in enumerate(stream):
        steps += 1
        explain_both(fast, naive, x, y, step)
        model.learn_one(x, y)
    assert any(value for value in fast.importance.values()), "nothing has been explained"
    share: float = (fast._function.counts["fast"] - before) / steps
    return share
