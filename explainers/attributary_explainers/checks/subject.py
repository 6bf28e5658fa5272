"""Subject of the checks: an explainer's factory, a model, observations."""

from __future__ import annotations

import gc
import inspect
import math
import pickle
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from numbers import Real
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np
from river import base

from ..incremental.base import IncrementalExplainer
from ..losses.losses import Loss
from ..models.function import is_classifier
from ..models.river import final_step
from ..pickling import freeze
from ..typing import Features, Snapshot

_LONGEST = 300


class CheckFailure(AssertionError):  # noqa: N818 - a failed check is reported as one, by pytest too
    """An explainer breaks a promise.

    Parameters
    ----------
    expected
        What was promised, in words.
    seen
        What happened.
    check
        Name of the check; the check itself fills it in.
    """

    def __init__(self, expected: str, seen: str, check: str = "") -> None:
        self.expected, self.seen, self.check = expected, seen, check
        super().__init__(f"{check + ': ' if check else ''}expected {expected}; saw {seen}")


def expect(condition: bool, expected: str, seen: object) -> None:
    """Raise CheckFailure unless `condition` holds."""
    if not condition:
        raise CheckFailure(expected, seen if isinstance(seen, str) else _short(repr(seen)))


def expect_equal(wanted: Sequence[str], seen: Sequence[str], expected: str) -> None:
    """Raise CheckFailure at the first observation where two runs differ."""
    for number, (one, other) in enumerate(zip_longest(wanted, seen, fillvalue="nothing"), 1):
        if one != other:
            raise CheckFailure(expected, f"at observation {number} {_apart(one, other)}")


def _apart(one: str, other: str) -> str:
    # From a little before the first character that differs: long results are equal for most of their length.
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(same - 60, 0)
    return (
        f"{_short(one[start:])} where it was {_short(other[start:])}" if start else f"{_short(one)} and {_short(other)}"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


_PLAIN = (str, int, float, bool, bytes, type(None))
_NOT_STATE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)


def strangers(data: Any, path: str) -> list[str]:
    """Return the paths of all values whose exact type is no builtin."""
    if type(data) is dict:
        return [s for k, v in data.items() for s in (*strangers(k, f"key of {path}"), *strangers(v, f"{path}[{k!r}]"))]
    if type(data) in (list, tuple, set, frozenset):
        return [s for i, v in enumerate(data) for s in strangers(v, f"{path}[{i}]")]
    return [] if type(data) in _PLAIN else [f"{path}: {type(data).__name__}"]


def numbers(result: Any) -> Iterator[float]:
    """Yield every float in a result, however deep."""
    if isinstance(result, Mapping):
        for value in result.values():
            yield from numbers(value)
    elif isinstance(result, (list, tuple, set, frozenset)):
        for value in result:
            yield from numbers(value)
    elif isinstance(result, (float, np.floating)):
        yield float(result)
    elif isinstance(result, np.ndarray) and result.dtype.kind == "f":
        yield from result.ravel().tolist()


def all_finite(result: Any) -> bool:
    """Return whether a result holds neither NaN nor infinity."""
    return all(map(math.isfinite, numbers(result)))


def spoil(data: Any) -> None:
    """Empty all dicts, lists and sets in `data`, the innermost first."""
    if isinstance(data, (dict, list, tuple)):
        for value in list(data.values()) if isinstance(data, dict) else list(data):
            spoil(value)
    if isinstance(data, (dict, list, set)):
        data.clear()


def size_of(data: Any) -> int:
    """Return the pickled size in bytes."""
    return len(pickle.dumps(data, pickle.HIGHEST_PROTOCOL))


def n_held(root: Any, model: Any) -> int:
    """Count the objects and elements held by `root`, except the model's."""
    seen: dict[int, Any] = {id(model): model}
    waiting, n = [root], 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _NOT_STATE):
            continue
        seen[id(value)] = value
        n += 1
        if isinstance(value, np.ndarray):
            n += value.size
        elif isinstance(value, (str, bytes, bytearray)):
            n += len(value) // 8
        waiting.extend(gc.get_referents(value))
    return n


_METHODS = (
    "predict_one",
    "predict_proba_one",
    "score_one",
    "predict",
    "predict_proba",
    "score_samples",
    "predict_many",
)


