"""Compiles kernels ahead of the first observation, by explaining made-up observations of made-up models."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from river import compose, forest, linear_model, naive_bayes, neighbors, preprocessing, tree

from .compiled import compiling
from .evaluation.changed_rows import LARGE
from .evaluation.function import FastFunction
from .imputers.reservoirs import SlidingWindowReservoir
from .incremental.dependence.pdp import IncrementalPDP
from .incremental.pfi import IncrementalPFI
from .incremental.sage import IncrementalSAGE
from .incremental.together import Explainers
from .keeping.reading import Reader, read
from .leaves.coalitions import coalitions_of, exact_walks
from .leaves.exact import LeafTable, exact_growth
from .leaves.forest import joined
from .losses.kernels import losses_at
from .losses.losses import as_loss
from .models.batch import IN_ONE_CALL, BatchFunction
from .models.function import model_kind
from .models.learning import learn_function
from .shifts.shift import ImportanceShift

Progress = Callable[[int, int], None]
"""Is told how many kernels of how many are ready."""


class WarmUp(NamedTuple):
    """What a warm-up has done."""

    n_compiled: int
    """Kernels that were compiled; 0 where all were on disk."""
    seconds: float
    """The time that compiling took."""


def warm_up(progress: Progress | None = None) -> WarmUp:
    """Compile every kernel that this machine does not keep yet.

    The first time this takes about half a minute, later a second. Kernels are kept in the folder that
    `NUMBA_CACHE_DIR` names, or else beside the installed package.

    Parameters
    ----------
    progress
        Called with the number of kernels that are ready and that of all: after each that is compiled, and at the end.

    Examples
    --------
    >>> from attributary_explainers import warm_up
    >>> done = warm_up()
    >>> warm_up()
    WarmUp(n_compiled=0, seconds=0.0)
    """
    with compiling(progress) as compilations, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n, seconds = compilations.n, compilations.seconds
        for make_model in _MODELS:
            for make_explainer in (IncrementalPFI, IncrementalSAGE):
                model = make_model()
                rehearse(Explainers(model, {"made up": make_explainer(model, n_samples=2, seed=1)}), 12)
        for make_explainer in (IncrementalPFI, IncrementalSAGE):  # so many rows that they are not written down
            model = forest.ARFClassifier(n_models=1, seed=1)
            rehearse(Explainers(model, {"made up": make_explainer(model, n_samples=LARGE, seed=1)}), 3)
        model = linear_model.LogisticRegression()
        share = IncrementalPFI(model, n_samples=2, seed=1, sampling="independent", feature_share=0.6)
        rehearse(Explainers(model, {"made up": share}), 104)  # shares are chosen after 100
        for make_explainer, n_rows in ((IncrementalSAGE, 12), (IncrementalPFI, 560)):
            model, few = linear_model.LinearRegression(), SlidingWindowReservoir(10)
            given = make_explainer(model, n_samples=2, seed=1, removal="observational", reservoir=few)
            rehearse(Explainers(model, {"made up": given}), n_rows)  # whether it suits the data is asked after 500
        shift, increments = ImportanceShift(), np.ones(2)
        while shift.level == 0.0:  # until a first block was compared with a reference
            shift.update(("a", "b"), increments)
        _warm_batches()
        _warm_dependence()
        x, y_pred = {"a": 0.5, "b": 1}, {False: 0.25, True: 0.75}
        if (reader := Reader.of(x, (False, True), 1)) is not None:
            read(reader.known, id(x), id(y_pred))
        return WarmUp(compilations.n - n, compilations.seconds - seconds)


def rehearse(explainers: Explainers, n: int) -> str:
    """Let explainers explain made-up observations, which their model learns; return how the model is evaluated.

    Parameters
    ----------
    explainers
        The explainers of a new model, which is of no use afterwards.
    n
        Number of observations.

    Returns
    -------
    str
        "by its fast path", by the model itself in one call, or "row by row, " with the reason.

    Raises
    ------
    Exception
        The model cannot read observations of two numbers.
    """
    model = explainers.model
    learn, numbers = learn_function(model), model_kind(model) == "regressor"
    for x in _made_up(n):
        y: Any = x["a"] if numbers else x["a"] > x["b"]
        explainers.explain_one(x, y)
        learn(x, y)
    function = explainers.function
    if isinstance(function, BatchFunction):
        return IN_ONE_CALL
    if not isinstance(function, FastFunction):
        return "row by row, there is no fast path for this type"
    return "by its fast path" if function.n_fast else f"row by row, {function.counts.most_common(1)[0][0]}"


def _warm_batches() -> None:
    """Take exact importances of a made-up tree, and losses of a batch, as `batch_pfi` and explained changes do."""
    column, left, right = [0, 1, -1, -1, -1], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1]
    made_up = column, [0.5] * 5, [False] * 5, left, right, [[0.0], [0.0], [1.0], [2.0], [3.0]]
    forest_of_one = joined(("a", "b"), [tuple(map(np.array, made_up))], base=np.zeros(1))
    rows = np.array([list(x.values()) for x in _made_up(3)])
    leaves = LeafTable.of(forest_of_one, rows, [0.0, 1.0, 1.0], as_loss("squared"))
    exact_growth(leaves, {"a": ["a"], "both": ["a", "b"]})
    exact_walks(coalitions_of(leaves, {"a": ["a"]}), {"a": ["a"]}, of_drawn=True)
    P, which = leaves.predictions(), np.arange(3)
    losses_at(P, which, leaves.code, leaves.epsilon, leaves.columns, leaves.targets, np.empty(3))


def _warm_dependence() -> None:
    """Follow the partial dependence of a made-up forest."""
    model = forest.ARFClassifier(n_models=2, seed=1)
    dependence, learn = IncrementalPDP(model, grid_size=2, seed=1), learn_function(model)
    for x in _made_up(12):  # a first block has ten
        dependence.take(x)
        learn(x, x["a"] > x["b"])
    dependence.update()


def _made_up(n: int) -> Iterator[dict[str, float]]:
    rng = random.Random(1)
    for _ in range(n):
        yield {"a": rng.random(), "b": rng.random()}


_MODELS: tuple[Callable[[], Any], ...] = (
    linear_model.LogisticRegression,
    lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
    lambda: compose.Select("a", "b") | preprocessing.StandardScaler() | naive_bayes.GaussianNB(),  # type: ignore[no-untyped-call]
    naive_bayes.BernoulliNB,
    lambda: neighbors.KNNClassifier(engine=neighbors.LazySearch(20)),
    tree.HoeffdingTreeRegressor,
    lambda: forest.ARFRegressor(n_models=2, seed=1),
    lambda: forest.ARFClassifier(n_models=2, seed=1),
)
"""Models by which every kernel is reached."""
