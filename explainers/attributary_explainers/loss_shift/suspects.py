"""Names the features that go with a loss shift, from stored rows.

A model of numbers does not say how sure it is. Where targets are noisier in one region than in another, and more
observations come from there, the loss rises although the model is no worse. The observations from before the shift
show how much is lost in each region.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ..batch.contributions import pfi_contributions
from ..batch.tables import DataTable
from ..errors import ModelError
from ..losses.losses import Loss, as_loss
from ..missing import read_missing
from ..models.function import model_function
from ..predictions import is_usable, predict_rows
from ..ranking import SIGNIFICANCE, holm, p_value
from ..removal.imputer import replace as swap
from ..typing import Array, Features, Groups, Importance, Ints, ModelFunction, Output, Prediction
from ..validation import LARGEST
from .distance import NUMBER, kind_of, moved
from .events import Kind, LossShift, LossShiftExplained, Suspect
from .rows import KeptRows, Row, Stratum

LEAST_ROWS = 20
"""With fewer observations no importance is known."""
_NOTHING = 1e-12
_MOST = 200.0
"""So many times the median loss, of before or after, is the most that one observation counts.

That is for losses without a largest value. Of normal errors, under the squared loss, it is an error of ten standard
deviations.
"""
_FAINT = 0.01
"""Weight of what is not significant: it orders the features that are below."""
_EPSILON = 1e-6
"""Probabilities are at least this before a logarithm: one surprise costs 13.8 nats at most."""
_DRAWS = 100
"""Evaluations for each feature of a rare label, at least."""
_NAMED = 0.05
"""Share of the largest score that a feature must have to be named."""
_LEAST_LOSSES = 100
"""With fewer observations on one side nothing is said."""
_HARDER = 1.0 / 3.0
"""Share of a rise that the inputs explain, from which on observations are told to be harder."""
_BINS = 8
_LEAST_OF_LEVEL = 5
_ROUNDS = 4

Missing = str | Mapping[Any, Any]


def examine(
    model: Any,
    output: Output,
    shift: LossShift,
    rows: KeptRows,
    observation: int,
    *,
    groups: Groups | None = None,
    missing: Missing = "absent",
    seed: int = 0,
) -> LossShiftExplained:
    """Return the shift with its features, and its kind if inputs tell it."""
    function, loss = model_function(model, output), naming_loss(output)
    before, after = rows.before(), rows.after()
    rare = () if output == "number" else rows.rare()
    found = suspects(function, loss, before, after, rare=rare, groups=groups, missing=missing, seed=seed)
    expected = None
    if output != "probabilities" and shift.kind != "level":
        watched = as_loss("absolute" if output == "number" else "zero_one")
        lost = [losses(function, watched, side, missing) for side in (before, after)]
        expected = expected_share([x for x, _ in before], lost[0], [x for x, _ in after], lost[1])
        told = kind_of_rise(expected, found, is_number=output == "number")
        # More noise moves the slope, too: where inputs explain the rise, only its own test says that it is worse.
        if shift.kind == "rose" or (told == "harder" and shift.signal != "slope"):
            shift = replace(shift, kind=told)
    return LossShiftExplained(shift, observation, found, len(before), len(after), expected, loss.name)


def naming_loss(output: Output) -> Loss:
    """Return the loss that names features best for a kind of prediction.

    For numbers it is the squared loss, whatever the route watches. Under the absolute loss every feature's importance
    falls when errors grow for any reason; under the squared loss the importance of the other features stays.
    """
    if output == "probabilities":
        return as_loss("cross_entropy", epsilon=_EPSILON)
    return as_loss("zero_one" if output == "label" else "squared")


def losses(function: ModelFunction, loss: Loss, rows: Sequence[Row], missing: Missing = "absent") -> Array:
    """Return the model's loss on each observation, NaN where not finite."""
    return _Table(function, loss, rows, {}, missing).own_losses


