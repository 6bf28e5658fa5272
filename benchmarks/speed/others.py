"""What explainers other than interventional iPFI and iSAGE cost: MDI, partial dependence, observational iSAGE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from attributary_explainers import IncrementalMDI, IncrementalPDP, freeze
from benchmarks.speed.loops import Kind, Loop, Reference, installed, ratio, take_turns
from benchmarks.speed.subjects import SUBJECTS_BY_NAME, TEXTS, Observation, Subject
from benchmarks.speed.table import ALONE, BENT, OURS, REFERENCE, WARM, alone, filled, largest_difference, last

Step = Callable[[dict[str, Any], Any], Any]

SAGE = Kind("iSAGE, m 5", sage=5)
PERIOD = 800
"""Observations of which one ratio is: partial dependence asks about a block of so many at once."""
STORED = 2000
LEARNED = 2000


@dataclass(frozen=True)
class Other:
    """One explainer, of some models.

    Parameters
    ----------
    subjects
        Names of the models.
    make
        Returns what explains and predicts one observation, its model having learnt the last of what is stored.
    reference
        The same by iXAI; None: it has none like it.
    """

    name: str
    title: str
    subjects: tuple[str, ...]
    make: Callable[[Subject, Any, Sequence[Observation]], Step]
    reference: Callable[[Subject, Any, Sequence[Observation]], Step] | None = None


def _beside(make: Callable[[Any], Any], n: int) -> Callable[[Subject, Any, Sequence[Observation]], Step]:
    """A loop that predicts and hands an explainer the prediction; it has seen the last `n` of what is stored."""

    def made(subject: Subject, model: Any, stored: Sequence[Observation]) -> Step:
        explainer, predict = make(model), subject.predict(model)

        def step(x: dict[str, Any], y: Any) -> Any:
            y_pred = predict(x)
            explainer.explain_one(x, y, y_pred=y_pred)
            return y_pred

        for number, (x, y) in enumerate(stored[-n:], n - len(stored[-n:])):
            step(x, y)
            if number >= n - WARM:
                model.learn_one(x, y)
        return step

    return made


def _removing(removal: str) -> Callable[[Subject, Any, Sequence[Observation]], Step]:
    return lambda subject, model, stored: filled(subject, SAGE, model, removal, BENT, stored).step


def _ixai(subject: Subject, model: Any, stored: Sequence[Observation]) -> Step:
    for x, y in stored[-WARM:]:
        model.learn_one(x, y)
    predict = subject.predict(model)
    beside = Reference(predict, subject.loss, SAGE, stored[-BENT:], categories=TEXTS)

    def step(x: dict[str, Any], y: Any) -> Any:
        y_pred = predict(x)
        beside.step(x, y)
        return y_pred

    return step


OTHERS = (
    Other("mdi", "mean decrease in impurity", ("arf10", "hat", "tree"), _beside(IncrementalMDI, WARM)),
    Other(
        "pdp",
        "partial dependence, nine features",
        ("linear", "tree", "hat", "arf10"),
        _beside(lambda model: IncrementalPDP(model, seed=1), 2 * PERIOD),
    ),
    Other("observational", "iSAGE, m 5, observational", ("arf10",), _removing("observational"), _ixai),
    Other("observational-trees", "iSAGE, m 5, observational by trees", ("arf10",), _removing("observational-trees")),
)


def others(
    names: Sequence[str], n: int, block: int, tick: Callable[[], None] = lambda: None
) -> dict[str, dict[str, Any]]:
    """Ratios by model, as plain data: those of `names` of `SUBJECTS_BY_NAME` that have any."""
    chosen = dict.fromkeys(name for other in OTHERS for name in other.subjects)
    return {name: measured(SUBJECTS_BY_NAME[name], n, block, tick) for name in chosen if name in names}


def measured(subject: Subject, n: int, block: int, tick: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Ratios of one model.

    Returns
    -------
    `alone_us`: processor time of predict and learn. `explained`: by the name of an explainer, per column the ratio to
    it over periods of `PERIOD` observations with quartiles, and the largest differences of predictions, as `measure`
    has them.
    """
    stream, model = subject.stream(), subject.make()
    for x, y in islice(stream, LEARNED - WARM):
        model.learn_one(x, y)
    stored, data = list(islice(stream, STORED)), list(islice(stream, n))
    loops: dict[tuple[str, str], Loop] = {ALONE: alone(subject, freeze(model), stored)}
    for other in OTHERS:
        if subject.name in other.subjects:
            for column, make in ((OURS, other.make), (REFERENCE, other.reference if installed() else None)):
                if make is not None:
                    own = freeze(model)
                    loops[column, other.name] = Loop(own, make(subject, own, stored))
                    tick()
    times = {key: _by_period(of_one, block) for key, of_one in take_turns(loops, data, block, tick).items()}
    predictions, at_end = loops[ALONE].predictions, last(subject, loops[ALONE], data)
    explained: dict[str, dict[str, Any]] = {}
    for key, loop in loops.items():
        if key != ALONE:
            column, name = key
            of_one: dict[str, Any] = asdict(ratio(times[key], times[ALONE]))
            of_one["y_pred"] = largest_difference(loop.predictions, predictions)
            of_one["model"] = largest_difference(last(subject, loop, data), at_end)
            explained.setdefault(name, {})[column] = of_one
    return {"alone_us": 1e6 * sum(times[ALONE]) / n, "observations": n, "explained": explained}


def _by_period(of_blocks: Sequence[float], block: int) -> list[float]:
    """Seconds of whole periods; of all blocks where there are fewer."""
    n = max(PERIOD // block, 1)
    whole = max(len(of_blocks) // n, 1)
    return [sum(of_blocks[i * n : (i + 1) * n]) for i in range(whole)]
