"""iPFI and iSAGE written out slowly from the papers, on the same draws as the explainers make.

The reservoirs are those of iPFI section 3.1, the increments those of iPFI Definition 4 and iSAGE Definitions 3 and 4.

Nothing is kept but the past: every mean is a direct weighted sum over it, and every order of the stored rows is sorted
from scratch. The explainer's generator is asked, per observation, in this order:

- iSAGE: a permutation of the players for every pair of permutations;
- `interventional`: iPFI for the draws of each player, iSAGE for those that serve all coalitions. Independent draws are
  slots of the reservoir. Stratified ones are numbers u in [0, 1): the position floor((k + u) L / m) for draw k of m,
  in the stored rows as the value of what is removed (iPFI) or the prediction (iSAGE) sorts them. iSAGE has two sets of
  draws, (m + 1) // 2 and m // 2 of them, one after the other;
- `product`: the same for every feature of its own, then a permutation of each feature's draws;
- `observational-trees`: per half of the draws a permutation of the strata and numbers in them, per feature, then slots;
- at last the reservoir, for the slot that is replaced, once full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attributary_explainers.imputers.conditional.sampler import EMPTY, ConditionalSampler
from tests.explainers.oracles import smoothing_weights

Row = dict[Any, Any]
Slopes = Callable[[Any, Any, float], tuple[float, float]]
"""`(y, label, p)`: first and second derivative of a loss in the probability of a label, or in the number."""


class NaiveReservoir:
    """A reservoir (iPFI section 3.1, iSAGE Algorithm 2) as a list, with each observation's number and prediction."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.size, self.rows, self.n_seen = kind, size, [], 0
        self.numbers: list[int] = []
        self.predictions: list[Any] = []

    def update(self, x: Row, prediction: Any, rng: np.random.Generator) -> None:
        slot = len(self.rows)
        if slot < self.size:
            for of in (self.rows, self.numbers, self.predictions):
                of.append(None)
        elif self.kind == "geometric":
            slot = int(rng.integers(self.size))
        elif self.kind == "sliding_window":
            slot = self.numbers.index(min(self.numbers))
        else:
            slot = int(rng.integers(self.n_seen + 1))
        if slot < self.size:
            self.rows[slot], self.numbers[slot], self.predictions[slot] = dict(x), self.n_seen, prediction
        self.n_seen += 1

    def by_values(self, features: Sequence[Any]) -> list[int]:
        """Slots by the values of features, an absent one before all values."""
        return sorted(
            range(len(self.rows)), key=lambda s: ([(f in self.rows[s], self.rows[s].get(f, 0)) for f in features], s)
        )

    def by_prediction(self) -> list[int]:
        """Slots by number, or by the most probable class and its probability; no prediction comes first."""

        def key(slot: int) -> Any:
            p = self.predictions[slot]
            if not isinstance(p, dict):
                return (0, 0.0 if p is None else p, 0.0, slot)
            label = max(p, key=p.__getitem__)
            return (1, label, p[label], slot)

        return sorted(range(len(self.rows)), key=key)