class _Table(DataTable):
    """Observations, some without a prediction, and groups of features."""

    def __init__(
        self,
        function: ModelFunction,
        loss: Loss,
        rows: Sequence[Row],
        players: Mapping[Any, Sequence[Any]],
        missing: Missing,
    ) -> None:
        self.function, self.loss, self.players, self.missing = function, loss, dict(players), missing
        self.rows, self.xs, self.ys = rows, [x for x, _ in rows], [y for _, y in rows]

    def bound(self, most: float) -> None:
        """Let no observation count more than `most`."""
        function = self.loss.function
        self.loss = replace(self.loss, function=lambda y, prediction: min(function(y, prediction), most))
        self.own_losses = self.losses(self.own_predictions)

    def usable(self) -> _Table:
        """Return the observations of finite loss."""
        is_known = np.isfinite(self.own_losses)
        rows = [row for row, known in zip(self.rows, is_known.tolist(), strict=True) if known]
        found = _Table(self.function, self.loss, rows, self.players, self.missing)
        found.own_losses = self.own_losses[is_known]
        return found

    def predictions(self, rows: Sequence[Features]) -> list[Prediction]:
        """Return predictions; None where missing or where a row is left out."""
        if self.missing == "value":
            return _predicted(self.function, rows)
        read = [read_missing(row, self.missing) for row in rows]
        kept = iter(_predicted(self.function, [row for row in read if row is not None]))
        return [None if row is None else next(kept) for row in read]

    def drawn(self, name: Any, pool: Sequence[Features], rng: np.random.Generator) -> Array:
        """Return the losses with a player's values drawn from these rows."""
        places = rng.integers(len(pool), size=len(self.xs)).tolist()
        rows = [swap(x, self.players[name], pool[i]) for x, i in zip(self.xs, places, strict=True)]
        return self.losses(self.predictions(rows))

    def loss_of(self, i: int, prediction: Prediction) -> float:
        """Return the loss of a prediction for row `i`, NaN if not finite."""
        y = self.ys[i]
        if y is None or not is_usable(prediction):
            return math.nan
        try:
            found = self.loss(y, prediction)
        except ModelError:  # a target that is no number
            return math.nan
        return found if abs(found) < LARGEST else math.nan


_Part: TypeAlias = dict[Any, tuple[float, float]]
"""By player: what a rare label adds to the importance, and its standard error."""


def _predicted(function: ModelFunction, rows: Sequence[Features]) -> list[Prediction]:
    try:
        return predict_rows(function, rows)
    except Exception:  # noqa: BLE001 - a damaged row is what this is about: it must not cost all the others
        if len(rows) == 1:
            return [None]
        half = len(rows) // 2
        return _predicted(function, rows[:half]) + _predicted(function, rows[half:])


def _bound(loss: Loss, *tables: _Table) -> None:
    """Bound a loss that has no largest value by its values before and after."""
    known = [of[np.isfinite(of)] for of in (table.own_losses for table in tables)]
    most = _MOST * max((float(np.median(of)) for of in known if len(of)), default=0.0)
    if loss.largest is None and most > 0.0:
        for table in tables:
            table.bound(most)


def _importance(table: _Table, n_permutations: int, rng: np.random.Generator) -> tuple[Importance, Importance]:
    """Return permutation importances and standard errors, NaN for few rows."""
    table = table.usable()
    if len(table.rows) < LEAST_ROWS:
        nothing = dict.fromkeys(table.players, math.nan)
        return nothing, nothing
    (found,) = pfi_contributions([table], n_permutations, rng)
    assert found.parts is not None
    parts = np.nan_to_num(found.parts, nan=0.0)  # where a permuted row has no prediction
    least = _NOTHING * np.abs(found.losses).mean()  # two sums of the same in another order differ by that
    parts[np.abs(parts) <= least] = 0.0
    cleaned = replace(found, parts=parts, own=parts.mean(axis=2))
    return cleaned.importance, cleaned.std_error