class AnyClassifier(base.Classifier):
    """A softmax regression that takes any name, any value and any label.

    Numbers count as they are, cut at 10 on both sides; every other value is a category; None, NaN and what has no hash
    count as absent. It has no prediction before it has learnt. It is deterministic and small, not good.
    """

    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate
        self.weights: dict[Any, dict[Any, float]] = {}

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each label that has been learnt."""
        terms = list(_terms(x))
        scores = {
            label: math.fsum(value * weights.get(key, 0.0) for key, value in terms)
            for label, weights in self.weights.items()
        }
        top = max(scores.values(), default=0.0)
        powers = {label: math.exp(score - top) for label, score in scores.items()}
        total = sum(powers.values())
        return {label: power / total for label, power in powers.items()}

    def learn_one(self, x: dict[Any, Any], y: Any, **_: Any) -> None:
        """Take a gradient step that lowers the cross-entropy."""
        self.weights.setdefault(y, {})
        for label, p in self.predict_proba_one(x).items():
            weights, step = self.weights[label], self.rate * (float(label == y) - p)
            for key, value in _terms(x):
                weights[key] = weights.get(key, 0.0) + step * value


def _terms(x: dict[Any, Any]) -> Any:
    yield "intercept of the model", 1.0
    for name, value in x.items():
        if _is_number(value):
            try:
                number = float(value)
            except OverflowError:
                number = 10.0
            if not math.isnan(number):
                yield (name, "number"), min(max(number, -10.0), 10.0)
        elif value is not None and isinstance(value, Hashable):
            yield (name, value), 1.0


def ordinary_stream(n: int = 240) -> list[tuple[dict[Any, Any], Any]]:
    """Return rows of two strong features, a noise feature, a weak category."""
    draw = random.Random(20230901)
    stream: list[tuple[dict[Any, Any], Any]] = []
    for _ in range(n):
        a, b, noise = (round(draw.gauss(0.0, 1.0), 6) for _ in range(3))
        kind = draw.choice(("red", "green", "blue"))
        stream.append(
            ({"a": a, "b": b, "noise": noise, "kind": kind}, "yes" if 2.0 * a - b + (kind == "red") > 0.3 else "no")
        )
    return stream


class Switch:
    """Switch that makes a model's predictions fail while `mode` says so.

    Parameters
    ----------
    model
        Its methods are replaced on the instance, so that it stays of its exact type. A function is wrapped instead:
        `self.model` is what to explain.
    """

    def __init__(self, model: Any) -> None:
        self.mode = "works"
        """What the model does: `works`, `nothing` (None), `nan`, `infinite` or `raises`."""
        self.every = 1
        """Only each `every`-th call fails."""
        self.n_calls = 0
        names = [name for name in _METHODS if hasattr(model, name)]
        for name in names:
            setattr(model, name, self._guarded(getattr(model, name)))
        self.model = model if names or not callable(model) else self._guarded(model)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.n_calls += 1
            prediction = function(*args, **kwargs)
            if self.mode == "works" or self.n_calls % self.every:
                return prediction
            if self.mode == "raises":
                raise ZeroDivisionError("the check made the model raise")
            return _broken(prediction, {"nan": math.nan, "infinite": math.inf}.get(self.mode))

        return guarded


def _broken(prediction: Any, value: float | None) -> Any:
    if isinstance(prediction, dict):
        return None if value is None else dict.fromkeys(prediction, value)
    if isinstance(prediction, list):
        return [_broken(part, value) for part in prediction]
    if isinstance(prediction, np.ndarray) and prediction.ndim:
        return [None] * len(prediction) if value is None else prediction * value
    return value if _is_number(prediction) else None


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real)


def ask(model: Any, x: Mapping[Any, Any]) -> None:
    """Let a River model or a function predict, and drop the prediction."""
    method = next((getattr(model, name) for name in _METHODS[:3] if hasattr(model, name)), model)
    if callable(method):
        method(dict(x))


Factory: TypeAlias = Callable[[Any, int], IncrementalExplainer]
"""`make(model, seed)`: a new explainer of the model. Called several times in a check; each call must make another."""

Stream: TypeAlias = Sequence[tuple[Features, Any]]


@dataclass
class Subject:
    """A factory, a model that every check copies, and observations."""

    make: Factory
    model: Any = field(default_factory=AnyClassifier)
    stream: Stream = field(default_factory=ordinary_stream)
    horizon: int = 2000

    def new_model(self, n_learnt: int | None = None) -> Any:
        """Return a copy of the model taught `n_learnt` observations; None: all."""
        model = freeze(self.model)
        for x, y in self.stream[:n_learnt]:
            learn(model, x, y)
        return model

    def new(self, n_learnt: int | None = None, seed: int = 1) -> tuple[IncrementalExplainer, Any]:
        """Return a new explainer and its model."""
        model = self.new_model(n_learnt)
        return self.make(model, seed), model

    def switched(self) -> tuple[IncrementalExplainer, Switch]:
        """Return an explainer of a taught model, and the switch to break it."""
        switch = Switch(self.new_model())
        return self.make(switch.model, 1), switch

    def model_takes(self, stream: Stream) -> bool:
        """Return whether the model alone can learn and predict these rows."""
        model = freeze(self.model)
        try:
            for x, y in stream:
                ask(model, x)
                learn(model, x, y)
        except Exception:  # noqa: BLE001 - the model is the user's code, and it is the explainer that is checked
            return False
        return True

    def trace(self, seed: int = 1, stream: Stream | None = None) -> list[str]:
        """Return results while a new model learns, and the final properties."""
        explainer, model = self.new(0, seed)
        return feed_and_publish(explainer, model, self.stream if stream is None else stream)

    def said(self) -> list[str]:
        """Return a new explainer's results while a new model learns."""
        return self.trace()[:-1]

    @property
    def seeded(self) -> bool:
        """Whether the explainer's class takes a seed."""
        constructors = [vars(cls).get("__init__") for cls in type(self.new(0)[0]).__mro__ if cls is not object]
        return any("seed" in inspect.signature(made).parameters for made in constructors if made is not None)

    @property
    def has_loss(self) -> bool:
        """Whether the explainer reads the model through a `Loss`."""
        return isinstance(getattr(self.new(0)[0], "loss", None), Loss)

    @property
    def evaluates(self) -> bool:
        """Whether explaining asks the model for predictions."""
        explainer, switch = self.switched()
        for x, y in self.stream[:50]:
            explainer.explain_one(dict(x), y)
        return switch.n_calls > 0

    @property
    def classifies(self) -> bool:
        """Whether the model is a classifier."""
        return is_classifier(self.model)

    @property
    def regresses(self) -> bool:
        """Whether explaining reads a target that is a number."""
        return self.has_loss and not self.classifies


