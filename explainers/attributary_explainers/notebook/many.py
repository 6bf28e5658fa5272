"""Many observations in a call: predict, explain, learn, with a bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Self, TypeVar

from ..errors import InvalidParameterError
from ..missing import drop_missing, read_missing
from .rows import observations

T = TypeVar("T")


class ExplainsMany:
    """An explainer with `explain_one`, which gives it `explain_many`."""

    def explain_many(
        self,
        X: Any,
        y: Any = None,
        *,
        learn: bool = False,
        feature_names: Iterable[Any] | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Explain observations in sequence; return the explainer.

        Parameters
        ----------
        X
            A pandas data frame; an array, shape (rows, features), with `feature_names`; an iterable of rows (mappings,
            Series, named tuples); or, without `y`, an iterable of pairs (x, y), as the data sets of River are. It may
            be endless: stop it, and what has been explained is kept.
        y
            Labels or targets, as many as there are rows.
        learn
            Whether the model learns each observation after it has been explained, by `learn_one`: for a model that
            learns on the stream. False leaves the model as it is.
        feature_names
            Names of the columns of an array; of a data frame the columns that are features.
        progress
            Whether a bar is shown. None shows one in a notebook and on a terminal.

        Raises
        ------
        InvalidParameterError
            `learn` is asked of a model without `learn_one`; or X and y do not fit each other, or have no names.

        Examples
        --------
        >>> from river.datasets import synth
        >>> from river.tree import HoeffdingTreeClassifier
        >>> from attributary_explainers import IncrementalPFI
        >>> pfi = IncrementalPFI(HoeffdingTreeClassifier(grace_period=50), alpha=0.01, seed=7)
        >>> pfi.explain_many(synth.STAGGER(classification_function=2, seed=7).take(1000), learn=True)
        IncrementalPFI(HoeffdingTreeClassifier(...), alpha=0.01, seed=7)
        >>> max(pfi.importance, key=pfi.importance.get)
        'size'
        """
        model: Any = getattr(self, "model", None)
        if learn and not hasattr(model, "learn_one"):
            raise InvalidParameterError(
                "learn",
                f"False for a {type(model).__name__}, which has no learn_one (fit a scikit-learn model before, or "
                "wrap it by river.compat.convert_sklearn_to_river)",
                learn,
            )
        total = len(X) if hasattr(X, "__len__") else getattr(X, "n_samples", None)
        total = total if isinstance(total, int) else None
        pairs = observations(X, y, feature_names=feature_names)
        missing = getattr(self, "missing", "absent")
        for x, label in with_progress(pairs, total, type(self).__name__, progress):
            self.explain_one(x, label)  # type: ignore[attr-defined]
            if learn:  # the row that it has predicted; of one that is skipped, what is there
                row = read_missing(x, missing)
                model.learn_one(drop_missing(x) if row is None else row, label)
        return self


def with_progress(items: Iterable[T], total: int | None, text: str, shown: bool | None) -> Iterator[T]:
    """Yield the items, with a bar on standard error where wanted."""
    if shown is None:
        shown = _is_notebook() or sys.stderr.isatty()
    if shown and (bar := _bar()) is not None:
        yield from bar(items, text, total)
    else:
        yield from items


def _bar() -> Callable[[Iterable[Any], str, int | None], Iterable[Any]] | None:
    """Return a function that shows a progress bar; None without rich."""
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return None
    console = Console(stderr=True, force_terminal=None if _is_notebook() else True)
    return partial(track, console=console, transient=True)


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
