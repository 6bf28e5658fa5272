"""What stands beside the model alone: our explainers, a naive loop and iXAI; and the turns that they take."""

from __future__ import annotations

import gc
import importlib
import math
import random
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np

from attributary_explainers import Explainers, GeometricReservoir, IncrementalPFI, IncrementalSAGE
from benchmarks.speed.subjects import Observation


@dataclass(frozen=True)
class Kind:
    """Explainers of one model.

    Parameters
    ----------
    pfi, sage
        Draws per feature of iPFI and per coalition of iSAGE; 0: there is none.
    copies
        So many of each, with other seeds.
    reservoir
        Observations stored, in the geometric reservoir; None: ours has its default, the others 100.
    """

    name: str
    pfi: int = 0
    sage: int = 0
    copies: int = 1
    reservoir: int | None = None

    @property
    def stored(self) -> int:
        """Observations that those beside ours store."""
        return 100 if self.reservoir is None else self.reservoir

    @property
    def draws(self) -> int:
        """The larger number of draws."""
        return max(self.pfi, self.sage)

    def rows(self, d: int) -> int:
        """Rows that replace a feature at least, for an observation of d features: a model evaluates each."""
        return self.copies * (self.pfi * d + self.sage * (d - 1))


KINDS = (
    Kind("iPFI, M 1", pfi=1),
    Kind("iPFI, M 10", pfi=10),
    Kind("iSAGE, m 5", sage=5),
    Kind("iSAGE, m 10", sage=10),
    Kind("both, 10", pfi=10, sage=10),
)


class Naive:
    """Rows with replaced features, as many as explainers need, and the model's prediction for each; no statistics."""

    def __init__(self, predict: Callable[[dict[str, Any]], Any], kind: Kind, stored: Sequence[Observation]) -> None:
        self._predict, self._kind = predict, kind
        self._stored = [x for x, _ in stored]
        self._rng = random.Random(1)
        self.n_rows = 0

    def step(self, x: dict[str, Any], y: Any) -> None:
        """Evaluate the rows of one observation."""
        predict, stored, kind, rng = self._predict, self._stored, self._kind, self._rng
        n = len(stored)
        for _ in range(kind.copies):
            for feature in x:
                for _ in range(kind.pfi):
                    predict({**x, feature: stored[rng.randrange(n)][feature]})
            if kind.sage:
                order = rng.sample(list(x), len(x))
                kept: dict[str, Any] = {}
                for feature in order[:-1]:
                    kept[feature] = x[feature]
                    for _ in range(kind.sage):
                        predict({**stored[rng.randrange(n)], **kept})
            stored[rng.randrange(n)] = x
        self.n_rows += kind.rows(len(x))


ALPHA = 0.001


class Ours:
    """Explainers of one model, which make the prediction themselves."""

    def __init__(self, model: Any, loss: str, kind: Kind, removal: str = "interventional") -> None:
        self.explainers: dict[str, IncrementalPFI | IncrementalSAGE] = {}
        for copy in range(kind.copies):
            for make, n in ((IncrementalPFI, kind.pfi), (IncrementalSAGE, kind.sage)):
                if n:
                    self.explainers[f"{make.name}-{copy}"] = make(
                        model,
                        loss=loss,
                        n_samples=n,
                        alpha=ALPHA,
                        removal=removal,
                        reservoir=None if kind.reservoir is None else GeometricReservoir(kind.reservoir),
                        seed=1 + copy,
                    )
        self._together = Explainers(model, self.explainers)

    def step(self, x: dict[str, Any], y: Any) -> Any:
        """Explain one observation; the prediction for it."""
        y_pred = self._together.predict(x)
        self._together.explain(y)
        return y_pred

    def skip(self, x: dict[str, Any]) -> None:
        """Store one observation without explaining it."""
        self._together.skip(x)

    @property
    def importance(self) -> list[dict[str, float]]:
        """Of each explainer."""
        return [dict(explainer.importance) for explainer in self.explainers.values()]


Loss = Callable[[Any, dict[Any, float]], float]


def installed() -> str | None:
    """Its version; None where it is not installed."""
    try:
        importlib.import_module("ixai.explainer")
    except ImportError:
        return None
    try:
        return version("ixai")
    except PackageNotFoundError:  # unpacked, not installed
        return str(importlib.import_module("ixai").__version__)


def cross_entropy(y: Any, prediction: dict[Any, float]) -> float:
    """As ours: probabilities are clipped at 1e-15."""
    return -math.log(max(prediction.get(y, 0.0), 1e-15))