def learn(model: Any, x: Features, y: Any) -> None:
    """Let a River model learn an observation; leave other models alone."""
    if isinstance(final_step(model), base.AnomalyDetector):
        model.learn_one(dict(x))
    elif hasattr(model, "learn_one"):
        model.learn_one(dict(x), y)


def feed(explainer: IncrementalExplainer, model: Any, stream: Iterable[tuple[Features, Any]]) -> list[str]:
    """Return each observation's result as text while the model learns."""
    said = []
    for x, y in stream:
        said.append(as_text(explainer, explainer.explain_one(dict(x), y)))
        learn(model, x, y)
    return said


def feed_and_publish(explainer: IncrementalExplainer, model: Any, stream: Iterable[tuple[Features, Any]]) -> list[str]:
    """Return the results of `feed`, and all public properties at the end."""
    return [*feed(explainer, model, stream), repr(published(explainer))]


def as_text(explainer: IncrementalExplainer, result: Any) -> str:
    """Return a result and the counts as exact text, in which NaN equals NaN."""
    return repr((result, explainer.n_observations, explainer.n_skipped))


def properties(explainer: IncrementalExplainer) -> list[str]:
    """Return the names of the public properties of an explainer's class."""
    cls = type(explainer)
    return [name for name in dir(cls) if not name.startswith("_") and isinstance(getattr(cls, name), property)]


def published(explainer: IncrementalExplainer) -> dict[str, Any]:
    """Return the public properties that are plain data."""
    found = {name: getattr(explainer, name) for name in properties(explainer)}
    return {name: value for name, value in found.items() if not strangers(value, name)}


def explain(
    explainer: IncrementalExplainer, observations: Iterable[tuple[Features, Any]]
) -> list[tuple[Features, Any]]:
    """Explain observations, check that each counts, and return the results."""
    results = []
    before = n_given(explainer)
    for x, y in observations:
        results.append((x, explainer.explain_one(dict(x), y)))
        expect(
            n_given(explainer) == before + len(results),
            f"n_observations + n_skipped to be {before + len(results)} after as many observations",
            f"{explainer.n_observations} + {explainer.n_skipped} after {dict(x)!r}",
        )
    return results


def n_given(explainer: IncrementalExplainer) -> int:
    """Return how many observations the explainer says it was given."""
    return explainer.n_observations + explainer.n_skipped


def explainer_of(explainer: IncrementalExplainer, snapshot: Snapshot, model: Any) -> IncrementalExplainer:
    """Return a snapshot's explainer with `explainer`'s loss, which it lacks."""
    loss = getattr(explainer, "loss", None)
    return type(explainer).from_snapshot(snapshot, model, loss=loss if isinstance(loss, Loss) else None)
