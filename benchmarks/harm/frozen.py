"""Frozen classifiers of two classes: does what is told mean that the model got worse?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np

from attributary_explainers import LossMonitor
from benchmarks.harm.feeding import CHANGE_AT, Map, Row, Shift, Told, feed, nothing, of_two
from benchmarks.harm.worlds.kinds import KINDS, UNKNOWN, Figures, clean, figures
from benchmarks.harm.worlds.subjects import SUBJECTS, matthews, precision, recall, subject


@dataclass(frozen=True)
class Trial:
    """What was told of one stream. `early`: shifts told before anything happened."""

    model: str
    kind: str
    early: int
    shifts: tuple[Shift, ...]
    at: int
    figures: Figures = UNKNOWN

    def told(self, *kinds: str) -> bool:
        """Whether one of these kinds was told of what happened, as its last word."""
        return any(s.final in kinds for s in self.shifts)

    @property
    def delay(self) -> float:
        """Rows until the first word."""
        return self.shifts[0].observation - self.at if self.shifts else math.inf


def run_frozen(model: str, kind: str, seed: int, scale: float) -> Trial:
    """Clean rows, then rows of the kind, from a row that depends on the seed."""
    s = subject(model, scale)
    rng = np.random.default_rng([71, seed, list(KINDS).index(kind), SUBJECTS.index(model)])
    at = CHANGE_AT + int(rng.integers(0, 1000))
    before, after = clean(s, rng, at), KINDS[kind].make(s, rng, CHANGE_AT)
    x, y = np.vstack((before.x, after.x)), np.r_[before.y, after.y]
    # The kind of probabilities does not depend on there being a model to ask, which takes most of the time.
    told: Told = feed(LossMonitor(learns=False, seed=seed), nothing(len(y)), y.tolist(), of_two(s.predict(x)))
    return Trial(model, kind, len(told.before(at)), tuple(told.after(at)), at)


def with_figures(of: Map, trials: Sequence[Trial], measure: Callable[..., Figures]) -> list[Trial]:
    """The trials with what their kinds do to the model, each measured once."""
    kinds = list(dict.fromkeys((t.model, t.kind) for t in trials))
    known = dict(zip(kinds, of(measure, kinds), strict=True))
    return [replace(t, figures=known[t.model, t.kind]) for t in trials]


def trials_of(of: Map, seeds: int, scale: float = 1.0) -> list[Trial]:
    """Of both models and all kinds."""
    arguments = [(m, k, seed, scale) for m in SUBJECTS for k in KINDS for seed in range(1, 1 + seeds)]
    return with_figures(of, of(run_frozen, arguments), figures)


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Matthews' coefficients and precisions, over both models and all kinds."""
    yield from _at(of, full, lines, 1.0)


def scaled(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """The same models, too sure of themselves and not sure enough."""
    for scale in (2.0, 0.5):
        yield from _at(of, full, lines, scale)


def _at(of: Map, full: bool, lines: list[str], scale: float) -> Iterator[Row]:
    runs = (6 if scale == 1.0 else 3) if full else 1
    trials = trials_of(of, runs, scale)
    name = {1.0: "frozen classifiers", 2.0: "… logits doubled", 0.5: "… logits halved"}[scale]
    goals = ("≥ .7; ≥ .9", "≥ .75; ≥ .95") if scale == 1.0 else ("≥ .65", "–")
    for model in (None, *SUBJECTS):
        some = [t for t in trials if model in (None, t.model)]
        who = f"{name}, {model or 'both'}, {len(some)} trials of {len(KINDS)} kinds"
        yield Row(f"{who}: MCC of *worse* with harm (AUC); precision", _agreement(some, "harm", "worse"), goals[0])
        yield Row("… of *worse* or *level* with regret", _agreement(some, "worse", "worse", "level"), goals[1])
    told = [len(t.shifts) for t in trials if t.shifts]
    yield Row("… shifts told of one change, where any: mean; at most", f"{fmean(told):.2f}; {max(told)}", "–")
    lines += [name, *by_kind(trials)]


def _agreement(trials: Sequence[Trial], truth: str, *kinds: str) -> str:
    real = [bool(getattr(t.figures, truth)) for t in trials]
    told = [t.told(*kinds) for t in trials]
    text = f"{matthews(real, told):.2f}; {precision(real, told):.2f} (recall {recall(real, told):.2f}"
    if truth == "harm":  # which rows come is no fault of the model, though the AUC may fall
        fault = [r and not KINDS[t.kind].inputs for r, t in zip(real, trials, strict=True)]
        text += f"; where inputs alone move is no harm: {matthews(fault, told):.2f}; {precision(fault, told):.2f}"
    return text + f"; told too early {sum(t.early for t in trials)})"


def by_kind(trials: Sequence[Trial]) -> Iterator[str]:
    """What each kind does to the model, and what was told of it."""
    for model, kind in dict.fromkeys((t.model, t.kind) for t in trials):
        some = [t for t in trials if (t.model, t.kind) == (model, kind)]
        f = some[0].figures
        yield " | ".join(
            (
                f"{model:8} {kind:47}",
                f"AUC {0.0 - f.auc:+.3f} {'harm' if f.harm else '    '}",
                f"loss {f.loss:+.3f} regret {f.regret:+.4f} {'worse' if f.worse else '     '}",
                f"first {counted(some, 'first')}, last {counted(some, 'final')}",
                f"by {counted(some, 'signal')}",
                f"rows {median(t.delay for t in some):.0f}",
                f"shifts {sum(len(t.shifts) for t in some)}, early {sum(t.early for t in some)}",
            )
        )


def counted(trials: Sequence[Trial], name: str) -> str:
    """How often the first shift of a trial was which."""
    found = Counter(getattr(t.shifts[0], name) if t.shifts else "-" for t in trials)
    return " ".join(f"{k} {n}" for k, n in found.most_common())
