"""Comparison of a hold-out with its model and with later observations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from ..errors import HoldoutWarning, InvalidParameterError, warn_caller
from ..missing import is_missing
from ..models.known import features_met_by
from ..ordering import sort_key
from ..snapshots import Stored
from ..typing import Features
from ..wording import show_names, show_number

FEWEST = 10
"""Rows on each side from which on a difference says something."""
_ERRORS = 4.0
_FIRST, _LAST = 256, 4096
"""Labels at which the shares of classes are compared: the first time, twice as many each time, and the last time."""


def check_features(model: Any, names: Collection[Any]) -> None:
    """Refuse a hold-out that has none of the features its model knows.

    InvalidParameterError: the model names features, or has learnt some, and no row has one of them.
    """
    known = features_met_by(model)
    if known and names and not {*map(str, known)} & {*map(str, names)}:
        raise InvalidParameterError(
            "holdout", f"rows with features of the model, which knows {_listed(known)}", list(names)[:8]
        )


def names_apart(holdout: Iterable[Any], names: Iterable[Any]) -> Iterator[str]:
    """Yield which of these features a hold-out lacks, and which it alone has."""
    holdout, names = {*holdout}, {*names}
    for said, others in (("lacks", names - holdout), ("alone has", holdout - names)):
        if others:
            yield f"the hold-out {said} {_listed(others)}"


def labels_apart(holdout: Mapping[Any, int], labels: Mapping[Any, int], rows: str) -> str | None:
    """Return which label is more or less frequent than in a hold-out.

    By more than four standard errors; None where none is. `rows` says whose labels these are.
    """
    n, m = sum(holdout.values()), sum(labels.values())
    for label in sorted(holdout, key=sort_key):
        before, after = holdout[label] / max(n, 1), labels.get(label, 0) / max(m, 1)
        if are_apart((before, before * (1.0 - before), n), (after, after * (1.0 - after), m)):
            return (
                f"label {label!r} is {_percent(before)} of the hold-out, and {_percent(after)} of {rows}: {_RESAMPLED}"
            )
    return None


_RESAMPLED = "if its classes were resampled, draw it anew, or this is told as a shift of the level"


def are_apart(before: tuple[float, float, int], after: tuple[float, float, int]) -> bool:
    """Return whether two means differ by more than four standard errors.

    Each has its mean, its variance and the number of rows. With fewer than ten rows nothing differs.
    """
    if min(before[2], after[2]) < FEWEST:
        return False
    error = math.sqrt(sum((variance + 1.0 / n**2) / n for _, variance, n in (before, after)))
    return abs(before[0] - after[0]) > _ERRORS * error


class Beside(Stored):
    """Compares the first rows of a stream with the hold-out, and warns once.

    Parameters
    ----------
    names
        Features of the hold-out; None: they are compared already.
    labels
        Number of rows of each label; None for targets that are numbers.
    """

    def __init__(self, names: Iterable[Any] | None, labels: Mapping[Any, int] | None) -> None:
        self.names = None if names is None else dict.fromkeys(names)
        self.labels = None if labels is None else dict(labels)
        self.seen: Counter[Any] = Counter()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to compare."""
        return self.names is None and self.labels is None

    @classmethod
    def of(cls, rows: Sequence[tuple[Features, Any]], *, is_number: bool) -> Self:
        """Return a comparison with these rows."""
        names = dict.fromkeys(name for x, _ in rows for name in x)
        return cls(names, None if is_number else Counter(y for _, y in rows))

    def update(self, x: Features | None, y: Any) -> None:
        """Take in an observation with its label; HoldoutWarning if it differs.

        An optional feature may be missing in the first observation, so what the hold-out alone has is said only beside
        what it lacks.
        """
        if x is not None and self.names is not None:
            said = list(names_apart(self.names, x))
            if x.keys() - self.names:
                _warn(" and ".join(said) + ": name its columns as the observations' features are, or what is told of "
                      "this model is about other features")  # fmt: skip
            self.names = None
        if self.labels is None or is_missing(y):
            return
        self.seen[y] += 1
        n = self.seen.total()
        if n < _FIRST or n & (n - 1):
            return
        rows = f"the first {n} labels"
        told = labels_apart(self.labels, self.seen, rows)
        if told is not None:
            _warn(told, f"a label is more frequent in the hold-out, or less, than among {rows}: {_RESAMPLED}")
        if told is not None or n >= _LAST:
            self.labels = None


def _warn(text: str, without_values: str = "") -> None:
    warning = HoldoutWarning(text)
    warning.without_values = without_values or text
    warn_caller(warning)


def _listed(names: Iterable[Any]) -> str:
    return show_names([repr(name) for name in sorted(names, key=sort_key)])


def _percent(share: float) -> str:
    return f"{show_number(100.0 * share)} %"
