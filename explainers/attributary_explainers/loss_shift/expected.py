"""Says how much of a rise of the loss the inputs explain.

A model of numbers does not say how sure it is. Where targets are noisier in one region than in another, and more
observations come from there, the loss rises although the model is no worse. The observations from before the shift
show how much is lost in each region.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..typing import Array, Features, Ints
from ..validation import LARGEST
from .distance import NUMBER, kind_of
from .events import Kind, Suspect

LEAST_ROWS = 100
"""With fewer observations on one side nothing is said."""
HARDER = 1.0 / 3.0
"""Share of a rise that the inputs explain, from which on observations are told to be harder."""
_BINS = 8
_LEAST_OF_LEVEL = 5
_ROUNDS = 4


def expected_share(
    before: Sequence[Features], losses_before: Array, after: Sequence[Features], losses_after: Array
) -> float | None:
    """Return the share of the rise of the mean loss that inputs explain.

    It is in [0, 1]. The expected loss is learnt from the observations of before as a sum of one effect per feature
    (backfitting, Buja et al., 1989): of eight intervals of equally many numbers, and of each other value, a missing one
    included. Effects are shrunk towards 0 by what their spread has beyond chance (a variance component), so that a
    feature that says nothing adds no noise. The mean of these expectations after, less that of before, over the rise is
    the share. Damage changes how the inputs go with the target, and hardly which inputs come: it explains next to
    nothing. What no single feature says is not seen: noise that grows everywhere, or where two features meet, has the
    share 0.

    Observations whose loss is NaN or infinite are left out. None with fewer than 100 losses on a side, and where the
    mean loss has not risen by two standard errors.
    """
    known_before, known_after = np.abs(losses_before) < LARGEST, np.abs(losses_after) < LARGEST
    n, m = int(known_before.sum()), int(known_after.sum())
    if min(n, m) < LEAST_ROWS:
        return None
    then, now = losses_before[known_before], losses_after[known_after]
    rise = float(now.mean() - then.mean())
    if not rise > 2.0 * math.sqrt(float(then.var(ddof=1)) / n + float(now.var(ddof=1)) / m):
        return None
    xs = [x for x, known in zip(before, known_before.tolist(), strict=True) if known]
    others = [x for x, known in zip(after, known_after.tolist(), strict=True) if known]
    names = dict.fromkeys(name for x in xs for name in x)
    columns = [_levels([x.get(name) for x in xs], [x.get(name) for x in others]) for name in names]
    effects = _effects([levels for levels, _ in columns], then)
    expected = math.fsum(float(of[levels].mean()) for of, (_, levels) in zip(effects, columns, strict=True))
    return min(max(expected / rise, 0.0), 1.0)


def kind_of_rise(expected: float | None, features: Sequence[Suspect], *, is_number: bool) -> Kind:
    """Return the kind of a loss rise for a model without probabilities.

    `harder` where the inputs explain a third of it or more. Otherwise `worse` for a model of numbers with a
    significant suspect, and `rose` in all other cases: doubtful labels lie where several features meet, so what the
    inputs do not explain says nothing about a model of labels.
    """
    if expected is None:
        return "rose"
    if expected >= HARDER:
        return "harder"
    return "worse" if is_number and any(feature.significant for feature in features) else "rose"


def _levels(before: Sequence[Any], after: Sequence[Any]) -> tuple[Ints, Ints]:
    """Return the level of each value; 0 for rare values without an effect.

    Numbers have the levels 1 to 8, by eighths of the numbers before; each other value has its own level. A value is
    rare if it came less than five times before.
    """
    keys, others = [kind_of(value) for value in before], [kind_of(value) for value in after]
    numbers = np.array([number for kind, number in keys if kind is NUMBER])
    # By values that there are: between infinite ones there is nothing to interpolate.
    shares = np.arange(1, _BINS) / _BINS
    edges = np.unique(np.quantile(numbers, shares, method="inverted_cdf")) if len(numbers) else numbers
    counts = Counter(kind for kind, _ in keys if kind is not NUMBER)
    codes = {kind: i for i, kind in enumerate(counts, start=_BINS + 1) if counts[kind] >= _LEAST_OF_LEVEL}
    found = []
    for of in (keys, others):
        places = np.searchsorted(edges, [number for _, number in of], side="right").tolist()
        levels = [1 + i if kind is NUMBER else codes.get(kind, 0) for (kind, _), i in zip(of, places, strict=True)]
        found.append(np.array(levels, dtype=np.int64))
    return found[0], found[1]


def _effects(columns: Sequence[Ints], losses: Array) -> list[Array]:
    """Return each level's effect on the loss, by column, with mean 0."""
    n, left = len(losses), losses - losses.mean()
    sizes = [np.bincount(levels).astype(np.float64) for levels in columns]
    effects = [np.zeros(len(size)) for size in sizes]
    for _ in range(_ROUNDS):
        for j, (levels, size) in enumerate(zip(columns, sizes, strict=True)):
            own = left + effects[j][levels]
            effects[j] = _shrunk(levels, size, own, n)
            left = own - effects[j][levels]
    return effects


def _shrunk(levels: Ints, size: Array, left: Array, n: int) -> Array:
    """Return means shrunk by chance; 0 for level 0 and for unseen levels."""
    means = np.bincount(levels, left, len(size)) / np.maximum(size, 1.0)
    within = left - means[levels]
    counted = size > 0.0
    counted[0] = False
    if (k := int(counted.sum())) < 2:
        return np.zeros(len(size))
    n_counted = float(size[counted].sum())
    noise = float((within[levels > 0] ** 2).sum()) / max(n_counted - k, 1.0)
    centre = float((means * size)[counted].sum()) / n_counted
    off = np.where(counted, means - centre, 0.0)
    beyond = float((size * off * off).sum()) / n_counted - noise * (k - 1) / n_counted
    if beyond <= 0.0:
        return np.zeros(len(size))
    effect = off * size / np.maximum(size + noise / beyond, 1.0)  # where there is none, `off` is 0
    return np.where(counted, effect - float((effect * size).sum()) / n, 0.0)
