"""Subject of the checks: an explainer's factory, a model, observations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from river import base

from ..incremental.base import IncrementalExplainer
from ..losses.losses import Loss
from ..models.function import is_classifier
from ..models.river import final_step
from ..pickling import freeze
from ..typing import Features, Snapshot
from .data import strangers
from .failures import expect
from .stand_ins import AnyClassifier, Switch, ask, ordinary_stream

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
