"""Baselines computed afresh: interval PFI and sliding-window SAGE."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from ..errors import InvalidParameterError, ModelError, NoPredictionError
from ..incremental.base import IncrementalExplainer, snapshot_loss
from ..losses.losses import AnyLoss
from ..models.function import resolve_loss
from ..notebook.described import suggesting
from ..notebook.rows import as_row, check_groups_there
from ..ranking import BAND
from ..typing import Features, Groups, Importance, Prediction, Snapshot
from ..validation import check_groups, check_integer, generator_of
from .sampled import pfi_of, sage_of
from .tables import BatchImportance, DataTable


class _WindowExplainer(IncrementalExplainer):
    """A window of copied observations that are explained together.

    A computation that fails (a missing prediction, a loss that is not finite, a model that raises) leaves the last
    importance as it is; the observations that it would have explained are counted in `n_skipped`.
    """

    def __init__(self, model: Any, loss: Any, groups: Groups | None, seed: int | None) -> None:
        self.model, self.loss, self.groups = model, resolve_loss(model, loss), check_groups(groups)
        self.importance: Importance = {}
        self.std_error: Importance = {}
        self._n = self._n_skipped = self._n_waiting = 0
        self._rng = generator_of(seed)
        self._data: list[tuple[Features, Any]] = []

    @property
    def n_observations(self) -> int:
        """Observations taken in, except any left unexplained by a failure."""
        return self._n - self._n_skipped

    @property
    def n_skipped(self) -> int:
        """Observations that a failed computation would have explained."""
        return self._n_skipped

    def _take(self, x: Features, y: Any) -> None:
        row = dict(as_row(x))
        if not self._n:
            check_groups_there(self.groups, row)
        self._data.append((row, y))
        self._n += 1
        self._n_waiting += 1

    def _compute(self) -> BatchImportance | None:
        batch: BatchImportance | None
        try:
            batch = self._batch(int(self._rng.integers(2**63)))
        except NoPredictionError:
            batch = None
        except InvalidParameterError as error:
            if error.parameter != "data":
                raise
            batch = None
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - the model is the user's code: what it raises is about these rows
            self._model_failed(error)
            batch = None
        if batch is None:
            self._n_skipped += self._n_waiting
        else:
            self.importance, self.std_error = batch.importance, batch.std_error
        self._n_waiting = 0
        return batch

    @property
    def half_width(self) -> Importance:
        """Half-width of each 95 % interval: 1.96 standard errors."""
        return {name: BAND * error for name, error in self.std_error.items()}

    @abc.abstractmethod
    def _batch(self, seed: int) -> BatchImportance:
        """Explain the observations that are kept."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        return {"loss": self.loss.name, "groups": {group: list(features) for group, features in self.groups.items()}}

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any], model: Any, loss: Any) -> Self:
        return cls(model, **{**parameters, "loss": snapshot_loss(parameters["loss"], loss)})

    def _state(self) -> Snapshot:
        return {
            "importance": dict(self.importance),
            "std_error": dict(self.std_error),
            "counts": [self._n, self._n_skipped, self._n_waiting],
            "generator": self._rng.bit_generator.state,
            "data": [[dict(x), y] for x, y in self._data],
        }

    def _restore(self, state: Snapshot) -> None:
        self.importance, self.std_error = dict(state["importance"]), dict(state["std_error"])
        self._n, self._n_skipped, self._n_waiting = state["counts"]
        self._rng.bit_generator.state = state["generator"]
        self._data = [(dict(x), y) for x, y in state["data"]]


