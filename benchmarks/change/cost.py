"""What change explanation costs per observation, beside what the rest costs; and what one explanation costs.

    python -m benchmarks.change.cost

Ratio of processor time with and without, in one process. Every variant has a copy of the model and reads the same
observations, in blocks that take turns, so that the noise of the machine falls on all alike; the median of the blocks
is shown. An explanation is given in observations: so many could have been predicted and learnt meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from river import compose, forest, linear_model, naive_bayes, preprocessing, tree
from river.datasets import synth
from sklearn.ensemble import RandomForestClassifier

from attributary_explainers import (
    ChangeExplainer,
    ChangeExplanation,
    IncrementalPFI,
    IncrementalSAGE,
    SklearnModel,
    freeze,
    model_function,
)

Observation = tuple[dict[Any, Any], Any]
WARM_UP = 2000
BLOCK = 100


@dataclass(frozen=True)
class Subject:
    """A model to explain; `learns` where it does so from each observation."""

    name: str
    make: Callable[[Sequence[Observation]], Any]
    learns: bool = True


def _scikit_learn(data: Sequence[Observation]) -> Any:
    rows = np.array([list(x.values()) for x, _ in data])
    fitted = RandomForestClassifier(50, random_state=1).fit(rows, [y for _, y in data])
    return SklearnModel(fitted, features=list(data[0][0]))


SUBJECTS = (
    Subject("ARF, 10 trees", lambda data: forest.ARFClassifier(n_models=10, seed=1)),
    Subject("Hoeffding adaptive tree", lambda data: tree.HoeffdingAdaptiveTreeClassifier(seed=1)),
    Subject(
        "scaler, logistic regression",
        lambda data: compose.Pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
    ),
    Subject("Gaussian naive Bayes", lambda data: naive_bayes.GaussianNB()),  # type: ignore[no-untyped-call]
    Subject("random forest of 50, does not learn", _scikit_learn, learns=False),
)


def _change(model: Any, **parameters: Any) -> Callable[[Any, Any, Any], Any]:
    return ChangeExplainer(model, window=1000, threshold=0.9, seed=1, **parameters).update


def _explainer(kind: type[IncrementalPFI | IncrementalSAGE], model: Any, n: int) -> Callable[[Any, Any, Any], Any]:
    explainer = kind(model, loss="zero_one", n_samples=n, seed=1)
    return lambda x, y, y_pred: explainer.explain_one(x, y)


VARIANTS: dict[str, Callable[[Any], Callable[[Any, Any, Any], Any] | None]] = {
    "alone": lambda model: None,
    "change": lambda model: _change(model),
    "change, batches of 32": lambda model: _change(model, batch_size=32),
    "change, one by one": lambda model: _change(model, batch_size=1),
    "iPFI, 1 draw": lambda model: _explainer(IncrementalPFI, model, 1),
    "iPFI, 5 draws": lambda model: _explainer(IncrementalPFI, model, 5),
    "iSAGE, 5 draws": lambda model: _explainer(IncrementalSAGE, model, 5),
}


class _Loop:
    """A model with one variant beside it."""

    def __init__(self, subject: Subject, data: Sequence[Observation], variant: str) -> None:
        self.model = subject.make(data)
        self.learns = subject.learns
        self.predict = _predictor(self.model)
        self.beside = VARIANTS[variant](self.model)

    def run(self, block: Sequence[Observation]) -> float:
        """Processor seconds for a block."""
        predict, learns, beside, model = self.predict, self.learns, self.beside, self.model
        began = time.process_time()
        for x, y in block:
            y_pred = predict(x)
            if learns:
                model.learn_one(x, y)
            if beside is not None:
                beside(x, y, y_pred)
        return time.process_time() - began


def _predictor(model: Any) -> Callable[[Any], Any]:
    return getattr(model, "predict_proba_one", None) or model_function(model, "label")


def ratios(subject: Subject, data: Sequence[Observation], tick: Callable[[], None]) -> dict[str, float]:
    """By variant, processor time over that of the model alone."""
    loops = {variant: _Loop(subject, data[:WARM_UP], variant) for variant in VARIANTS}
    for loop in loops.values():
        loop.run(data[:WARM_UP])
        tick()
    found: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    names = list(VARIANTS)
    for number, start in enumerate(range(WARM_UP, len(data), BLOCK)):
        block = data[start : start + BLOCK]
        turn = names[number % len(names) :] + names[: number % len(names)]  # whoever is first finds a cold cache
        for variant in turn:
            found[variant].append(loops[variant].run(block))
        tick()
    alone = found.pop("alone")
    return {
        variant: statistics.median(with_it / without for with_it, without in zip(times, alone, strict=True))
        for variant, times in found.items()
    }


def explanations(subject: Subject, data: Sequence[Observation], window: int) -> dict[str, float]:
    """By method, processor time of one explanation, in observations that the model could have had meanwhile."""
    found = {}
    for name, methods in (("explanation by PFI", ["pfi"]), ("by PFI and SAGE", ["pfi", "sage"])):
        model = subject.make(data[:WARM_UP])
        predict = _predictor(model)
        change = ChangeExplainer(model, window=window, threshold=0.9, importances=methods, seed=1)
        plain = []
        for x, y in data[:WARM_UP]:
            began = time.process_time()
            y_pred = predict(x)
            if subject.learns:
                model.learn_one(x, y)
            plain.append(time.process_time() - began)
            change.update(x, y, y_pred)
        # Two versions are compared on the window of observations that come next, with the last one.
        change.new_version(freeze(model))
        for x, y in data[WARM_UP : WARM_UP + window]:
            y_pred = predict(x)
            began = time.process_time()
            events = (*change.update(x, y, y_pred), *change.finish())  # at once, not in slices
            spent = time.process_time() - began
        if not any(isinstance(event, ChangeExplanation) for event in events):
            raise RuntimeError(f"{subject.name} was not explained")
        found[name] = spent / statistics.fmean(plain[len(plain) // 2 :])
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.change.cost", description=__doc__.split("\n\n")[0])
    parser.add_argument("--observations", type=int, default=3000, help="measured, after a warm-up (default: 3000)")
    parser.add_argument("--window", type=int, default=1000, help="K of the explanations (default: 1000)")
    options = parser.parse_args(argv)
    data = list(synth.Agrawal(1, seed=1).take(WARM_UP + options.observations))
    steps = len(VARIANTS) + options.observations // BLOCK
    console, shown_on = Console(), Console(stderr=True)
    table = Table(title=f"Agrawal, K {options.window}: ratio to the model alone, and explanations in observations")
    table.add_column("model")
    with Progress(console=shown_on, disable=not shown_on.is_terminal) as progress:
        task = progress.add_task("measuring", total=steps * len(SUBJECTS))
        for subject in SUBJECTS:
            found: dict[str, float] = ratios(subject, data, lambda: progress.advance(task))
            found |= explanations(subject, data, options.window)
            if len(table.columns) == 1:
                for name in found:
                    table.add_column(name, justify="right")
            shown = [f"{value:.2f}" if value < 100 else f"{value:,.0f}".replace(",", " ") for value in found.values()]
            table.add_row(subject.name, *shown)
    console.print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
