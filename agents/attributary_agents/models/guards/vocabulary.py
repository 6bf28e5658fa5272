"""Bounds on the labels and categories that a model meets.

Each new one makes the model grow, and a producer can send ever new ones. A label beyond the bound is refused; a
category beyond it becomes `OTHER`. Half of the bound is given on sight while few observations are known, and of labels
the first ten at any time: a rare class may begin late. What comes later is taken once it comes again soon. So labels or
categories that are sent once do not fill the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from attributary_topics import InvalidRecordError

from ...config.models import ModelConfig

OTHER = "__other__"
"""The category that stands for all beyond the bound."""

EARLY = 1000
"""Values during which half of the bound is given on sight."""

FEW = 10
"""Labels that are given on sight at any time."""

_LONGEST_KEY = 24
_WIDEST_INTEGER = 64


class Known:
    """The distinct values that have been taken, `most` of them at most.

    Parameters
    ----------
    most
        Valid range >= 1.
    n, taken, seen
        What `snapshot` gave.
    few
        Values that are taken on sight at any time, up to half of the bound.
    """

    def __init__(
        self, most: int, n: int = 0, taken: Iterable[Any] = (), seen: Iterable[Any] = (), *, few: int = 0
    ) -> None:
        self.most = most
        self._few = few
        self._n = n
        self.taken: dict[Any, None] = dict.fromkeys(taken)
        self._seen: dict[Any, None] = dict.fromkeys(seen)

    def takes(self, value: Any) -> bool:
        """Return whether the value is known, or becomes so now."""
        taken, seen = self.taken, self._seen
        self._n += 1
        if value in taken:
            return True
        key = key_of(value)
        if key in taken:
            return True
        n = len(taken)
        if n >= self.most:
            seen.clear()
            return False
        if (2 * n < self.most and (n < self._few or self._n <= EARLY)) or key in seen:
            taken[key] = None
            seen.pop(key, None)
            return True
        seen[key] = None
        if len(seen) > self.most:
            del seen[next(iter(seen))]
        return False

    def snapshot(self) -> list[Any]:
        """Return plain data to restore from."""
        return [self._n, list(self.taken), list(self._seen)]


class Vocabulary:
    """Labels, and categories by feature, that a model has met.

    Of the features that are not declared, `max_features` are remembered, and the oldest is forgotten first.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._max_labels, self._max_categories = config.max_labels, config.max_categories
        self._most_features = max(config.max_features, len(config.features or ()))
        self._labels = Known(config.max_labels or 1, few=FEW)
        self._categories: dict[str, Known] = {}

    def check_label(self, y: Any) -> None:
        """Check that a classifier may learn this label, and remember it.

        Raises
        ------
        InvalidRecordError
            `too_many_labels`.
        """
        if self._max_labels is None or self._labels.takes(y):
            return
        n = len(self._labels.taken)
        more = "" if n == self._max_labels else ", or one that comes again soon"
        expected = f"one of the {n} labels known so far{more}: at most {self._max_labels} are learnt (max_labels)"
        raise InvalidRecordError("too_many_labels", "y", expected, y)

    def read(self, x: dict[str, Any]) -> dict[str, Any]:
        """Replace each text beyond the bound by `OTHER`; return the features.

        That is `x` itself where nothing is replaced.
        """
        if self._max_categories is None:
            return x
        others = [name for name, value in x.items() if type(value) is str and not self._takes(name, value)]
        return {**x, **dict.fromkeys(others, OTHER)} if others else x

    def _takes(self, name: str, value: str) -> bool:
        known = self._categories.get(name)
        if known is None:
            if len(self._categories) >= self._most_features:
                del self._categories[next(iter(self._categories))]
            assert self._max_categories is not None
            known = self._categories[name] = Known(self._max_categories)
        return known.takes(value) or value == OTHER

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {
            "labels": self._labels.snapshot(),
            "categories": {name: known.snapshot() for name, known in self._categories.items()},
        }

    @classmethod
    def from_snapshot(cls, config: ModelConfig, snapshot: dict[str, Any] | None) -> Vocabulary:
        """Restore the vocabulary from a snapshot, bounded as configured now.

        None: an empty vocabulary.
        """
        vocabulary = cls(config)
        if snapshot is not None:
            vocabulary._labels = Known(config.max_labels or 1, *snapshot["labels"], few=FEW)
            most = config.max_categories or 1
            vocabulary._categories = {name: Known(most, *known) for name, known in snapshot["categories"].items()}
        return vocabulary


def key_of(value: Any) -> Any:
    """Return the key of a label or category: itself, or a hash if it is long.

    The hash has 12 bytes.
    """
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_KEY else _hash(value)
    if isinstance(value, int) and value.bit_length() > _WIDEST_INTEGER:
        return _hash(hex(value))
    return value


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def n_replaced(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Return how many values `Vocabulary.read` replaced."""
    return 0 if before is after else sum(after[name] is not value for name, value in before.items())
