"""Which feature is named, where one is damaged and eight others may move beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from attributary_explainers import LossMonitor, LossShiftExplained
from benchmarks.harm.feeding import CHANGE_AT, Map, Row, feed, mappings, of_two
from benchmarks.harm.worlds import damages as d
from benchmarks.harm.worlds.kinds import clean, damaged
from benchmarks.harm.worlds.subjects import IGNORED, SUBJECTS, UNREAD, subject

DAMAGES: dict[str, d.Damage] = {
    "permuted": d.permuted(),
    "error of one sd": d.noise(1.0),
    "another unit": d.unit(1.8, 32.0),
    "stuck": d.stuck,
    "80 % missing": d.missing(0.8),
    "offset of 1.5 sd": d.moved(1.5),
    "sign turned": d.turned,
    "error of two sd": d.noise(2.0),
}
RANKS = range(1, 7)


class Named(NamedTuple):
    """What was named of one damage. `place`: of the damaged column among the suspects, from 1; None where none came."""

    model: str
    damage: str
    rank: int
    beside: bool
    place: int | None
    significant: bool
    unread: bool
    """Whether a feature that the model does not read was named."""

    first: str
    """The first suspect."""


def run_named(model: str, damage: str, rank: int, beside: bool, seed: int) -> Named:
    """One column is damaged, until features are named or 20 000 rows are over."""
    s = subject(model)
    rng = np.random.default_rng([74, seed, list(DAMAGES).index(damage), rank, beside, SUBJECTS.index(model)])
    before, after = clean(s, rng, CHANGE_AT), clean(s, rng, CHANGE_AT)
    after = damaged(s, rng, after, DAMAGES[damage], [s.ranked[rank - 1]])
    if beside:
        after = damaged(s, rng, after, d.moved(2.0), [*IGNORED, *UNREAD])
    x, y = np.vstack((before.x, after.x)), np.r_[before.y, after.y]
    names = s.population.names
    told = feed(
        LossMonitor(s.model, learns=False, seed=seed),
        mappings(names, x),
        y.tolist(),
        of_two(s.predict(x)),
        until=lambda event: isinstance(event, LossShiftExplained) and bool(event.features),
    )
    suspects = next((t.features for t in told.after(CHANGE_AT) if t.features), ())
    if not suspects:
        return Named(model, damage, rank, beside, None, False, False, "")
    order = [name for name, _ in suspects]
    significant = {name for name, named in suspects if named}
    name = names[s.ranked[rank - 1]]
    unread = any(names[j] in significant for j in UNREAD)
    return Named(model, damage, rank, beside, order.index(name) + 1, name in significant, unread, order[0])


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Shares of what was explained; what no shift was told of names nothing."""
    seeds = 3 if full else 1
    ranks = RANKS if full else (1, 3, 6)
    arguments = [
        (model, damage, rank, beside, seed)
        for model in SUBJECTS
        for damage in DAMAGES
        for rank in ranks
        for beside in (False, True)
        for seed in range(1, 1 + seeds)
    ]
    found: list[Named] = of(run_named, arguments)
    for beside in (False, True):
        some = [f for f in found if f.beside == beside]
        told = [f for f in some if f.place is not None]
        n = max(len(told), 1)
        yield Row(
            "damaged feature of importance rank 1–6 named first"
            + (", eight others moved beside it" if beside else "")
            + f", {len(some)} trials",
            f"{sum(f.place == 1 for f in told) / n:.2f} of {len(told)} told "
            f"(among three {sum((f.place or 9) <= 3 for f in told) / n:.2f}; "
            f"named {sum(f.significant for f in told) / n:.2f})",
            "≥ .85",
        )
    yield Row(
        f"… a feature that the model does not read named, {len(found)} trials", f"{sum(f.unread for f in found)}", "0"
    )
    for by, values in (("model", SUBJECTS), ("damage", DAMAGES), ("rank", ranks)):
        for value in values:
            told = [f for f in found if getattr(f, by) == value and f.place is not None]
            n = max(len(told), 1)
            all_of = sum(getattr(f, by) == value for f in found)
            lines.append(
                f"{by} {value}: first {sum(f.place == 1 for f in told) / n:.2f} of {len(told)} told of {all_of}"
            )
    lines += [f"not first: {f}" for f in found if f.place not in (None, 1)]
