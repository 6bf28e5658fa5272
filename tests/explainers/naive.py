"""iPFI and iSAGE written out slowly from the papers, on the same draws as the explainers make.

The papers' reservoirs are those of iPFI section 3.1, the increments those of iPFI Definition 4 and iSAGE Definitions 3
and 4. What goes beyond the papers is from the docstrings of `LaggedReservoir`, `IncrementalSAGE` and
`SmoothedImportance`.

Nothing is kept but the past: every mean is a direct weighted sum over it, and every order of the stored rows is sorted
from scratch. The explainer's generator is asked, per observation, in this order:

- iSAGE: a permutation of the players for every pair of permutations, by Fisher and Yates: for each place, the last
  one first, a number u in [0, 1), by which it changes with one of those up to it;
- `interventional`: iPFI for the draws of each player, iSAGE for those that serve all coalitions. Independent draws are
  slots of the reservoir. Stratified ones are numbers u in [0, 1): the position floor((k + u) L / m) for draw k of m,
  in the stored rows as the value of what is removed (iPFI) or the prediction (iSAGE) sorts them. iSAGE has two sets of
  draws, m // 2 and m - m // 2 of them, one after the other; where the bias is taken out all are numbers u, the first
  set in the older half of the stored rows, the second in the younger one, and independent draws are the positions
  floor(u L) in such a half as the slots are numbered;
- `product`: the same for every feature of its own and in all stored rows, then a permutation of each feature's draws;
- `observational-trees`: per set of draws a permutation of the strata and numbers in them, per feature, then slots;
- at last the reservoir, for the slot that is replaced, once full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy import stats

from attributary_explainers.removal.conditional import EMPTY, ConditionalSampler
from tests.explainers.oracles import smoothing_weights

Row = dict[Any, Any]


class NaiveReservoir:
    """A reservoir as a list, with each observation's number, from 0 on, and prediction.

    The papers' are those of iPFI section 3.1 and iSAGE Algorithm 2, `lagged` is that of the docstring of
    `LaggedReservoir`.
    """

    def __init__(self, kind: str, size: int, gap: int = 0, reach: int = 0) -> None:
        self.kind, self.size, self.gap, self.reach = kind, size, gap, reach
        self.rows: list[Row] = []
        self.numbers: list[int] = []
        self.predictions: list[Any] = []
        self.seen: list[tuple[Row, Any]] = []
        self.waiting: list[int] = []

    def update(self, x: Row, prediction: Any, rng: np.random.Generator) -> None:
        self.seen.append((dict(x), prediction))
        n = len(self.seen)
        if self.kind != "lagged":
            self.store(n - 1, self.slot(n - 1, rng))
            return
        if rng.random() < min(1.0, self.size / min(n, 2 / 3 * self.reach)):
            self.waiting.append(n - 1)
        in_room = [number for number in self.waiting if number < max(n + 1 - self.gap, (n + 1) // 2)]
        reach = max(self.reach, self.size)
        if len(in_room) > math.floor(self.size / 2 * min(n, reach) / reach):
            number = in_room[math.floor(rng.random() * len(in_room))]
            self.waiting.remove(number)
            is_full = len(self.rows) == self.size
            self.store(number, math.floor(rng.random() * self.size) if is_full else len(self.rows))

    def slot(self, number: int, rng: np.random.Generator) -> int:
        if number < self.size:
            return number
        if self.kind == "geometric":
            return int(rng.integers(self.size))
        if self.kind == "sliding_window":
            return self.numbers.index(min(self.numbers))
        return int(rng.integers(number + 1))

    def store(self, number: int, slot: int) -> None:
        if slot == len(self.rows) < self.size:
            for of in (self.rows, self.numbers, self.predictions):
                of.append(None)
        if slot < self.size:
            self.rows[slot], self.predictions[slot] = self.seen[number]
            self.numbers[slot] = number

    def by_age(self) -> tuple[list[int], list[int]]:
        """Slots of the older half of the rows, and of the others."""
        slots = sorted(range(len(self.rows)), key=self.numbers.__getitem__)
        n = len(slots) // 2
        return slots[:n], slots[n:]

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
    """The history of increments of either method, and the sums that the papers and docstrings define on it.

    With `bias_correction` the bias of few draws is taken out, and at most `most_bias` of it.
    """

    def __init__(
        self,
        predict: Callable[[Row], Any],
        loss: Callable[[Any, Any], float],
        *,
        alpha: float,
        n_samples: int,
        reservoir: NaiveReservoir,
        seed: int,
        sampling: str = "independent",
        removal: str = "interventional",
        groups: dict[str, list[Any]] | None = None,
        n_permutations: int = 1,
        bias_correction: bool = False,
        is_smooth: bool = True,
        most_bias: float = math.inf,
        sampler: ConditionalSampler | None = None,
    ) -> None:
        self.predict, self.loss, self.alpha, self.m = predict, loss, alpha, n_samples
        self.sampling, self.removal, self.groups, self.n_permutations = sampling, removal, groups or {}, n_permutations
        self.by_age = bias_correction and n_samples > 1
        self.without_noise, self.most_bias = bias_correction and is_smooth, most_bias
        self.reservoir = reservoir
        self.rng = np.random.default_rng(seed)
        self.sampler = sampler
        self.increments: list[dict[Any, float]] = []
        self.times: list[int] = []
        """How many observations each of the increments stands for."""
        self.stands_for = 1
        self.predictions: list[Any] = []
        """For every observation before this one, explained or not."""
        self.marginal_losses: list[float] = []
        self.model_losses: list[float] = []

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
        if self.by_age:
            older, younger = self.reservoir.by_age()
            numbers, (n_older, n_younger) = self.rng.random(self.m).tolist(), self.sets()
            first = self.spread(numbers[:n_older], older or younger, n_older)
            return first + self.spread(numbers[n_older:], younger, n_younger)
        if self.sampling == "independent":
            return self.rng.integers(len(self.reservoir.rows), size=self.m).tolist()
        order = self.reservoir.by_prediction()
        return [order[i] for of_set in self.sets() for i in self.positions(of_set, 1)[0]]

    def spread(self, numbers: Sequence[float], slots: list[int], n: int) -> list[int]:
        if self.sampling == "independent":
            return [sorted(slots)[math.floor(u * len(slots))] for u in numbers]
        order = [slot for slot in self.reservoir.by_prediction() if slot in slots]
        return [order[min(math.floor((k + u) * (len(order) / n)), len(order) - 1)] for k, u in enumerate(numbers)]

    def sets(self) -> list[int]:
        """The sizes of two halves of the draws."""
        return [self.m // 2, self.m - self.m // 2] if self.m > 1 else [1]

    def mixed(self, features: list[Any], n: int) -> list[Row]:
        """`n` rows of which every feature has its own source: a feature that the source lacks is marked EMPTY."""
        slots = self.rng.permuted(np.array(self.slots_by_value([[f] for f in features], n)), axis=1)
        rows = self.reservoir.rows
        return [{f: rows[slots[j, k]].get(f, EMPTY) for j, f in enumerate(features)} for k in range(n)]

    def uniform_numbers(self, n_features: int) -> np.ndarray:
        if self.sampling == "independent":
            return self.rng.random((self.m, n_features))
        columns = [np.zeros((0, n_features))]
        for half in self.sets():
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
            increments = {}
            players = self.players(x)
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
            self.add(increments)
        self.finish(x)

    def sage_step(self, x: Row, y: Any) -> None:
        """Algorithm 1: walk each permutation, every coalition evaluated on its own."""
        if self.reservoir.rows and self.predict(x) is not None:
            players = self.players(x)
            names, everything = list(players), [f for features in players.values() for f in features]
            orders: list[list[Any]] = []
            for i in range(self.n_permutations):
                drawn = permutation(len(names), self.rng) if i % 2 == 0 else None
                orders.append([names[k] for k in drawn] if drawn is not None else list(reversed(orders[-1])))
            if self.removal == "interventional":
                slots = self.slots_for_all()
                sources = [{f: self.reservoir.rows[s].get(f, EMPTY) for f in everything} for s in slots]
            elif self.removal == "product":
                sources = [row for half in self.sets() for row in self.mixed(everything, half)]
            else:
                u = self.uniform_numbers(len(everything)).tolist()
                own_slots = self.rng.integers(len(self.reservoir.rows), size=self.m).tolist()

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

            def coalition(kept: list[Any]) -> float:
                """Loss without its bias."""
                if not kept:
                    return self.loss_of_mean_prediction(x, y)
                if len(kept) == len(names):
                    return self.loss(y, self.predict(x))
                return self.loss_of_draws(y, [self.predict(row) for row in rows(kept)])

            increments = dict.fromkeys(names, 0.0)
            for order in orders:
                for k, player in enumerate(order):
                    step = coalition(order[:k]) - coalition(order[: k + 1])
                    increments[player] += step / len(orders)
            self.add(increments)
            self.marginal_losses.append(coalition([]))
            self.model_losses.append(coalition(names))
        self.finish(x)

    def pass_over(self, x: Row) -> None:
        """An observation that is not explained: the next one that is stands for it too."""
        self.stands_for += 1
        self.finish(x)

    def add(self, increments: dict[Any, float]) -> None:
        self.increments.append(increments)
        self.times.append(self.stands_for)
        self.stands_for = 1

    def finish(self, x: Row) -> None:
        if self.sampler is not None:
            self.sampler.update(x)
        prediction = self.predict(x)
        if prediction is not None:
            self.predictions.append(prediction)
        self.reservoir.update(x, prediction, self.rng)

    def loss_of_draws(self, y: Any, outcomes: list[Any]) -> float:
        """The loss of the mean or, of two halves of the draws, 2 l((a + b) / 2) - (l(a) + l(b)) / 2."""
        if not self.without_noise or self.m == 1:
            return self.loss(y, plain_mean(outcomes))
        a, b = plain_mean(outcomes[: self.m // 2]), plain_mean(outcomes[self.m // 2 :])
        of_mean, of_halves = self.loss(y, plain_mean([a, b])), (self.loss(y, a) + self.loss(y, b)) / 2
        return of_mean - min(of_halves - of_mean, self.most_bias)

    def loss_of_mean_prediction(self, x: Row, y: Any) -> float:
        """The loss of the mean prediction, smoothed twice and without the latest, which may not be drawn yet.

        To second order its noise adds (l(m + s) + l(m - s)) / 2 - l(m) for each component, s its standard error.
        """
        n, gap = len(self.predictions), self.reservoir.gap
        if gap == 0:
            past = [*self.predictions, self.predict(x)]
        else:
            past = self.predictions[: min(n, max(n + 1 - gap, (n + 1) // 2))] or [self.predict(x)]
        once = smoothing_weights(self.alpha, len(past))
        weights = once if gap == 0 else 2.0 * smoothing_weights(self.alpha / 2.0, len(past)) - once
        loss = self.loss(y, weighted(past, weights))
        if gap == 0 or not self.without_noise:
            return loss
        excess = 0.0
        for label, values in components(past):
            spread = Contrast(self.alpha, values, slower=2.0).std_error if len(values) > 1 else 0.0
            spread *= math.sqrt((weights @ weights) / (once @ once))
            if not spread > 0.0:
                continue

            def moved(by: float, label: Any = label) -> float:
                mean = weighted(past, weights)
                return self.loss(y, mean + by if label is None else {**mean, label: mean[label] + by})

            excess += (moved(spread) + moved(-spread)) / 2 - loss
        return loss - min(excess, self.most_bias)

    # What is read.

    def raw(self) -> dict[Any, float]:
        """phi_t = sum of alpha (1 - alpha)^(t - i) increment_i: the recursion from 0, written out.

        An increment that stands for k observations has the weights of k.
        """
        values = self.by_name()
        weights = weights_of(self.alpha, self.times) * (1 - (1 - self.alpha) ** sum(self.times))
        return {name: float(weights @ of_name) for name, of_name in values.items()}

    def by_name(self) -> dict[Any, np.ndarray]:
        names = dict.fromkeys(name for step in self.increments for name in step)
        return {name: np.array([step.get(name, 0.0) for step in self.increments]) for name in names}

    def corrected(self) -> dict[Any, float]:
        weights = weights_of(self.alpha, self.times)
        return {name: float(weights @ values) for name, values in self.by_name().items()}

    def smoothed(self, losses: list[float]) -> float:
        return float(weights_of(self.alpha, self.times) @ losses)

    def std_error(self) -> dict[Any, float]:
        return {name: Contrast(self.alpha, values, self.times).std_error for name, values in self.by_name().items()}

    def half_width(self) -> dict[Any, float]:
        return {name: Contrast(self.alpha, values, self.times).half_width for name, values in self.by_name().items()}


def permutation(n: int, rng: np.random.Generator) -> list[int]:
    order = list(range(n))
    for i in reversed(range(1, n)):
        j = math.floor(rng.random() * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


def weights_of(alpha: float, times: Sequence[int]) -> np.ndarray:
    """Normalised weights of increments of which each stands for so many observations: the sums of theirs."""
    return _weights_of(alpha, tuple(times))


@cache
def _weights_of(alpha: float, times: tuple[int, ...]) -> np.ndarray:
    ends = np.cumsum(times)
    own = 1.0 - (1.0 - alpha) ** np.asarray(times)
    weights = own * (1.0 - alpha) ** (ends[-1] - ends)
    return np.asarray(weights / weights.sum())


class Contrast:
    """The sums that `SmoothedImportance` documents, over the whole history of one feature.

    At each prefix: phi, of rate alpha, and s, of rate alpha / slower, with their weights w and v. S and Q are weighted
    means, of rate alpha / 10, of (phi - s)^2 and of w.w - 2 w.v + v.v over the prefixes from the 21st on.
    """

    def __init__(
        self, alpha: float, values: Sequence[float], times: Sequence[int] | None = None, slower: float = 6.0
    ) -> None:
        values, n = np.asarray(values, dtype=float), len(values)
        times = [1] * n if times is None else times
        w = weights_of(alpha, times)
        if n < 2 or (n <= 20 and alpha == 1.0):
            self.variance = self.degrees_of_freedom = math.nan
        elif n <= 20:
            # Increments count as uncorrelated: the weighted variance, made unbiased, times w.w.
            self.variance = float(w @ (values - w @ values) ** 2) / (1.0 - w @ w) * float(w @ w)
            self.degrees_of_freedom = n - 1.0
        else:
            between, expected = _between(alpha, tuple(times), slower)
            apart = [float(weights @ values[: len(weights)]) ** 2 for weights in between]
            u = weights_of(alpha / 10, times[20:])
            self.variance = float(u @ apart) / float(u @ expected) * float(w @ w)
            self.degrees_of_freedom = 1.0 + 2.0 * float(w @ w) / ((1.0 + float(w @ w)) * float(u @ u))
        self.std_error = math.sqrt(self.variance)

    @property
    def half_width(self) -> float:
        return _quantile(self.degrees_of_freedom) * self.std_error


@lru_cache(maxsize=64)
def _between(alpha: float, times: tuple[int, ...], slower: float) -> tuple[list[np.ndarray], list[float]]:
    """w - v at each prefix from the 21st on, and w.w - 2 w.v + v.v: the same for each feature of a history."""
    between, expected = [], []
    for t in range(21, len(times) + 1):
        fast, slow = weights_of(alpha, times[:t]), weights_of(alpha / slower, times[:t])
        between.append(fast - slow)
        expected.append(float(fast @ fast - 2 * fast @ slow + slow @ slow))
    return between, expected


@cache
def _quantile(degrees_of_freedom: float) -> float:
    return float(stats.t.ppf(0.975, degrees_of_freedom))


def filled(row: Row) -> Row:
    """The row without what is marked as absent."""
    return {f: v for f, v in row.items() if v is not EMPTY}


def components(outcomes: list[Any]) -> list[tuple[Any, np.ndarray]]:
    """Each class, or the number (None), with its values over the draws."""
    if not isinstance(outcomes[0], dict):
        return [(None, np.array(outcomes, dtype=float))]
    labels = dict.fromkeys(label for p in outcomes for label in p)
    return [(label, np.array([p.get(label, 0.0) for p in outcomes])) for label in labels]


def plain_mean(predictions: list[Any]) -> Any:
    return weighted(predictions, np.full(len(predictions), 1.0 / len(predictions)))


def weighted(predictions: list[Any], weights: np.ndarray) -> Any:
    """Weighted mean of numbers, or of probabilities class by class."""
    if isinstance(predictions[0], dict):
        classes = dict.fromkeys(c for p in predictions for c in p)
        return {c: sum(w * p.get(c, 0.0) for w, p in zip(weights, predictions, strict=True)) for c in classes}
    return sum(w * p for w, p in zip(weights, predictions, strict=True))