class Naive:
    """The history of increments of either method, and the sums that the papers define on it.

    `slopes` gives the derivatives of the loss, None for one that has none; with `bias_correction` the bias of few draws
    is taken out.
    """

    def __init__(
        self,
        predict: Callable[[Row], Any],
        loss: Callable[[Any, Any], float],
        *,
        alpha: float,
        n_samples: int,
        kind: str,
        size: int,
        seed: int,
        sampling: str = "independent",
        removal: str = "interventional",
        groups: dict[str, list[Any]] | None = None,
        n_permutations: int = 1,
        slopes: Slopes | None = None,
        bias_correction: bool = False,
        most_bias: float = math.inf,
        sampler: ConditionalSampler | None = None,
    ) -> None:
        self.predict, self.loss, self.alpha, self.m = predict, loss, alpha, n_samples
        self.sampling, self.removal, self.groups, self.n_permutations = sampling, removal, groups or {}, n_permutations
        self.slopes, self.bias_correction, self.most_bias = slopes, bias_correction, most_bias
        self.reservoir = NaiveReservoir(kind, size)
        self.rng = np.random.default_rng(seed)
        self.sampler = sampler
        self.increments: list[dict[Any, float]] = []
        self.predictions: list[Any] = []
        self.marginal_losses: list[float] = []
        self.model_losses: list[float] = []
        self.history: list[tuple[int, dict[Any, list[tuple[int, float]]]]] = []
        """Per increment the number of its observation; per player the draws: whose row it was, and the draw's part."""

    def players(self, x: Row) -> dict[Any, list[Any]]:
        group_of = {f: name for name, features in self.groups.items() for f in features}
        in_x = {group_of.get(f, f): self.groups.get(group_of.get(f), [f]) for f in x}
        return {**in_x, **{name: features for name, features in self.groups.items() if name not in in_x}}

    # The draws.

    def positions(self, n: int, n_sets: int) -> list[list[int]]:
        """Of each set `n` positions in the stored rows, one in each of n equal parts."""
        size = len(self.reservoir.rows)
        return [
            [min(math.floor((k + u) * (size / n)), size - 1) for k, u in enumerate(of_set)]
            for of_set in self.rng.random((n_sets, n)).tolist()
        ]

    def slots_by_value(self, keys: list[list[Any]], n: int) -> list[list[int]]:
        if self.sampling == "independent":
            return self.rng.integers(len(self.reservoir.rows), size=(len(keys), n)).tolist()
        orders = [self.reservoir.by_values(features) for features in keys]
        return [[o[i] for i in of] for o, of in zip(orders, self.positions(n, len(keys)), strict=True)]

    def slots_for_all(self) -> list[int]:
        if self.sampling == "independent":
            return self.rng.integers(len(self.reservoir.rows), size=self.m).tolist()
        order = self.reservoir.by_prediction()
        return [order[i] for half in self.halves() for i in self.positions(half, 1)[0]]

    def halves(self) -> list[int]:
        """Two halves, and a draw on its own where m is odd."""
        return [size for size in (self.m // 2, self.m // 2, self.m % 2) if size]

    def mixed(self, features: list[Any], n: int) -> list[Row]:
        """`n` rows of which every feature has its own source: a feature that the source lacks is marked EMPTY."""
        slots = self.rng.permuted(np.array(self.slots_by_value([[f] for f in features], n)), axis=1)
        rows = self.reservoir.rows
        return [{f: rows[slots[j, k]].get(f, EMPTY) for j, f in enumerate(features)} for k in range(n)]

    def uniform_numbers(self, n_features: int) -> np.ndarray:
        if self.sampling == "independent":
            return self.rng.random((self.m, n_features))
        columns = [np.zeros((0, n_features))]
        for half in self.halves():
            strata = np.array([[k] * n_features for k in range(half)], dtype=int).reshape(half, n_features)
            strata = self.rng.permuted(strata, axis=0)
            columns.append((strata + self.rng.random((half, n_features))) / half)
        return np.concatenate(columns)

    def conditional(self, x: Row, kept: list[Any], removed: list[Any], u: Sequence[float], slot: int) -> Row:
        given = {f: x[f] for f in kept if f in x}
        drawn = {f: self.sampler.draw(f, given, set(given), u[j]) for j, f in enumerate(removed)}
        return {f: self.reservoir.rows[slot].get(f, EMPTY) if v is EMPTY else v for f, v in drawn.items()}

    # The two methods.

    def pfi_step(self, x: Row, y: Any) -> None:
        """Definition 4 with one draw at a time."""
        if self.reservoir.rows and self.predict(x) is not None:
            increments, draws = {}, {}
            players, numbers = self.players(x), self.reservoir.numbers
            single = all(len(features) == 1 for features in players.values())
            if self.removal == "interventional" or (self.removal == "product" and single):
                slots = self.slots_by_value(list(players.values()), self.m)
            for j, (player, features) in enumerate(players.items()):
                if self.removal == "observational-trees":
                    u = self.uniform_numbers(len(features)).tolist()
                    of_player = self.rng.integers(len(self.reservoir.rows), size=self.m).tolist()
                    others = [f for f in x if f not in features]
                    sources = [self.conditional(x, others, features, u[k], of_player[k]) for k in range(self.m)]
                elif self.removal == "product" and not single:
                    sources = self.mixed(features, self.m)
                else:
                    sources = [{f: self.reservoir.rows[s].get(f, EMPTY) for f in features} for s in slots[j]]
                growth = [
                    self.loss(y, self.predict(filled({**x, **z}))) - self.loss(y, self.predict(x)) for z in sources
                ]
                increments[player] = float(np.mean(growth))
                if self.removal != "observational-trees" and (self.removal == "interventional" or single):
                    draws[player] = [(numbers[s], g) for s, g in zip(slots[j], growth, strict=True)]
            self.increments.append(increments)
            self.history.append((self.reservoir.n_seen, draws))
        self.finish(x)

    def sage_step(self, x: Row, y: Any) -> None:
        """Algorithm 1: walk each permutation, every coalition evaluated on its own."""
        if self.reservoir.rows and self.predict(x) is not None:
            players, slots = self.players(x), None
            names, everything = list(players), [f for features in players.values() for f in features]
            orders: list[list[Any]] = []
            for i in range(self.n_permutations):
                drawn = self.rng.permutation(len(names)).tolist() if i % 2 == 0 else None
                orders.append([names[k] for k in drawn] if drawn is not None else list(reversed(orders[-1])))
            if self.removal == "interventional":
                slots = self.slots_for_all()
                sources = [{f: self.reservoir.rows[s].get(f, EMPTY) for f in everything} for s in slots]
            elif self.removal == "product":
                sources = [row for half in self.halves() for row in self.mixed(everything, half)]
            else:
                u = self.uniform_numbers(len(everything)).tolist()
                own_slots = self.rng.integers(len(self.reservoir.rows), size=self.m).tolist()
            self.predictions.append(self.predict(x))

            def rows(kept: list[Any]) -> list[Row]:
                of_kept = [f for player in kept for f in players[player]]
                known = {f: x.get(f, EMPTY) for f in of_kept}
                if self.removal != "observational-trees":
                    return [filled({**z, **known}) for z in sources]
                removed = [f for f in everything if f not in of_kept]
                columns = [everything.index(f) for f in removed]
                return [
                    filled({**self.conditional(x, of_kept, removed, [u[k][c] for c in columns], own_slots[k]), **known})
                    for k in range(self.m)
                ]

            def coalition(kept: list[Any]) -> tuple[float, np.ndarray]:
                """Loss without its bias, and how far each draw sways it."""
                if not kept:
                    weights = smoothing_weights(self.alpha, len(self.predictions))
                    return self.loss(y, weighted(self.predictions, weights)), np.zeros(self.m)
                if len(kept) == len(names):
                    return self.loss(y, self.predict(x)), np.zeros(self.m)
                outcomes = [self.predict(row) for row in rows(kept)]
                loss = self.loss(y, weighted(outcomes, np.full(self.m, 1.0 / self.m)))
                return loss - self.bias(y, outcomes), self.sway(y, outcomes)

            share, numbers = 1.0 / len(orders), self.reservoir.numbers
            increments, parts = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
            for order in orders:
                for k, player in enumerate(order):
                    (before, sway_before), (after, sway_after) = coalition(order[:k]), coalition(order[: k + 1])
                    increments[player] += share * (before - after)
                    parts[player] = parts[player] + share * (before - after + sway_before - sway_after)
            has_parts = slots is not None and self.slopes is not None and self.m > 1 and len(names) > 1
            of_slots = {p: list(zip([numbers[s] for s in slots], parts[p], strict=True)) for p in names if has_parts}
            self.increments.append(increments)
            self.history.append((self.reservoir.n_seen, of_slots))
            self.marginal_losses.append(coalition([])[0])
            self.model_losses.append(coalition(names)[0])
        self.finish(x)

    def finish(self, x: Row) -> None:
        if self.sampler is not None:
            self.sampler.update(x)
        self.reservoir.update(x, self.predict(x), self.rng)

    def bias(self, y: Any, outcomes: list[Any]) -> float:
        """Half the curvature times the variance of the mean, as the docstring of `IncrementalSAGE` writes it."""
        if not self.bias_correction or self.slopes is None or self.m == 1:
            return 0.0
        total, k = 0.0, self.m // 2
        for label, values in components(outcomes):
            curvature = self.slopes(y, label, float(np.mean(values)))[1]
            between = float(np.mean(values[:k]) - np.mean(values[k : 2 * k]))
            of_mean = between**2 / 4
            if self.m % 2:
                of_mean = (k**2 * between**2 + np.var(values)) / (self.m**2 - 1)
            n_rows = math.inf if self.removal == "observational-trees" else len(self.reservoir.rows)
            of_rows = (np.var(values) + of_mean) / (n_rows - 1) if n_rows > 1 else 0.0
            total += 0.5 * curvature * (of_mean + of_rows)
        return float(min(total, self.most_bias))

    def sway(self, y: Any, outcomes: list[Any]) -> np.ndarray:
        total = np.zeros(self.m)
        if self.slopes is not None:
            for label, values in components(outcomes):
                total += self.slopes(y, label, float(np.mean(values)))[0] * (values - np.mean(values))
        return total

    # What is read.

    def raw(self) -> dict[Any, float]:
        """phi_t = sum of alpha (1 - alpha)^(t - i) increment_i: the recursion from 0, written out."""
        n = len(self.increments)
        names = dict.fromkeys(name for step in self.increments for name in step)
        return {
            name: sum(
                self.alpha * (1 - self.alpha) ** (n - 1 - i) * step.get(name, 0.0)
                for i, step in enumerate(self.increments)
            )
            for name in names
        }

    def corrected(self) -> dict[Any, float]:
        return {name: value / (1 - (1 - self.alpha) ** len(self.increments)) for name, value in self.raw().items()}

    def smoothed(self, losses: list[float]) -> float:
        return float(np.dot(smoothing_weights(self.alpha, len(losses)), losses))

    def std_error(self) -> dict[Any, float]:
        """The larger of the two variances that `SmoothedImportance.std_error` names, and its root."""
        n = len(self.increments)
        weights = smoothing_weights(self.alpha, n)
        q = float(weights @ weights)
        errors = {}
        for name in dict.fromkeys(name for step in self.increments for name in step):
            values = np.array([step.get(name, 0.0) for step in self.increments])
            alone = float(weights @ (values - weights @ values) ** 2) / (1.0 - q) * q
            draws = [(number, of.get(name)) for number, of in self.history]
            errors[name] = math.sqrt(max(alone * 2.0 / 3.0, influence_variance(self.alpha, values, draws)))
        return errors


def influence_variance(
    alpha: float, values: Sequence[float], draws: Sequence[tuple[int, list[tuple[int, float]] | None]]
) -> float:
    """The variance that `RowInfluence` documents: its two sums over the whole history of one feature.

    Parameters
    ----------
    values
        Its increments.
    draws
        Per increment the number of its observation and, for each draw, the number of the observation whose row it was
        with the draw's part; None where there is no such thing.
    """
    n = len(values)
    weights = smoothing_weights(alpha, n)
    influence: dict[int, float] = {}
    twice = 0.0
    for t, (value, (number, of_draws)) in enumerate(zip(values, draws, strict=True)):
        if t == 0:
            continue  # the first increment is the mean: nothing deviates from it
        mean = float(smoothing_weights(alpha, t) @ np.array(values[:t]))
        influence[number] = influence.get(number, 0.0) + weights[t] * (value - mean)
        of_row: dict[int, float] = {}
        for source, part in of_draws or []:
            of_row[source] = of_row.get(source, 0.0) + weights[t] * (part - mean) / len(of_draws)
        for source, share in of_row.items():
            influence[source] = influence.get(source, 0.0) + share
            twice += share**2
    return sum(value * value for value in influence.values()) - twice


def filled(row: Row) -> Row:
    """The row without what is marked as absent."""
    return {f: v for f, v in row.items() if v is not EMPTY}


def components(outcomes: list[Any]) -> list[tuple[Any, np.ndarray]]:
    """Each class, or the number (None), with its values over the draws."""
    if not isinstance(outcomes[0], dict):
        return [(None, np.array(outcomes, dtype=float))]
    labels = dict.fromkeys(label for p in outcomes for label in p)
    return [(label, np.array([p.get(label, 0.0) for p in outcomes])) for label in labels]


def weighted(predictions: list[Any], weights: np.ndarray) -> Any:
    """Weighted mean of numbers, or of probabilities class by class."""
    if isinstance(predictions[0], dict):
        classes = dict.fromkeys(c for p in predictions for c in p)
        return {c: sum(w * p.get(c, 0.0) for w, p in zip(weights, predictions, strict=True)) for c in classes}
    return sum(w * p for w, p in zip(weights, predictions, strict=True))
