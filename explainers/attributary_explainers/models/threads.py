"""Asks models for few rows in a thread: starting more takes longer.

It is also what makes a forest with `n_jobs` give the same bytes each time: its threads add up the trees in the order
in which they are ready.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import lru_cache
from typing import Any

FEW = 5000
"""Rows of a call up to which it is made by one thread."""

_LIBRARIES = ("sklearn", "xgboost", "lightgbm", "catboost")
_OWN = {"lightgbm": {"num_threads": 1}, "catboost": {"thread_count": 1}}
"""What the estimators of libraries take that have threads of their own."""


def by_one_thread(estimator: Any, method: str) -> Callable[[Any], Any]:
    """Return an estimator's method, run in a single thread for few rows.

    Three kinds of threads are known: those of joblib, which `n_jobs` asks for; those of OpenMP, as gradient boosting
    by histograms has them; and those that LightGBM and CatBoost start themselves.
    """
    ask = getattr(estimator, method)
    own = _OWN.get(type(estimator).__module__.partition(".")[0])
    has_jobs = own is None and _has_jobs(estimator)

    def call(X: Any) -> Any:
        n_rows = len(X)
        if n_rows > FEW:
            return ask(X)
        if own is not None:
            return ask(X, **own)
        with ExitStack() as limits:
            # What uses the threads of a library has loaded it: none of them is imported here.
            if has_jobs and (joblib := sys.modules.get("joblib")) is not None:
                limits.enter_context(joblib.parallel_config(backend="sequential"))
            limits.enter_context(without_openmp(n_rows))
            return ask(X)

    return call


def without_openmp(n_rows: int) -> AbstractContextManager[Any]:
    """Return a context without OpenMP in this thread, where rows are few."""
    if n_rows > FEW:
        return nullcontext()
    openmp = _openmp(tuple(name in sys.modules for name in _LIBRARIES))
    return nullcontext() if openmp is None else openmp.limit(limits=1, user_api="openmp")


def _has_jobs(estimator: Any) -> bool:
    """Return whether the estimator, or a nested estimator, sets `n_jobs`."""
    try:
        given = estimator.get_params(deep=True)
    except Exception:  # noqa: BLE001 - somebody's estimator, which need not say
        return True
    return any(name.endswith("n_jobs") and value not in (None, 1) for name, value in given.items())


@lru_cache(maxsize=4)
def _openmp(_loaded: tuple[bool, ...]) -> Any:
    """Return threadpoolctl's view of the libraries loaded by now.

    It takes some milliseconds. None without threadpoolctl, which scikit-learn brings.
    """
    threadpoolctl = sys.modules.get("threadpoolctl")
    return None if threadpoolctl is None else threadpoolctl.ThreadpoolController()