def _of_rare(
    rare: Sequence[Stratum], then: _Table, now: _Table, n_permutations: int, rng: np.random.Generator
) -> list[tuple[_Part, _Part]]:
    """Return the rare labels' additions to importances, before and after.

    A player's values are drawn from all observations of the same side. The spread among few observations says little:
    both sides have the larger of the two.
    """
    found = []
    for stratum in rare:
        sides = []
        for of, pool in ((stratum.before, then), (stratum.after, now)):
            table = _Table(pool.function, pool.loss, of, pool.players, pool.missing).usable()
            n_draws = max(n_permutations, -(-_DRAWS // max(len(of), 1)))
            sides.append(
                {
                    name: np.mean([table.drawn(name, pool.xs, rng) for _ in range(n_draws)], axis=0) - table.own_losses
                    for name in pool.players
                }
            )
        spread = {name: max(float(of[name].std(ddof=1)) for of in sides) for name in then.players}
        before, after = (
            {
                name: (stratum.share * float(of.mean()), stratum.share * spread[name] / math.sqrt(len(of)))
                for name, of in side.items()
            }
            for side in sides
        )
        found.append((before, after))
    return found


def _weighted(
    phi: Importance, error: Importance, weight: float, parts: Sequence[_Part]
) -> tuple[Importance, Importance]:
    """Return importances and standard errors, with rare labels added."""
    return (
        {name: weight * phi[name] + sum(part[name][0] for part in parts) for name in phi},
        {name: math.hypot(weight * error[name], *(part[name][1] for part in parts)) for name in error},
    )


def _repaired(
    before: _Table, after: _Table, names: Sequence[Any], rng: np.random.Generator
) -> dict[Any, tuple[float, float]]:
    """Return how far drawing a player from before lowers the loss after.

    Each player has the mean gain and its standard error. Empty where there are too few observations.
    """
    if min(len(before.xs), len(after.xs)) < LEAST_ROWS:
        return {}
    found, base = {}, after.own_losses
    least = _NOTHING * np.abs(np.nan_to_num(base, nan=0.0)).mean()
    for name in names:
        gain = np.nan_to_num(base - after.drawn(name, before.xs, rng), nan=0.0)
        gain[np.abs(gain) <= least] = 0.0
        found[name] = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))
    return found


