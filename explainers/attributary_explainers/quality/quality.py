"""A model's quality by the usual metrics, now and over a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from ..errors import InvalidParameterError
from ..notebook.cards import Card, figure
from ..notebook.described import Described
from ..predictions import check_probabilities
from ..snapshots import attributes, set_attributes
from ..typing import Prediction, Snapshot
from ..validation import check_integer, check_number
from .names import known_metric, reads_of
from .tally import Tally

_STATE = ("n_observations", "_now", "_filling", "_reference")


class Quality(Described):
    """River's metrics with exponential forgetting, and over a reference.

    An observation that is k observations old has the weight (1 - alpha)^k, as in `SmoothedMean`. Each metric is that
    of River's class of the same name, fed with these weights. For an honest value, predict before the model learns
    (test-then-learn, Gama, Sebastião and Rodrigues, "On evaluating stream learning algorithms", 2013).

    Of two labels the greater one counts as positive (True of False and True, "yes" of "no" and "yes"), as in
    scikit-learn, unless `positive` names it: of "fraud" and "ok" it would be "ok". Metrics of two classes (f1,
    precision, recall, jaccard, mcc, roc_auc, pr_auc) are None where another number of labels has weight; their macro,
    micro and weighted forms are of any number. `roc_auc` has a threshold between all bins of the scores that have been
    seen (see `ClassCounts`), where River's default has ten. `pr_auc` is the average precision over the same bins, as in
    scikit-learn: River's own is of an unweighted window of rows.

    Parameters
    ----------
    metrics
        Names of `QUALITY_NAMES`, or aliases; all of classes or all of numbers. `precision_at_1%` and `recall_at_1%` are
        of the decision that the one per cent with the highest scores is positive; `precision_at_0.9` and
        `recall_at_0.9` of the one that is positive from this probability on.
    alpha
        Valid range (0, 1]: 2 / (N + 1) corresponds to a window of N observations.
    reference_after
        Valid range >= 0: observations that pass before the reference begins. The reference is then of the next
        2 / alpha observations, all with the same weight: as many as the smoothed value is worth. The default is 0; a
        worker lets a model that learns have 2 / alpha observations first.
    positive
        The class that counts as positive; None is the greater one of the two.

    Raises
    ------
    InvalidParameterError
        A name is unknown, metrics of classes and of numbers are mixed, or a number is out of its range.

    Examples
    --------
    >>> quality = Quality(["accuracy", "f1"], alpha=0.5)
    >>> for y, label in [(1, 1), (0, 1), (1, 1), (1, 0)]:
    ...     quality.update(y, {label: 1.0})
    >>> round(quality.value["accuracy"], 3), quality.reference["accuracy"]  # weights 1, 2, 4, 8; the first four alike
    (0.333, 0.5)
    """

    def __init__(
        self, metrics: Sequence[str], *, alpha: float = 0.001, reference_after: int = 0, positive: Any = None
    ) -> None:
        if isinstance(metrics, str):
            raise InvalidParameterError("metrics", "a list of names", metrics)
        self.metrics = tuple(dict.fromkeys(map(known_metric, metrics)))
        self._reads_probabilities = any("probabilit" in reads_of(name) for name in self.metrics)
        self.alpha = check_number("alpha", alpha, above=0.0, maximum=1.0)
        self.reference_after = check_integer("reference_after", reference_after, minimum=0)
        self.positive = positive
        self.reference_size = math.ceil(2.0 / self.alpha)
        self.reference_ends = self.reference_after + self.reference_size
        self.n_observations = 0
        self._now = Tally(self.metrics, 1.0 / (1.0 - self.alpha) if self.alpha < 1.0 else math.inf, positive)
        self._filling: Tally | None = Tally(self.metrics, 1.0, self.positive)
        self._reference: dict[str, float | None] = dict.fromkeys(self.metrics)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters; values under other parameters are not comparable."""
        given = {"metrics": list(self.metrics), "alpha": self.alpha, "reference_after": self.reference_after}
        return given if self.positive is None else {**given, "positive": self.positive}

    @property
    def value(self) -> dict[str, float | None]:
        """Metric by name, with forgetting; None while empty or undefined."""
        return self._now.value

    @property
    def reference(self) -> dict[str, float | None]:
        """Metric by name over the reference; None while partial or undefined."""
        return dict(self._reference)

    def update(self, y: Any, prediction: Prediction) -> None:
        """Take in an observation.

        Parameters
        ----------
        y
            The label, or the target: a number.
        prediction
            Label to probability (`{label: 1.0}` for a label alone), or a number. It is usable (`is_usable`). Numbers
            beyond 1e100 are left out.

        Raises
        ------
        ModelError
            The prediction, or the target, is of another kind than the metrics.
        ProbabilityError
            A metric reads probabilities, and they are below 0, or do not sum to 1.
        """
        if self._reads_probabilities:
            check_probabilities(prediction)
        self._now.update(y, prediction)
        self.n_observations += 1
        if self._filling is None or self.n_observations <= self.reference_after:
            return
        self._filling.update(y, prediction)
        if self.n_observations >= self.reference_ends:
            self._reference, self._filling = self._filling.value, None

    def _card(self) -> Card:
        reference = self.reference
        rows = [[name, figure(value), figure(reference[name])] for name, value in self.value.items()]
        return Card(repr(self), facts=self._facts(), columns=("metric", "now", "reference"), rows=rows)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"parameters": self.parameters, "state": attributes(self, _STATE)}

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the state of a snapshot of a quality with equal parameters."""
        if snapshot["parameters"] != self.parameters:
            raise InvalidParameterError("snapshot", f"of a quality with {self.parameters}", snapshot["parameters"])
        set_attributes(self, snapshot["state"])

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the quality that the snapshot was taken of."""
        quality = cls(**snapshot["parameters"])
        quality.restore(snapshot)
        return quality
