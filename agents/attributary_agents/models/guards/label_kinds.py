"""Guard that keeps a model's labels to a single kind.

A single `"true"` among booleans makes a tree of River raise for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Number
from typing import Any, Self

import numpy as np

from attributary_topics import InvalidRecordError

from ...config.models import ANY_LABEL

_SHOWN = {"boolean": "a boolean", "number": "a number", "text": "a text"}

DECIDES = 2
"""Labels of a kind after which it is the model's: a single one may be the wrong one."""

MAJORITY = 10
"""Labels by which those of another kind have to outnumber those of the model's kind to take its place."""

MEMORY = 1000
"""Labels by which another kind is behind at most: a model whose labels do change kind is not useless for ever."""

_KINDS: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "text"}


def kind_of(label: Any) -> str:
    """Return the kind of a label: `boolean`, `number` or `text`."""
    known = _KINDS.get(type(label))
    if known is not None:
        return known
    if isinstance(label, np.bool_):
        return "boolean"
    return "number" if isinstance(label, Number) else "text"


class LabelKind:
    """Kind of a model's labels, as declared or as most of them were.

    `True` and 1 are one label in Python, and so for every model: as long as all labels are these, 0 and 1 are of one
    kind with the booleans. When another number comes, the more frequent of the two are right: a single 0 among booleans
    opens the door to no 5, and a single `true` among 0 and 1 closes it to no 2.

    Two labels of a kind decide. Until then a label of another kind means that the one before was wrong: `check` says
    that the model has to begin again. Afterwards the kind changes, in the same way, where those offered of another
    kind, refused or not, outnumber those of its own by `MAJORITY`. A kind is never further behind than `MEMORY`.

    So a minority never has its way, in whatever order it comes: a refused label of the right kind takes one of the
    wrong kind to have come before it, but for two times `MAJORITY`.
    """

    def __init__(self) -> None:
        self.kind: str | None = None
        """The kind of the labels; None before the first."""
        self.offered: dict[str, int] = {}
        """Labels of each kind, taken or refused; those of a version before as `MAJORITY` of them."""
        self.n_learnt = 0
        """Labels that the present version has learnt since it began."""
        self.is_binary = True
        """Whether all numbers among these have been 0 and 1."""
        self.n_zero_one = 0
        """Numbers 0 and 1 that have been offered while this was so."""

    def check(self, y: Any, declared: str | None, classes: Iterable[Any] = ()) -> bool:
        """Check the kind of an observation's label.

        Parameters
        ----------
        declared
            `label` of the model's configuration; None is that of most labels.
        classes
            The classes that a fitted model knows, which decide before the first label.

        Returns
        -------
        Whether the labels before were the wrong ones: the model has to forget them.

        Raises
        ------
        InvalidRecordError
            `wrong_type`.
        """
        kind = kind_of(y)
        if declared is not None:
            if declared not in (kind, ANY_LABEL) and not (declared == "boolean" and _is_binary(y)):
                raise InvalidRecordError("wrong_type", "y", f"{_SHOWN[declared]} (`label` of the model)", y)
            return False
        offered = self.offered
        known = self.kind
        if known is None:
            known = _kind_of_classes(classes)
            if known is None:  # the model has failed on those before, if there were any
                self.offered, self.n_zero_one = {kind: 1}, int(kind == "number")
                return False
            self.is_binary = False  # or the classes would tell nothing
        if not offered:  # of labels that were declared until now, or of classes
            self._begin_counts(known)
        n_own = offered.get(known, 0)
        is_own = kind == known
        if self.is_binary and known != "text":
            n_boolean = offered.get("boolean", 0)
            if kind == "text":
                n_own = n_boolean + self.n_zero_one
            elif _is_binary(y):
                is_own = True
                self.n_zero_one += kind == "number"
            else:
                is_own = self.n_zero_one > n_boolean
                known = self.kind = "number" if is_own else "boolean"
                n_own = n_boolean
        if is_own:
            offered[kind] = offered.get(kind, 0) + 1
            return False
        n_other = offered[kind] = max(offered.get(kind, 0), n_own - MEMORY) + 1
        if n_own < DECIDES or n_other - n_own >= MAJORITY:
            self.kind, self.n_learnt, self.is_binary = kind, 0, True
            self.n_zero_one = n_other if kind == "number" else 0
            return True
        expected = f"{_SHOWN[known]}, as the labels before (`label: {kind}` or `any` of the model takes others)"
        raise InvalidRecordError("wrong_type", "y", expected, y)

    def note(self, y: Any) -> None:
        """Count the label of an observation that the model has taken."""
        if self.kind is None:
            self.kind = kind_of(y)
        self.n_learnt += 1
        self.is_binary = self.is_binary and (self.kind == "text" or _is_binary(y))

    def begin_version(self, *, is_other: bool = False) -> None:
        """Continue with another version, whose labels may be of another kind.

        Parameters
        ----------
        is_other
            Whether the new version predicts something else, as numbers in place of classes: its labels are not known.
        """
        self.kind = None if is_other else self.kind
        self.offered = {}
        if self.kind is not None:
            self._begin_counts(self.kind)
        self.n_learnt, self.is_binary = 0, True

    def _begin_counts(self, kind: str) -> None:
        self.offered[kind] = MAJORITY
        self.n_zero_one = MAJORITY if kind == "number" else 0

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {**vars(self), "offered": dict(self.offered)}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any] | None) -> Self:
        """Restore the kind from a snapshot.

        An older state has none, and its next label decides.
        """
        kind = cls()
        if snapshot is not None and "offered" in snapshot:
            offered = dict(snapshot["offered"])
            n_zero_one = offered.get("number", 0) if snapshot["kind"] == "number" else 0
            vars(kind).update({"n_zero_one": n_zero_one, **snapshot, "offered": offered})
        return kind


def _is_binary(y: Any) -> bool:
    return not isinstance(y, str) and bool(y in (0, 1))


def _kind_of_classes(classes: Iterable[Any]) -> str | None:
    """Return the single kind of the classes, or None.

    True and 1 are one label, so classes 0 and 1 may be booleans.
    """
    found = list(classes)
    kinds = {kind_of(one) for one in found}
    if len(kinds) != 1 or ("text" not in kinds and all(one in (0, 1) for one in found)):
        return None
    return kinds.pop()
