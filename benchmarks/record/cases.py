"""The models that records are handled for, and the records."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import orjson

MODEL_ID = "credit"
FEATURES = tuple(f"feature_{n}" for n in range(9))

_LINEAR: list[dict[str, Any]] = [
    {"class": "river.preprocessing.StandardScaler"},
    {"class": "river.linear_model.LogisticRegression"},
]
_REGRESSION: list[dict[str, Any]] = [
    {"class": "river.preprocessing.StandardScaler"},
    {"class": "river.linear_model.LinearRegression"},
]
_FOREST: dict[str, Any] = {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}
_BARE: dict[str, Any] = {"explainers": {}, "change": None, "watch_loss": False, "quality": []}
_PFI: dict[str, Any] = {**_BARE, "explainers": {"pfi": {"n_samples": 10}}}


@dataclass(frozen=True)
class Case:
    """What the configuration says of the model, and what is sent to it."""

    about: str
    settings: dict[str, Any]
    is_regression: bool = False
    has_text: bool = False
    """Whether the last feature but one is a category."""
    hostile: float = 0.0
    """Share of the records that are no clean observation."""

    @property
    def modes(self) -> tuple[str, ...]:
        """What can be measured of it: odd records are nothing that a model alone could be given."""
        return ("whole",) if self.hostile else ("fixed", "whole", "model")


CASES = {
    "learn": Case("learns, nothing else", {"model": _LINEAR, **_BARE}),
    "learn-declared": Case(
        "the same, features declared", {"model": _LINEAR, "features": dict.fromkeys(FEATURES, "number"), **_BARE}
    ),
    "pfi10": Case("iPFI, n_samples 10", {"model": _LINEAR, **_PFI}),
    "every10": Case("iPFI, every 10th", {"model": _LINEAR, **_PFI, "explain": {"every": 10}}),
    "regression": Case("a regression learns", {"model": _REGRESSION, **_BARE}, is_regression=True),
    "default": Case("as a new user has it", {"model": _LINEAR}),
    "default-regression": Case("the same of a regression", {"model": _REGRESSION}, is_regression=True),
    "text": Case("a forest, one feature a category", {"model": _FOREST, **_BARE}, has_text=True),
    "mixed": Case("default, a third of the records odd", {"model": _FOREST, "publish": {"every": 20}}, hostile=0.33),
    "mixed-declared": Case(
        "iPFI, features declared, a third of the records odd",
        {
            "model": _FOREST,
            "features": {**dict.fromkeys(FEATURES[:7], "number"), FEATURES[7]: "category", FEATURES[8]: "any"},
            "explainers": {"pfi": {}, "sage": {}},
            "publish": {"every": 20},
            "bounds": {FEATURES[0]: [-6, 6]},
        },
        has_text=True,
        hostile=0.33,
    ),
}


def config_of(case: Case) -> dict[str, Any]:
    """Return the configuration of one model."""
    return {"models": {MODEL_ID: case.settings}}


def values(case: Case, seed: int = 1) -> Iterator[bytes]:
    """Yield values of records without end, the same for the same seed."""
    rng, odd = random.Random(seed), random.Random(seed + 1)
    weights = [rng.gauss(0, 1) for _ in FEATURES]
    hostile = cycle(_HOSTILE)
    while True:
        x: dict[str, Any] = {name: rng.gauss(0, 1) for name in FEATURES}
        score = sum(w * v for w, v in zip(weights, x.values(), strict=True)) + rng.gauss(0, 0.5)
        if case.has_text:
            x[FEATURES[7]] = odd.choice(("red", "green", "blue"))
        y: float | bool = score if case.is_regression else score > 0
        if odd.random() >= case.hostile:
            yield _value(x, y)
        else:
            yield next(hostile)(x, y)


def _value(x: Any, y: Any, **more: Any) -> bytes:
    return orjson.dumps({"x": x, "y": y, **more})


def _with(value: Any) -> Any:
    return lambda x, y: _value({**x, FEATURES[3]: value}, y)


_HOSTILE = (
    _with(1),
    _with(True),
    _with(None),
    _with("text"),
    _with([1]),
    _with({}),
    _with(2**63),
    _with(-0.0),
    _with(1e300),
    lambda x, y: _value({**x, FEATURES[7]: "a" * 30, FEATURES[8]: "b"}, y),
    lambda x, y: _value({**x, FEATURES[7]: 7}, y),
    lambda x, y: _value({**x, "other": 1.0}, y),
    lambda x, y: _value({name: x[name] for name in FEATURES[:-2]}, y),
    lambda x, y: _value(dict(reversed(x.items())), y),
    lambda x, y: _value(dict(reversed(x.items())), y, time=12),
    lambda x, y: _value({}, y),
    lambda x, y: _value([], y),
    lambda x, _: _value(x, None),
    lambda x, _: _value(x, "true"),
    lambda x, _: _value(x, 7),
    lambda x, _: _value(x, 1e200),
    lambda x, y: _value(x, y, model_id=MODEL_ID),
    lambda x, y: _value(x, y, model_id="another"),
    lambda x, y: _value(x, y).replace(b"0.", b"NaN, ", 1),
    lambda x, y: _value({**x, FEATURES[1]: 0.5}, y).replace(b"0.5,", b"NaN,"),
    lambda x, y: _value({**x, FEATURES[1]: 0.5}, y).replace(b"0.5,", b"1e999,"),
    lambda x, y: _value(x, y)[:-4],
    lambda x, y: _value(x, y).replace(b'"x"', b'"y"'),
    lambda _x, _y: b"",
    lambda _x, _y: b"null",
    lambda x, y: _value({**x, "t" * 300: 1.0}, y),
    lambda x, y: _value({**x, FEATURES[0]: 100.0}, y),
    lambda x, y: _value({**x, FEATURES[8]: "w" * 12_000}, y),
)