def suspects(
    function: ModelFunction,
    loss: Loss,
    before: Sequence[Row],
    after: Sequence[Row],
    *,
    rare: Sequence[Stratum] = (),
    groups: Groups | None = None,
    missing: Missing = "absent",
    seed: int = 0,
    n_permutations: int | None = None,
) -> tuple[Suspect, ...]:
    """Return all features, the most suspicious of a shift of the loss first.

    With phi the permutation importance (iPFI Definition 2), m how far the distribution of the feature's values has
    moved beyond chance (`moved`), and r by how much the loss after falls where a feature that has moved is drawn from
    before, the score is, in the unit of the loss,

        |phi_after - phi_before| [significant] + m max(0, phi_before) + r [r > 0, significant]
            + .01 (|phi_after - phi_before| + m max(0, phi_before)).

    The first term sees a feature whose values no longer belong to their observations. It is blind to noise that is
    added to a feature: the importance stays. The second one sees that, and does not see features that move where the
    model does not care. The third one tells a feature of values far out (another unit) from those whose importance goes
    because no other feature counts any more. A feature that the model does not read has importances and r 0 exactly,
    and the score 0. No part of this says that a feature is the cause: one that goes with the damaged one may be named
    beside it.

    `p_value` is of the change of the importance (two-sided normal test, Holm). `significant`: that is at most .05, or
    the feature has moved and was important before, or is better drawn from before (each one-sided, Holm) at that level;
    and the score is at least .05 of the largest one. Without 20 observations that the model can be asked about the
    importances of that side are NaN, and without those of before features are ordered by `moved`.

    Parameters
    ----------
    loss
        Of one prediction, see `naming_loss`. Where it has no largest value, one observation counts at most 200 times
        the median loss, of before or after, whichever is larger.
    before, after
        Observations `(x, y)` of the clean reference and of after the onset. Those for which the model has no prediction
        of finite loss count for `moved` alone, for which a missing value is a value.
    rare
        Observations of labels that are rare among them. The importance is that of a stratified sample, in which each of
        these labels has its share of all observations, the same before and after: more observations of a label change
        nothing, and observations that are no longer where they were do.
    n_permutations
        None is 3 where the model predicts many rows at once, else 1, with which features are named somewhat less often.
        Cost: (2 + d (n_permutations + 1)) evaluations at most for each observation, d features.
    """
    labels = {stratum.label for stratum in rare}
    if labels:
        before, after = ([row for row in side if row[1] not in labels] for side in (before, after))
    players = _players([x for x, _ in (*before, *after)], groups or {})
    if n_permutations is None:
        n_permutations = 3 if hasattr(function, "many") else 1
    rng = np.random.default_rng(seed)
    then, now = (_Table(function, loss, rows, players, missing) for rows in (before, after))
    _bound(loss, then, now)
    (phi, error), (phi_after, error_after) = (_importance(table, n_permutations, rng) for table in (then, now))
    common = 1.0 - sum(stratum.share for stratum in rare)
    if rare:
        of_rare = _of_rare(rare, then, now, n_permutations, rng)
        phi, error = _weighted(phi, error, common, [before for before, _ in of_rare])
        phi_after, error_after = _weighted(phi_after, error_after, common, [after for _, after in of_rare])
    level = SIGNIFICANCE / max(1, sum(map(len, players.values())))
    distances = {
        name: max(
            (moved([x.get(f) for x in then.xs], [x.get(f) for x in now.xs], level) for f in features), default=0.0
        )
        for name, features in players.items()
    }
    delta = {name: phi_after[name] - phi[name] for name in players}
    errors = {name: math.hypot(error[name], error_after[name]) for name in players}
    p_values = holm({name: p_value(delta[name], errors[name]) for name in players})
    worth = holm({name: _one_sided(phi[name], error[name]) for name in players})
    gains = _repaired(then, now, [name for name in players if distances[name]], rng)
    better = holm({name: _one_sided(*gain) for name, gain in gains.items()})
    scores = {}
    for name in players:
        # What is not known adds nothing: damage may be such that the model cannot be asked at all.
        size = abs(delta[name]) if delta[name] == delta[name] else 0.0
        exposed = distances[name] * max(0.0, phi[name]) if phi[name] == phi[name] else 0.0
        scores[name] = size * (p_values[name] <= SIGNIFICANCE) + exposed + _FAINT * (size + exposed)
        if better.get(name, 1.0) <= SIGNIFICANCE:
            scores[name] += gains[name][0]
    least = _NAMED * max(scores.values(), default=0.0)
    found = [
        Suspect(
            name=name,
            score=scores[name],
            importance_before=phi[name],
            importance_after=phi_after[name],
            delta=delta[name],
            delta_std_error=errors[name],
            p_value=p_values[name],
            moved=distances[name],
            significant=scores[name] >= least
            and scores[name] > 0.0
            and min(p_values[name], better.get(name, 1.0), worth[name] if distances[name] else 1.0) <= SIGNIFICANCE,
        )
        for name in players
    ]
    return tuple(sorted(found, key=lambda one: (-one.score, -one.moved, str(one.name))))


def _one_sided(value: float, std_error: float) -> float:
    return p_value(value, std_error) / 2.0 if value > 0.0 else 1.0


def _players(xs: Sequence[Features], groups: Groups) -> dict[Any, tuple[Any, ...]]:
    """Return the features and groups that are permuted, by first appearance."""
    of_group = {feature: name for name, features in groups.items() for feature in features}
    players: dict[Any, tuple[Any, ...]] = {}
    for feature in dict.fromkeys(feature for x in xs for feature in x):
        name = of_group.get(feature, feature)
        players[name] = tuple(groups[name]) if feature in of_group else (feature,)
    return players


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
    if min(n, m) < _LEAST_LOSSES:
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
    if expected >= _HARDER:
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