class IntervalPFI(_WindowExplainer):
    """Batch PFI on consecutive intervals: the baseline of the iPFI paper.

    Call `update(x, y)`, or `explain_one(x, y)` as with every explainer, once per observation, before the model learns
    it. The caller lets the model learn between the calls: an interval is explained with the model as it is at its last
    observation. One that cannot be explained (a missing prediction, a loss that is not finite) leaves the last
    importance and is counted in `n_skipped`. Memory: the interval's observations, copied.

    Parameters
    ----------
    model, loss, groups, n_permutations
        As for `batch_pfi`.
    interval
        Valid range >= 2; observations per interval. Larger is less noisy and later to notice change.
    seed
        Seed of the generator whose next integer below 2^63 is each interval's seed. `interval_pfi` has an example.
    """

    name = "interval_pfi"

    def __init__(
        self,
        model: Any,
        *,
        interval: int,
        loss: AnyLoss | None = None,
        n_permutations: int = 1,
        groups: Groups | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(model, loss, groups, seed)
        self.interval = check_integer("interval", interval, minimum=2)
        self.n_permutations = check_integer("n_permutations", n_permutations, minimum=1)

    def update(self, x: Features, y: Any = None) -> BatchImportance | None:
        """Take in an observation; return the importance if an interval ends."""
        self._take(x, y)
        if len(self._data) < self.interval:
            return None
        batch = self._compute()
        self._data = []
        return batch

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Take in an observation; return the last full interval's importance."""
        self.update(x, y)
        return dict(self.importance)

    def _batch(self, seed: int) -> BatchImportance:
        return pfi_of(DataTable(self.model, self._data, self.loss, self.groups), self.n_permutations, seed)

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        return {**super().parameters, "interval": self.interval, "n_permutations": self.n_permutations}


@suggesting
def interval_pfi(
    model: Any,
    stream: Iterable[tuple[Features, Any]],
    *,
    interval: int,
    loss: AnyLoss | None = None,
    n_permutations: int = 1,
    groups: Groups | None = None,
    seed: int | None = None,
) -> Iterator[tuple[int, BatchImportance]]:
    """Run `IntervalPFI`, whose parameters and errors these are, over a stream.

    Gives per complete interval the number of observations so far and the importance. The model learns where the caller
    lets it: in the loop over the results, or in the stream, which goes on once an observation is taken in, as here.

    Examples
    --------
    >>> from river import datasets, tree
    >>> model = tree.HoeffdingTreeClassifier(grace_period=50)
    >>> def test_then_train(stream):
    ...     for x, y in stream:
    ...         yield x, y
    ...         model.learn_one(x, y)
    >>> stream = test_then_train(datasets.synth.STAGGER(classification_function=2, seed=7).take(500))
    >>> intervals = interval_pfi(model, stream, interval=250, loss="cross_entropy", seed=7)
    >>> [(n, result.importance["size"] > 0.3) for n, result in intervals]
    [(250, True), (500, True)]
    """
    explainer = IntervalPFI(
        model, interval=interval, loss=loss, n_permutations=n_permutations, groups=groups, seed=seed
    )
    return ((n, result) for n, (x, y) in enumerate(stream, 1) if (result := explainer.update(x, y)) is not None)


class SlidingWindowSAGE(_WindowExplainer):
    """SW-SAGE: batch SAGE of the last `window` observations.

    Computed anew after every `stride` observations (iSAGE, Section 3.0.1). As published: `batch_sage` with
    `sampling="independent"`.

    Call `explain_one(x, y)` once per observation, before the model learns it. Until the window is full it has the
    observations so far, at least two; all are kept as copies. `importance` and `std_error` are those of the last
    computation. One that fails (a missing prediction, a loss that is not finite) leaves them, and its observations are
    counted in `n_skipped`.

    Parameters
    ----------
    model, loss, n_samples, groups
        As for `batch_sage`.
    window
        Valid range >= 2. Larger is less noisy, slower to follow change, and dearer in proportion.
    stride
        Valid range >= 1. Larger is cheaper, and the importance is older.
    seed
        Seed of the generator whose next integer below 2^63 is each computation's seed.

    Examples
    --------
    >>> sage = SlidingWindowSAGE(lambda x: x["a"], window=4, stride=2, loss="squared", seed=1)
    >>> [sage.explain_one({"a": a}, a) for a in (0, 2, 4)]  # the mean prediction 1 has the loss 1
    [{}, {'a': 1.0}, {'a': 1.0}]
    """

    name = "sliding_window_sage"

    def __init__(
        self,
        model: Any,
        *,
        window: int,
        stride: int,
        loss: AnyLoss | None = None,
        n_samples: int = 10,
        groups: Groups | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(model, loss, groups, seed)
        self.window = check_integer("window", window, minimum=2)
        self.stride = check_integer("stride", stride, minimum=1)
        self.n_samples = check_integer("n_samples", n_samples, minimum=1)

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Take in an observation; return the importance, empty at first."""
        self._take(x, y)
        del self._data[: -self.window]
        if self._n % self.stride == 0 and len(self._data) >= 2:
            self._compute()
        return dict(self.importance)

    def _batch(self, seed: int) -> BatchImportance:
        table = DataTable(self.model, self._data, self.loss, self.groups)
        return sage_of(table, self.n_samples, 1, seed, "independent")

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        own = {"window": self.window, "stride": self.stride, "n_samples": self.n_samples}
        return {**super().parameters, **own}
