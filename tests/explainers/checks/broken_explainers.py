"""Explainers that each break one promise, for the check that has to notice; and the least one that keeps them all."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np
from river import compose, linear_model, preprocessing
from river.datasets import synth

from attributary_explainers import IncrementalExplainer, as_loss, model_function
from attributary_explainers.checks.subject import ordinary_stream
from attributary_explainers.incremental.base import check_snapshot
from attributary_explainers.predictions import is_usable
from attributary_explainers.removal.imputer import replace

SHORT = ordinary_stream(60)


def regression():
    model = compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())
    return {"model": model, "stream": list(synth.Friedman(seed=1).take(60))}


class Swapping(IncrementalExplainer):
    """The least that passes: how the loss grows where a feature is swapped with one of the last five observations."""

    name = "swapping"
    rate = 0.1
    memory = 50

    def __init__(self, model: Any, *, loss: str = "brier", seed: int | None = None) -> None:
        self.model, self.loss = model, as_loss(loss)
        self._rng = np.random.default_rng(seed)
        self._function = model_function(model, self.loss.output)
        self._rows: list[dict[Any, Any]] = []
        self._mean: dict[Any, float] = {}
        self._variance: dict[Any, float] = {}
        self._last_seen: dict[Any, int] = {}
        self._n = self._n_skipped = 0

    n_observations = property(lambda self: self._n)
    n_skipped = property(lambda self: self._n_skipped)
    importance = property(lambda self: dict(self._mean))
    std_error = property(
        lambda self: {k: math.sqrt(v * self.rate / (2 - self.rate)) for k, v in self._variance.items()}
    )

    def explain_one(self, x, y=None, *, y_pred=None):
        try:
            increments = self.increments(x, y, self._function(x) if y_pred is None else y_pred)
        except Exception:  # noqa: BLE001 - the model is the user's code
            increments = None
        if increments is None or not all(map(math.isfinite, increments.values())):
            self._n_skipped += 1
        else:
            self.take_in(increments)
        self.store(x)
        self.after(x, y)
        return self.importance

    def after(self, x, y):
        """What a broken explainer does in the end."""

    def increments(self, x, y, y_pred):
        if not x or not self._rows or not self.usable(y_pred):
            return None
        drawn = [self._rows[int(self._rng.integers(len(self._rows)))] for _ in x]
        predictions = [self._function(replace(x, (name,), row)) for name, row in zip(x, drawn, strict=True)]
        if not all(map(self.usable, predictions)):
            return None
        return {name: self.loss(y, p) - self.loss(y, y_pred) for name, p in zip(x, predictions, strict=True)}

    def usable(self, prediction):
        return is_usable(prediction)

    def take_in(self, increments):
        self._n += 1
        for name, value in increments.items():
            difference = value - self._mean.get(name, 0.0)
            self._mean[name] = self._mean.get(name, 0.0) + self.rate * difference
            self._variance[name] = (1 - self.rate) * (self._variance.get(name, 0.0) + self.rate * difference**2)
            self._last_seen[name] = self._n
        for name in [name for name, n in self._last_seen.items() if self._n - n > self.memory]:
            del self._mean[name], self._variance[name], self._last_seen[name]

    def store(self, x):
        self._rows = [*self._rows[-4:], dict(x)]

    @property
    def parameters(self):
        return {"loss": self.loss.name}

    def _state(self):
        return {
            "rows": copy.deepcopy(self._rows),
            "moments": [dict(self._mean), dict(self._variance), dict(self._last_seen)],
            "counts": [self._n, self._n_skipped],
            "generator": self._rng.bit_generator.state,
        }

    def _restore(self, state):
        self._rows = copy.deepcopy(state["rows"])
        self._mean, self._variance, self._last_seen = map(dict, state["moments"])
        self._n, self._n_skipped = state["counts"]
        self._rng.bit_generator.state = state["generator"]

    @classmethod
    def _from_parameters(cls, parameters, model, loss):
        return cls(model, loss=parameters["loss"])


BREAKS: dict[str, tuple[type[Swapping], set[str], dict[str, Any]]] = {}


def breaks(*checks, **options):
    """Register an explainer that fails these checks, and no other."""

    def register(cls):
        BREAKS[cls.__name__] = (cls, set(checks), {"stream": SHORT, **options})
        return cls

    return register


@breaks("is_made")
class WithoutAName(Swapping):
    name = ""


@breaks("before_any_data")
class ReadsTheNewest(Swapping):
    newest = property(lambda self: str(self._rows[-1]))


@breaks("input_unchanged")
class WritesIntoTheObservation(Swapping):
    def after(self, x, y):
        x["explained"] = True


@breaks("input_not_kept")
class KeepsTheObservation(Swapping):
    def store(self, x):
        self._rows = [*self._rows[-4:], x]


@breaks("results_not_shared")
class ReturnsItsOwnDict(Swapping):
    def explain_one(self, x, y=None, *, y_pred=None):
        super().explain_one(x, y, y_pred=y_pred)
        return self._mean


@breaks("features_come_and_go")
class NeedsTheFeaturesOfTheFirst(Swapping):
    def after(self, x, y):
        self.first = getattr(self, "first", None) or list(x)
        if x and sum(name not in x for name in self.first) > 1:
            raise KeyError(self.first)


@breaks("empty_observations")
class NeedsAFeature(Swapping):
    def after(self, x, y):
        next(iter(x))


@breaks("feature_order", stream=ordinary_stream())
class ReadsByPosition(Swapping):
    rate = 0.003  # standard errors that are small beside the importance of a feature

    def increments(self, x, y, y_pred):
        found = super().increments(x, y, y_pred)
        return None if found is None else dict(zip(sorted(found, key=str), found.values(), strict=True))


@breaks("types_change")
class HashesValues(Swapping):
    def after(self, x, y):
        hash(tuple(x.values()))


@breaks("missing_values")
class RaisesWhereTwoAreMissing(Swapping):
    def after(self, x, y):
        if sum(value is None for value in x.values()) > 1:
            raise ValueError("two are missing")


@breaks("names_of_any_type")
class SortsNames(Swapping):
    def after(self, x, y):
        sorted(x)


@breaks("labels_of_any_type")
class AveragesLabels(Swapping):
    def increments(self, x, y, y_pred):
        found = super().increments(x, y, y_pred)
        return {k: v + y for k, v in found.items()} if found and type(y) is int else found


@breaks("model_unchanged")
class LetsTheModelLearn(Swapping):
    def after(self, x, y):
        if self._n == 50:
            self.model.learn_one(dict(x), y)


@breaks("model_not_learnt")
class GivesUpOnAModelThatIsSlowToLearn(Swapping):
    def explain_one(self, x, y=None, *, y_pred=None):
        if self._n == 0 and self._n_skipped > 10:
            self._n_skipped += 1
            return {}
        return super().explain_one(x, y, y_pred=y_pred)


@breaks("model_predicts_nothing")
class NeedsAPredictionOnceThereWasOne(Swapping):
    def after(self, x, y):
        try:
            silent = self._function(x) is None
        except ZeroDivisionError:
            silent = False
        if self._n and silent:
            raise ValueError("no prediction any more")


@breaks("model_predicts_nan")
class TakesNaN(Swapping):
    def usable(self, prediction):
        if prediction is not None and any(map(math.isnan, prediction.values())):
            self._mean = dict.fromkeys(self._mean, math.nan)
        return is_usable(prediction)


@breaks("model_predicts_infinity")
class TakesInfinity(Swapping):
    def usable(self, prediction):
        if prediction is not None and any(map(math.isinf, prediction.values())):
            self._mean = dict.fromkeys(self._mean, math.inf)
        return is_usable(prediction)


@breaks("model_raises")
class LetsExceptionsThrough(Swapping):
    def explain_one(self, x, y=None, *, y_pred=None):
        self._function(x)
        return super().explain_one(x, y, y_pred=y_pred)


@breaks("prediction_given")
class TakesThePredictionForTheLabel(Swapping):
    def explain_one(self, x, y=None, *, y_pred=None):
        return super().explain_one(x, y, y_pred={y: 1.0} if y_pred else None)


@breaks("targets_not_finite", **regression())
class KeepsAnInfiniteTarget(Swapping):
    def __init__(self, model, *, loss="squared", seed=None):
        super().__init__(model, loss=loss, seed=seed)

    def after(self, x, y):
        if math.isinf(y):
            self._mean = dict.fromkeys(self._mean, y)


# Two runs that differ by chance alone differ wherever runs are compared, unless the generator is restored first.
@breaks(
    "runs_repeat",
    "input_not_kept",
    "results_not_shared",
    "labels_of_any_type",
    "prediction_given",
    "global_random_state",
    "snapshot_shares_nothing",
)
class StartsFromAnything(Swapping):
    def __init__(self, model, *, loss="brier", seed=None):
        super().__init__(model, loss=loss, seed=None)


@breaks("seeds_differ")
class IgnoresTheSeed(Swapping):
    def __init__(self, model, *, loss="brier", seed=None):
        super().__init__(model, loss=loss, seed=0)


@breaks("global_random_state")
class DrawsFromTheProcess(Swapping):
    def after(self, x, y):
        random.random()


@breaks("global_random_state")
class ReadsTheStateOfTheProcess(Swapping):
    def store(self, x):
        keep = int(np.random.get_state()[1][0]) % 2
        self._rows = [*self._rows[-4 - keep :], dict(x)]


@breaks("snapshot_is_plain")
class KeepsNumpyNumbers(Swapping):
    def _state(self):
        state = super()._state()
        return {**state, "counts": list(np.array(state["counts"]))}

    def _restore(self, state):
        super()._restore({**state, "counts": [int(n) for n in state["counts"]]})


@breaks("snapshot_continues")
class ForgetsItsGenerator(Swapping):
    @classmethod
    def from_snapshot(cls, snapshot, model, *, loss=None):
        explainer = super().from_snapshot(snapshot, model, loss=loss)
        explainer._rng = np.random.default_rng(0)
        return explainer


@breaks("restore_continues")
class KeepsWhatItSawBefore(Swapping):
    def restore(self, snapshot):
        before = self._n_skipped
        super().restore(snapshot)
        self._n_skipped += before


@breaks("snapshot_shares_nothing")
class HandsOutItsRows(Swapping):
    def _state(self):
        return {**super()._state(), "rows": self._rows}

    def store(self, x):
        self._rows.append(dict(x))
        del self._rows[:-5]


@breaks("other_snapshots_refused")
class TakesAnySnapshot(Swapping):
    @classmethod
    def from_snapshot(cls, snapshot, model, *, loss=None):
        explainer = cls._from_parameters(snapshot["parameters"], model, loss)
        explainer._restore(snapshot)
        return explainer


@breaks("other_parameters_refused")
class TakesAnyParameters(Swapping):
    def restore(self, snapshot):
        check_snapshot(snapshot, self.name)
        self._restore(snapshot)


@breaks("parameters_are_plain")
class HandsOutItsParameters(Swapping):
    def __init__(self, model, *, loss="brier", seed=None):
        super().__init__(model, loss=loss, seed=seed)
        self.own = {"loss": self.loss.name}

    @property
    def parameters(self):
        return self.own

    def snapshot(self):
        return {**super().snapshot(), "parameters": dict(self.own)}


@breaks("counts_add_up")
class ExplainsEachThird(Swapping):
    memory = 15  # of those that it explains

    def increments(self, x, y, y_pred):
        return None if (self._n + self._n_skipped) % 3 else super().increments(x, y, y_pred)


@breaks("memory_is_bounded")
class LogsOrdinaryObservations(Swapping):
    def after(self, x, y):
        self.log = [*getattr(self, "log", []), *([1.0 * self._n] if len(x) == 4 else [])]


@breaks("memory_is_bounded_by_names")
class NeverForgets(Swapping):
    memory = 10**9