def squared(y: Any, prediction: dict[Any, float]) -> float:
    """iXAI names a number `output`."""
    return float((y - prediction["output"]) ** 2)


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "squared": squared}


class Reference:
    """iXAI's explainers of a model; the reservoirs are filled with `stored`.

    Parameters
    ----------
    static
        Plain means, and what is stored remains: for a model and a stream that do not change.
    categories
        Removal is observational, by a tree for each feature, and these are categories; None: it is interventional.
    """

    def __init__(
        self,
        predict: Callable[[dict[str, Any]], Any],
        loss: str,
        kind: Kind,
        stored: Sequence[Observation],
        *,
        static: bool = False,
        categories: Sequence[str] | None = None,
        seed: int = 1,
    ) -> None:
        explainer = importlib.import_module("ixai.explainer")
        random.seed(seed)
        np.random.seed(seed)
        self._updates_storage = not static
        self.explainers: list[Any] = []
        for make, n in [(explainer.IncrementalPFI, kind.pfi), (explainer.IncrementalSage, kind.sage)] * kind.copies:
            if not n:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it says that torch is not there
                made = make(
                    model_function=predict,
                    loss_function=LOSSES[loss],
                    feature_names=list(stored[0][0]),
                    **_removal(predict, kind.stored, list(stored[0][0]), categories),
                    n_inner_samples=n,
                    smoothing_alpha=ALPHA,
                    dynamic_setting=not static,
                )
            for x, y in stored:
                made.update_storage(x, y)
            made.seen_samples = len(stored)  # without an observation seen, the first is not explained
            self.explainers.append(made)

    def step(self, x: dict[str, Any], y: Any) -> None:
        """Explain one observation."""
        for explainer in self.explainers:
            explainer.explain_one(x, y, update_storage=self._updates_storage)

    @property
    def importance(self) -> list[dict[str, float]]:
        """Of each explainer."""
        return [{str(name): float(value) for name, value in one.importance_values.items()} for one in self.explainers]


def _removal(
    predict: Callable[[dict[str, Any]], Any], size: int, names: list[str], categories: Sequence[str] | None
) -> dict[str, Any]:
    """What is stored, and for observational removal who imputes from it."""
    storage = importlib.import_module("ixai.storage")
    if categories is None:
        return {"storage": storage.GeometricReservoirStorage(size=size)}
    trees = storage.TreeStorage(
        cat_feature_names=[name for name in names if name in categories],
        num_feature_names=[name for name in names if name not in categories],
    )
    imputer = importlib.import_module("ixai.imputer").TreeImputer(predict, storage_object=trees, use_storage=True)
    return {"storage": trees, "imputer": imputer}


Key = TypeVar("Key")


class Loop:
    """A model with something beside it.

    Parameters
    ----------
    step
        Called before the model learns; what it returns is kept as the prediction, None where it has none.
    """

    def __init__(self, model: Any, step: Callable[[dict[str, Any], Any], Any]) -> None:
        self.model, self.step = model, step
        self.predictions: list[Any] = []

    def run(self, block: Sequence[Observation]) -> float:
        """Processor seconds for a block."""
        step, learn, keep = self.step, self.model.learn_one, self.predictions.append
        began = time.process_time()
        for x, y in block:
            keep(step(x, y))
            learn(x, y)
        return time.process_time() - began


def take_turns(
    loops: Mapping[Key, Loop], data: Sequence[Observation], block: int, tick: Callable[[], None]
) -> dict[Key, list[float]]:
    """By loop, processor seconds of each block."""
    times: dict[Key, list[float]] = {key: [] for key in loops}
    keys = list(loops)
    with _collector_apart():
        for number, start in enumerate(range(0, len(data), block)):
            turn = number % len(keys)
            for key in keys[turn:] + keys[:turn]:  # whoever is first finds a cold cache
                times[key].append(loops[key].run(data[start : start + block]))
            tick()
    return times


@contextmanager
def _collector_apart() -> Iterator[None]:
    # Else each loop would pay for walking the models of all others.
    is_set_aside = gc.get_freeze_count() > 0  # what a test has set aside stays so
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not is_set_aside:
            gc.unfreeze()


@dataclass(frozen=True)
class Spread:
    """A median over blocks, with the quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value or more."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


def ratio(times: Sequence[float], base: Sequence[float]) -> Spread:
    """How many times as long as `base`, which had the same blocks."""
    return Spread.of([one / other for one, other in zip(times, base, strict=True)])
