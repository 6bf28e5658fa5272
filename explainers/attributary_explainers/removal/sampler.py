"""The sampler of observational removal: it shifts stored rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.observational import Alone, Moments, Reader, Walk, regress
from ..snapshots import pack, pack_symmetric, unpack, unpack_symmetric
from ..typing import Array, Features, Ints, Snapshot
from .statistics import PRODUCT, Columns, Encoding, Learnt, Review, encoding_of, products_told, review
from .strata import SlotOrder

WARM_UP = 100
"""So many rows have to be stored before anything is learnt, or all that there is room for."""
REVIEW_EVERY = 200
"""After so many observations it is reviewed which dependence is bent."""
READ_EVERY = 1000
"""After so many it is read from the stored rows which features and levels there are, and where knots belong."""
REGRESS_EVERY = 50
"""The regressions that PFI draws with are computed anew after so many observations."""
BUDGET = 150_000
"""Multiplications that matching the candidates of a walk may take: it decides how many there are."""
LEAST_PRODUCT = 0.01
"""A product that tells less of every feature than this share of what is left is no column any more."""
DETAIL = ((8, 12, 120), (4, 6, 200), (0, 3, 0))
"""Hinges of a number and levels of a category, with the most columns that there may be in all."""


class Regression:
    """The regression of each feature's columns on the columns of all others.

    Parameters
    ----------
    mean, covariance
        Of the columns in use, the covariance's lower triangle; kept, as they are what a snapshot needs.
    """

    def __init__(self, mean: Array, covariance: Array, encoding: Encoding, columns: Columns) -> None:
        self.mean, self.covariance = mean, covariance
        n, d = len(mean), len(encoding)
        most = max(2, int(encoding.levels.max(initial=0)))
        self.B = np.zeros((n, n))
        """Column c has the coefficients for column c."""
        self.weights = np.zeros(n)
        """One over the variance that the others leave of a column."""
        self.scores = np.zeros((d, most, most))
        """The `discriminant` of each category."""
        regress(self, encoding.levels, columns)


class RowTable:
    """Stored rows by slot: encoded, as columns, and their predictions."""

    def __init__(self, size: int, learnt: Learnt, used: Ints) -> None:
        self.encoding: Encoding = learnt.encoding
        full = learnt.columns
        place = np.zeros(len(full.kind), dtype=np.int64)
        place[used] = np.arange(len(used))
        start = np.concatenate([np.searchsorted(used, full.start[:-1]), [np.searchsorted(used, full.start[-1])]])
        kind, of, number, other = full.kind[used], full.of[used], full.number[used].copy(), full.other[used].copy()
        products = np.flatnonzero(kind == PRODUCT)
        number[products] = place[number[products].astype(np.int64)]
        other[products] = place[other[products]]
        self.columns = Columns(start.astype(np.int64), kind, of, number, other)
        self.rows = np.full((size, len(learnt.encoding)), np.nan)
        self.ends = np.full((2, len(learnt.encoding)), np.nan)
        """The smallest and the largest value of each feature."""
        self.phi, self.fits = np.zeros((size, len(used))), np.zeros((size, len(used)))

    def put_all(self, rows: Array) -> None:
        """Take in the encoded rows of the first slots."""
        n = len(rows)
        self.rows[:n] = rows
        Reader(self.columns, self.encoding).read(rows, self.phi[:n])


class ShiftedSampler:
    """Draws absent features given present ones, by shifting stored rows.

    A stored row r is a draw from the joint distribution. With the absent features A and the present ones S it becomes

        r_A + E^[x_A | x_S] - E^[x_A | r_S],

    E^ the regression on S by the covariance of all features. Residuals are the stored ones, and what absent features
    have in common stays. Without dependence this is interventional removal; for Gaussians it is exact.

    **Bent dependence.** The regressions are additive: where a number's hinges max(z - knot, 0) tell something of
    another feature, they are columns beside its value. Where the product of two numbers tells something, it is a
    column, and so is the value of each times two hinges of the other: these draw a quotient, too.
    A category has an indicator for each level. Every 200 observations a review decides what is of use.

    **Matching.** Where a dependence is strongly bent, or the spread of a feature depends on another one, residuals
    are not alike everywhere: so r is chosen among candidates with weights exp(-D / 2 h), D the mean square of
    E^[column | x_S] - E^[column | r_S] in residual variances over the columns of A, h the distance of the nearest.

    **Categories.** p(c | S) follows from the regression of the indicators by linear discriminants. The row's level is
    kept with probability min(1, p(c | x_S) / p(c | r_S)), and another one is drawn in proportion to what is left.

    **Halves.** The first half of the draws is made of the older half of the stored rows, the others of the younger
    one: the two are independent, so that the effect of few draws, and few stored rows, on a loss can be corrected.

    **Span.** A number lies at most half the range of its stored values outside of them, and so does what the regression
    tells of it. Where that ends at the same bound for x and for the row, the row stays as it was: that is
    interventional removal.

    State: P^2 / 2 numbers for P columns. Cost: P^2 / 2 multiplications per observation, and for a walk P^3 / 6 and
    P^2 / 2 per candidate. There are at most some 200 columns beside the values: hinges become fewer with more features.

    Parameters
    ----------
    size
        Valid range >= 1: the slots of the reservoir.
    alpha
        Valid range (0, 1]: the smoothing factor of the importance. The covariance forgets faster, by
        min(4 alpha, 0.05 / P): a stale regression shifts the wrong way, and 40 observations per column are enough.
    """

    def __init__(self, size: int, alpha: float) -> None:
        self.size, self.alpha = size, alpha
        self.learnt = Learnt(Encoding(), [])
        self.found = Review.of(0)
        self.ages: Ints = np.zeros(0, dtype=np.int64)
        """The slots of the stored rows, that which was stored first at the beginning."""
        self._used: Ints = np.zeros(0, dtype=np.int64)
        self.table = RowTable(size, self.learnt, self._used)
        self._regression: Regression | None = None
        self._alone: Any = None
        self._walk: Any = None
        self._moments: Any = None
        """All three are bound to what there is to be drawn from, and learnt."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_alone": None, "_walk": None, "_moments": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        if self._regression is not None:
            self._bind()

    def _bind(self) -> None:
        """Bind drawing and learning to the present arrays, after these change."""
        regression = self._regression
        assert regression is not None
        self._alone, self._walk = Alone(self.table, self.found.strong, regression), None
        self._moments = Moments(self.learnt, self._used, self.columns.start, regression.B, regression.mean)

    @property
    def encoding(self) -> Encoding:
        """How observations are read now; it changes in `update`."""
        return self.learnt.encoding

    @property
    def columns(self) -> Columns:
        """The columns in use."""
        return self.table.columns

    @property
    def rate(self) -> float:
        """The smoothing factor of the covariance."""
        return min(4.0 * self.alpha, 0.05 / max(len(self._used), 1))

    @property
    def is_matching(self) -> bool:
        """Whether rows are matched for some features."""
        return self.found.is_matching

    def update(self, x: Features, slot: int | None, rows: Sequence[Features], by_age: SlotOrder) -> None:
        """Learn an observation that has been explained.

        Parameters
        ----------
        slot
            Whose stored row is new, if any is.
        rows, by_age
            All that are stored, and their slots, that of the oldest row first.
        """
        if slot is not None:
            self.ages = by_age.as_array()
        if len(self.encoding) == 0:
            if len(rows) >= min(WARM_UP, self.size) and (encoded := self._read(rows, [], anew=True)) is not None:
                self._use(encoded)  # None: no feature of what is stored can be encoded yet
            return
        if slot is not None:
            self._alone.put(slot, self.encoding.encode(rows[slot]))
        self.learnt.update(self.encoding.encode(x), self._moments, self.rate)
        if self.learnt.n % REVIEW_EVERY == 0:
            self._review(rows)
        if self.learnt.n % REGRESS_EVERY == 0:
            self._regress()

    def _read(self, rows: Sequence[Features], products: list[tuple[Any, Any]], *, anew: bool) -> Array | None:
        """Learn other columns; return the encoded rows, None if all is as before.

        `anew` makes a new encoding. Without it, or where the new one says the same, only the products change.
        """
        before = self.learnt
        encoding = self._new_encoding(rows) if anew else before.encoding
        pairs = [(encoding.position[a], encoding.position[b]) for a, b in products if {a, b} <= set(encoding.names)]
        same = encoding is before.encoding or (
            encoding.names == before.encoding.names
            and all(map(lambda a, b: a.same(b), encoding.features, before.encoding.features))
        )
        if same and pairs == before.products:
            pairs_of = zip(encoding.features, before.encoding.features, strict=True)
            rare = any(not new.is_number and new.stored != old.stored for new, old in pairs_of)
            before.encoding = self.table.encoding = encoding  # other integers that a number has had
            return encoding.encode_all(rows) if rare else None
        encoded = encoding.encode_all(rows) if anew else self.table.rows[: len(rows)]
        self.learnt = Learnt(encoding, pairs)
        self.learnt.start(encoded, before if len(before.encoding) else None)
        self.found = self.found.of_features(before.encoding.names, encoding.names)
        return encoded

    def _new_encoding(self, rows: Sequence[Features]) -> Encoding:
        for hinges, levels, most in DETAIL:
            encoding = encoding_of(rows, hinges, levels, self.encoding)
            if sum(max(len(f.knots) + 1, f.n_levels) for f in encoding.features) <= most:
                break
        return encoding

    def _review(self, rows: Sequence[Features]) -> None:
        names = self.encoding.names
        n = min(self.learnt.n, 2.0 / self.rate)
        found = review(self.learnt, self.found, n)
        products = [*self._useful_products(), *products_told(self.learnt, n)]
        anew = self.learnt.n % READ_EVERY == 0
        encoded = None
        if anew or products != self.learnt.products:
            encoded = self._read(rows, [(names[a], names[b]) for a, b in products], anew=anew)
        if self.encoding.names == names:
            if encoded is None and (found.bent != self.found.bent).any():
                encoded = self.table.rows[: len(rows)]
            self.found = found
        if encoded is not None:
            self._use(encoded)
        else:
            self._bind()

    def _useful_products(self) -> list[tuple[int, int]]:
        """Return the products in use that still tell something."""
        regression, learnt = self._regression, self.learnt
        assert regression is not None
        numbers = np.flatnonzero(self.encoding.is_number)
        values, before = self.columns.start[numbers], int(learnt.columns.start[-1] - self.columns.start[-1])
        variances = np.diag(regression.covariance)
        found = []
        for pair, columns in zip(learnt.products, learnt.of_products, strict=True):
            at = columns - before
            told = (regression.B[np.ix_(at, values)] ** 2 * variances[at, None]).max(axis=0)
            if (told > LEAST_PRODUCT * (told + learnt.spread[0, numbers])).any():
                found.append(pair)
        return found

    def _use(self, encoded: Array) -> None:
        """Use the columns that the review asks for, also for the stored rows."""
        start, base = self.learnt.columns.start, int(self.learnt.columns.start[-1])
        bent = self.found.bent.copy()
        bent[[j for pair in self.learnt.products for j in pair]] = True  # their hinges are factors
        own = [
            np.arange(a, b if bent[j] or not self.encoding.is_number[j] else a + 1)
            for j, (a, b) in enumerate(pairwise(start.tolist()))
        ]
        self._used = np.concatenate([*own, np.arange(base, len(self.learnt.mean))]).astype(np.int64)
        self.table = RowTable(self.size, self.learnt, self._used)
        self.table.put_all(encoded)
        self._regress()

    def _regress(self) -> None:
        self._fit(self.learnt.mean[self._used], self.learnt.covariance[np.ix_(self._used, self._used)])

    def _fit(self, mean: Array, covariance: Array) -> None:
        self._regression = Regression(mean, covariance, self.encoding, self.columns)
        self._bind()
        self._alone.fit(self.ages)

    def draw_each(self, row: Array, wanted: Ints, n: int, rng: np.random.Generator) -> tuple[Array, Ints]:
        """Draw single features of an encoded observation given all others.

        Returns
        -------
        Codes and the slots that they came from, each of shape (wanted, n).
        """
        slots = self.ages
        split, half = (len(slots) // 2, n // 2) if len(slots) > 1 else (0, 0)
        out, used = np.empty((len(wanted), n)), np.empty((len(wanted), n), dtype=np.int64)
        self._alone.draw(row, wanted, slots, split, half, rng.random((len(wanted), n, 3)), out, used)
        return out, used

    def draw_walk(self, row: Array, orders: Ints, stops: Ints, n: int, rng: np.random.Generator) -> tuple[Array, Ints]:
        """Draw the features behind each stop of an order, given the earlier ones.

        All stops share the candidates.

        Parameters
        ----------
        orders, stops
            Shapes (orders, features) and (orders, coalitions of each): features by number, and how many of them, the
            first ones, are present in each coalition.

        Returns
        -------
        Codes of shape (coalitions, n, features), and the slots that they came from, (coalitions, n).
        """
        split, last = self._n_candidates(n)
        u = rng.random(last + n * (1 + 2 * len(row)))
        out, used = np.empty((stops.size, n, len(row))), np.empty((stops.size, n), dtype=np.int64)
        n_stops = stops.shape[1]
        if n_stops:  # a single player has no coalition to be walked through
            shape = split, last, n, n_stops
            if self._walk is None or self._walk.shape != shape:
                self._walk = Walk(self.table, self.found.strong, self.learnt, self._used, *shape)
            walked = np.ascontiguousarray(orders), np.ascontiguousarray(stops)
            self._walk.draw(row, self.ages, u, *walked, out, used)
        return out, used

    def _n_candidates(self, n: int) -> tuple[int, int]:
        """Return how many older rows, and rows in all, n draws choose among."""
        n_slots = len(self.ages)
        older = n_slots // 2
        half = n // 2 if older else 0
        if not self.is_matching:
            return half, n
        columns = len(self._used)
        most = max(32, BUDGET // (columns * (columns + len(self.encoding))), 2 * n) // 2
        split = max(min(most, older), half) if half else 0
        return split, split + max(min(most, n_slots - (older if half else 0)), n - half)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from, together with the stored rows."""
        regression = self._regression
        return {
            "learnt": self.learnt.snapshot(),
            "found": self.found.snapshot(),
            "ages": self.ages.tolist(),
            "regressed": None if regression is None else [pack(regression.mean), pack_symmetric(regression.covariance)],
        }

    def restore(self, state: Snapshot, rows: Sequence[Features]) -> None:
        """Take the state of a sampler with equal parameters."""
        self.learnt = Learnt.from_snapshot(state["learnt"])
        self.found = Review.from_snapshot(state["found"])
        self.ages = np.array(state["ages"], dtype=np.int64)
        if len(self.encoding) == 0:
            self._regression = None
            return
        self._use(self.encoding.encode_all(rows))
        mean, covariance = state["regressed"]
        self._fit(unpack(mean), unpack_symmetric(covariance))
