"""Observational removal as in the paper: a tree per feature draws it."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..errors import InvalidParameterError, SnapshotError
from ..notebook.described import Described
from ..pickling import dump_model, load_model
from ..typing import Array, Features, Prediction, Snapshot
from ..validation import check_choice, check_integer
from .hoeffding import (
    EMPTY,
    ROWS_PER_LEAF_SIZE,
    Code,
    Nominal,
    NominalTree,
    Numeric,
    NumericTree,
    RecentRows,
    SamplingTree,
    is_number,
    says_nothing,
)
from .imputer import SAMPLING_NAMES, Draws, Imputer, Players, Rows
from .reservoirs import LaggedReservoir, Reservoir
from .strata import independent_sets

__all__ = ["EMPTY", "ConditionalSampler"]

SNAPSHOT_FORMAT = 1

MIN_VALUES = 10
"""The number of values after which a feature takes part.

A tree learns nothing from fewer, and a stream in which every observation brings a name of its own would otherwise grow
a tree for each.
"""


@dataclass(slots=True)
class _Feature:
    encoding: Numeric | Nominal
    n_values: int = 0
    last_seen: int = 0
    tree: SamplingTree | None = None


class ConditionalSampler(Described):
    """Draws features given others, by trees with reservoirs in their leaves.

    For every feature i a Hoeffding adaptive tree learns to predict x_i from the other features, a classification
    tree where the feature is nominal and a regression tree where it is numeric, and every leaf keeps a geometric
    reservoir of the x_i that reached it. To draw x_i given the features S of x, the tree is walked: a split on a
    feature in S follows x, a split on any other goes to a child in proportion to the observations it has seen,
    and the leaf gives one of its values. The draw therefore has the distribution

        sum over leaves l of P(l | x_S) * (values in l) / (number of values in l),
        P(l | x_S) = product over the splits above l of 1 or 0 (on S), n(child) / n(split) (on the others),

    and depends on nothing but S. `distribution` gives it exactly. How near it is to the true conditional is up to
    the tree: where two features tell the same, it splits on one of them, and given only the other the draw knows
    nothing (the paper's method too). Given all other features it does know.

    Cost: every observation is learnt by d trees for d features, and each reads the d - 1 others. With thousands
    of features, name in `features` the few that are worth a tree. Memory is at most `max_leaves` (plus a child per
    category of each split) times `leaf_size` values per tree, and the encoded features of the last 20 * leaf_size
    observations once, whatever the length of the stream.

    Parameters
    ----------
    leaf_size
        Valid range >= 1; values in each leaf. Larger gives finer conditional distributions that follow drift
        more slowly: a leaf that sees the share p of the stream remembers about leaf_size / p observations.
    grace_period
        Valid range >= 1, in observations; how often a leaf tries to split. Larger is cheaper and splits later.
    max_depth, max_leaves
        Valid range >= 1; limits of every tree. Larger tells more conditions apart, and costs time and memory.
    max_categories
        Valid range >= 1; categories per nominal feature that the trees tell apart. Further ones share a branch,
        and are still stored and drawn as they are.
    forget_after
        Valid range >= 1, in observations. What is known of a feature is dropped when it has had no value for so
        long (checked at every tenth of it). Larger outlasts longer gaps, and holds more where names come and go.
    features
        The features to grow trees for; None for all. Others give EMPTY, but draws are conditioned on their values.
    nominal
        Features that are nominal though their values are numbers. Otherwise a feature whose first value is an
        int or a float is numeric, and any other, a bool too, nominal.
    seed
        Valid range >= 0. Each tree has a generator of its own, from this seed and the feature's name: what is
        drawn of one feature is the same whether or not the others have trees. None takes fresh entropy.

    Raises
    ------
    InvalidParameterError
        A parameter is out of its range, or `features` or `nominal` is a bare string.

    Missing values
        An observation in which feature i is absent, None or NaN teaches its tree nothing. Among the others such a
        feature is left out of the row; where the tree splits on it, the value is not stored, because its
        condition is not known. An infinite number or no number at all in a numeric feature counts as missing.

    Drift
        Where a tree's error grows, River grows an alternate and takes it over. Alternates keep values from the
        start, and are not drawn from before. The reservoirs forget by themselves, the counts of a split by being
        halved after 20 * leaf_size visits of a child. Right after a change of the tree a leaf can be without
        values: the draw is `EMPTY`, and the caller takes the marginal.

    Source: Muschalik, Fumagalli, Hammer, Huellermeier, iSAGE: An Incremental Version of SAGE for Online
    Explanation on Data Streams, ECML PKDD 2023, Algorithms 3 and 4; Bifet and Gavalda, Adaptive Learning from
    Evolving Data Streams, IDA 2009 (the trees).
    Deviations: a leaf splits only on evidence that chance does not give (they leave River's rule, which in the
    long run splits on anything); values move to the children of a leaf that splits (they start empty); the counts
    of a split forget; trees learn without bootstrap weights, so that counts are of observations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> sampler = ConditionalSampler(seed=1)
    >>> for _ in range(2000):
    ...     colour = "red" if rng.random() < 0.25 else "blue"
    ...     sampler.update({"colour": colour, "weight": rng.normal(10.0 if colour == "red" else 20.0)})
    >>> x = {"colour": "red", "weight": 20.0}
    >>> [round(sampler.draw("weight", x, {"colour"}, u)) for u in (0.1, 0.5, 0.9)]
    [9, 10, 11]
    >>> [round(sampler.draw("weight", x, set(), u)) for u in (0.1, 0.5, 0.9)]  # three in four are blue
    [19, 20, 10]
    >>> sampler.draw("colour", x, {"weight"}, 0.5)
    'blue'
    >>> restored = ConditionalSampler.from_snapshot(sampler.snapshot())
    >>> restored.distribution("colour", x, {"weight"}) == sampler.distribution("colour", x, {"weight"})
    True
    """

    name = "conditional"

    def __init__(
        self,
        *,
        leaf_size: int = 100,
        grace_period: int = 200,
        max_depth: int = 10,
        max_leaves: int = 64,
        max_categories: int = 50,
        forget_after: int = 20_000,
        features: Iterable[Any] | None = None,
        nominal: Iterable[Any] = (),
        seed: int | None = None,
    ) -> None:
        self.leaf_size = check_integer("leaf_size", leaf_size, minimum=1)
        self.grace_period = check_integer("grace_period", grace_period, minimum=1)
        self.max_depth = check_integer("max_depth", max_depth, minimum=1)
        self.max_leaves = check_integer("max_leaves", max_leaves, minimum=1)
        self.max_categories = check_integer("max_categories", max_categories, minimum=1)
        self.forget_after = check_integer("forget_after", forget_after, minimum=1)
        self.features = None if features is None else _names("features", features)
        self.nominal = _names("nominal", nominal)
        self.seed = None if seed is None else check_integer("seed", seed, minimum=0)
        self.n_observations = 0
        self._entropy = int(np.random.SeedSequence().generate_state(1)[0]) if self.seed is None else self.seed
        self._known: dict[Any, _Feature] = {}
        self._recent = RecentRows(ROWS_PER_LEAF_SIZE * self.leaf_size)
        # Shared with every tree, which looks up here how to observe an input.
        self._nominal_inputs: set[Any] = set()

    @property
    def n_features(self) -> int:
        """The number of features with a tree of their own, which can be drawn."""
        return sum(feature.tree is not None for feature in self._known.values())

    def update(self, x: Features) -> None:
        """Learn an observation; call it after all draws for that observation.

        Parameters
        ----------
        x
            The features of one observation; not kept, not changed. The values are kept, and have to be immutable,
            as everything with a hash should be.
        """
        self.n_observations = now = self.n_observations + 1
        row: dict[Any, Code] = {}
        for name, value in x.items():
            if says_nothing(value):
                continue
            feature = self._known.get(name) or self._meet(name, value)
            code = feature.encoding.learn(value, now)
            if code is not None:
                feature.n_values += 1
                feature.last_seen = now
                if feature.n_values >= MIN_VALUES:
                    row[name] = code
        self._recent.add(now, row)
        for name, code in row.items():
            others = {other: value for other, value in row.items() if other != name}
            if others and (self.features is None or name in self.features):
                feature = self._known[name]
                if feature.tree is None:
                    feature.tree = self._plant(name, feature)
                feature.tree.learn(others, code)
                feature.tree.keep(others, x[name], now)
        if now % max(self.forget_after // 10, 1) == 0:
            self._forget(now)

    def draw(self, feature: Any, x: Features, present: Collection[Any], u: float) -> Any:
        """Draw a value of `feature` given the features of `x` in `present`.

        Parameters
        ----------
        feature
            The feature to draw; what `x` has there plays no part.
        x
            The observation; not kept, not changed.
        present
            The features to condition on. One that `x` lacks is not conditioned on.
        u
            Valid range [0, 1). Which of the possible values: the walk and the leaf's values in ascending order
            lie along [0, 1) in a fixed order, so that a uniform `u` draws, and evenly spread ones stratify.

        Returns
        -------
        Any
            A value as it was observed, or `EMPTY` where there is none: the feature has no tree (yet), or the
            leaf no values. The caller then falls back to the marginal.
        """
        tree = self._tree(feature)
        return EMPTY if tree is None else tree.sample(lambda name: self._code(name, x, present), (u,))[0]

    def codes(self, x: Features) -> dict[Any, Code]:
        """Return the observation as trees read it, missing values left out."""
        codes = ((name, self._code(name, x, x)) for name in x)
        return {name: code for name, code in codes if code is not None}

    def draw_all(self, feature: Any, codes: Mapping[Any, Code], numbers: Sequence[float]) -> tuple[list[Any], set[Any]]:
        """Return a draw for each number, and the features that the walks lacked.

        Parameters
        ----------
        codes
            Of the features to condition on.
        numbers
            Valid range [0, 1) each.

        Returns
        -------
        A value, or `EMPTY`, for each number; and the features that the walks asked for in vain: conditioning on any
        further features but these would not change the draws.
        """
        tree = self._tree(feature)
        missing: set[Any] = set()

        def code(name: Any) -> Code | None:
            known = codes.get(name)
            if known is None:
                missing.add(name)
            return known

        return ([EMPTY] * len(numbers) if tree is None else tree.sample(code, numbers)), missing

    def distribution(self, feature: Any, x: Features, present: Collection[Any]) -> list[tuple[Any, float]]:
        """Return the distribution of `draw`: values and their probabilities.

        The number u of `draw` is taken as uniform; probabilities sum to 1. Values stand in the order of the u that
        first draws them; `EMPTY` has the probability of the leaves without values. Parameters are those of `draw`.
        """
        tree = self._tree(feature)
        if tree is None:
            return [(EMPTY, 1.0)]
        found: dict[Any, float] = {}
        for leaf, probability in tree.leaves(lambda name: self._code(name, x, present)):
            values = leaf.ordered or [EMPTY]
            for value, n in Counter(values).items():
                found[value] = found.get(value, 0.0) + probability * n / len(values)
        return list(found.items())

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the sampler was made with, as plain data."""
        return {
            "leaf_size": self.leaf_size,
            "grace_period": self.grace_period,
            "max_depth": self.max_depth,
            "max_leaves": self.max_leaves,
            "max_categories": self.max_categories,
            "forget_after": self.forget_after,
            "features": None if self.features is None else list(self.features),
            "nominal": list(self.nominal),
            "seed": self.seed,
        }

    def snapshot(self) -> Snapshot:
        """Return the state as plain data with a format version, trees as bytes.

        Restoring it and continuing gives what never stopping gives, bit for bit.

        Raises
        ------
        ModelError
            A stored value cannot be pickled.
        """
        return {
            "format": SNAPSHOT_FORMAT,
            "sampler": self.name,
            "parameters": self.parameters,
            "n_observations": self.n_observations,
            "entropy": self._entropy,
            # In one piece: the trees share the recent rows and the set of nominal inputs.
            "trees": dump_model((self._known, self._recent, self._nominal_inputs)),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the sampler that a snapshot was taken of.

        Unpickling runs code: restore only what you trust.

        Raises
        ------
        SnapshotError
            The snapshot is of something else or of another format version.
        """
        found = snapshot.get("format"), snapshot.get("sampler")
        if found != (SNAPSHOT_FORMAT, cls.name):
            raise SnapshotError(
                f"expected a snapshot of the sampler {cls.name!r} in format {SNAPSHOT_FORMAT}, got {found[1]!r} in "
                f"format {found[0]!r}: restore it with the release that wrote it, or start a new sampler"
            )
        sampler = cls(**snapshot["parameters"])
        sampler.n_observations = snapshot["n_observations"]
        sampler._entropy = snapshot["entropy"]
        sampler._known, sampler._recent, sampler._nominal_inputs = load_model(snapshot["trees"])
        return sampler

    def _meet(self, name: Any, value: Any) -> _Feature:
        numeric = is_number(value) and name not in self.nominal
        encoding = Numeric() if numeric else Nominal(self.max_categories, self.forget_after)
        if not numeric:
            self._nominal_inputs.add(name)
        feature = self._known[name] = _Feature(encoding, last_seen=self.n_observations)
        return feature

    def _plant(self, name: Any, feature: _Feature) -> SamplingTree:
        kind = NumericTree if isinstance(feature.encoding, Numeric) else NominalTree
        return kind(
            self.leaf_size,
            self.max_leaves,
            self._recent,
            grace_period=self.grace_period,
            max_depth=self.max_depth,
            nominal_attributes=self._nominal_inputs,
            # Not hash(): that of a string differs from one process to the next.
            seed=(self._entropy << 32) | zlib.crc32(repr(name).encode()),
        )

    def _tree(self, feature: Any) -> SamplingTree | None:
        known = self._known.get(feature)
        return None if known is None else known.tree

    def _code(self, name: Any, x: Features, present: Collection[Any]) -> Code | None:
        known = self._known.get(name) if name in present and name in x else None
        return None if known is None else known.encoding.code(x[name])

    def _forget(self, now: int) -> None:
        gone = [name for name, feature in self._known.items() if now - feature.last_seen > self.forget_after]
        for name in gone:
            del self._known[name]
            self._nominal_inputs.discard(name)
        if gone:
            for feature in self._known.values():
                if feature.tree is not None and not feature.tree.forget(gone):
                    feature.tree = None


def _names(parameter: str, names: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(names, str):
        raise InvalidParameterError(parameter, "a list of features", names)
    return tuple(dict.fromkeys(names))


class ConditionalImputer(Imputer):
    """Draws replacements that fit the kept features: observational removal.

    Each removed feature is drawn from the leaf of its own tree (iSAGE Algorithms 3 and 4), see `ConditionalSampler`;
    where that has no value yet, the feature comes from a stored observation, as in marginal removal. Coalitions of one
    observation share the uniform numbers of their draws: one for each draw and feature.

    Parameters
    ----------
    reservoir
        Observations for what the trees cannot draw; None is `LaggedReservoir()`.
    sampler
        The trees; None is `ConditionalSampler()`. The imputer owns it. Every observation is learnt by all trees, so
        the cost grows with the square of the features: name those that matter in the sampler's `features`.
    sampling
        `stratified` spreads the uniform numbers of the draws evenly over [0, 1); `independent` does not.
    """

    name = "observational-trees"

    def __init__(
        self,
        reservoir: Reservoir | None = None,
        sampler: ConditionalSampler | None = None,
        *,
        sampling: str = "stratified",
    ) -> None:
        self.reservoir = LaggedReservoir() if reservoir is None else reservoir
        self.sampler = ConditionalSampler() if sampler is None else sampler
        self.sampling = check_choice("sampling", sampling, SAMPLING_NAMES)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        sampler = {name: value for name, value in self.sampler.parameters.items() if name != "seed"}
        return {**super().parameters, "sampling": self.sampling, "sampler": sampler}

    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows per player, its features drawn given all others."""
        rows: list[Rows] = []
        codes = self.sampler.codes(x)
        for features in players.values():
            absent = set(features)
            kept = {feature: x[feature] for feature in x if feature not in absent}
            numbers, slots = self._numbers(n, len(features), rng).T.tolist(), self._slots(n, rng)
            of_kept = {feature: code for feature, code in codes.items() if feature in kept}
            drawn = {
                feature: self.sampler.draw_all(feature, of_kept, of_feature)[0]
                for feature, of_feature in zip(features, numbers, strict=True)
            }
            rows.append(_rows(x, kept, drawn, [self.reservoir.rows[slot] for slot in slots]))
        return Draws(rows, None)

    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows per coalition, all other features drawn given its own."""
        features = [feature for of_player in players.values() for feature in of_player]
        numbers, slots = self._numbers(n, len(features), rng).T.tolist(), self._slots(n, rng)
        of_feature = dict(zip(features, numbers, strict=True))
        codes, stored = self.sampler.codes(x), [self.reservoir.rows[slot] for slot in slots]
        rows: list[Rows] = []
        known: set[Any] = set()
        found: dict[Any, tuple[list[Any], set[Any]]] = {}
        for kept in coalitions:
            present = {feature for player in kept for feature in players[player] if feature in x}
            absent = [feature for player in players if player not in set(kept) for feature in players[player]]
            of_present = {feature: code for feature, code in codes.items() if feature in present}
            if not known <= present:
                found.clear()
            new = present - known
            for feature in absent:
                # What no tree has asked for makes no difference to its draws.
                if feature not in found or not new.isdisjoint(found[feature][1]):
                    found[feature] = self.sampler.draw_all(feature, of_present, of_feature[feature])
            known = present
            drawn = {feature: found[feature][0] for feature in absent}
            rows.append(_rows(x, {feature: x[feature] for feature in x if feature in present}, drawn, stored))
        return Draws(rows, None)

    def _numbers(self, n: int, n_features: int, rng: np.random.Generator) -> Array:
        """Draw uniform numbers, shape (draws, features), as `sampling` says."""
        if self.sampling == "independent":
            return rng.random((n, n_features))
        parts = []
        for size in independent_sets(n):
            order = rng.permuted(np.tile(np.arange(size)[:, None], (1, n_features)), axis=0)
            parts.append((order + rng.random((size, n_features))) / size)
        # Rounding can give 1.0.
        return np.minimum(np.concatenate(parts), np.nextafter(1.0, 0.0))

    def _slots(self, n: int, rng: np.random.Generator) -> list[int]:
        slots: list[int] = rng.integers(len(self.reservoir), size=n).tolist()
        return slots

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in an observation; every tree learns it."""
        self.sampler.update(x)
        return super().update(x, y_pred, rng)

    def snapshot(self) -> Snapshot:
        """Return plain data and, for the trees, bytes."""
        return {**super().snapshot(), "sampler": self.sampler.snapshot()}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        super().restore(state)
        self.sampler = ConditionalSampler.from_snapshot(state["sampler"])


def _rows(x: Features, kept: Features, drawn: Mapping[Any, Sequence[Any]], stored: Sequence[Features]) -> Rows:
    """Return a row per draw: kept values, drawn ones, stored ones for EMPTY."""
    # The order of x: to a model that reads rows by position, and to a reader, the same features.
    order = [*(feature for feature in x if feature in kept or feature in drawn), *(f for f in drawn if f not in x)]
    rows = []
    for i, of_draw in enumerate(stored):
        row = {}
        for feature in order:
            if feature in kept:
                row[feature] = kept[feature]
                continue
            value = drawn[feature][i]
            if value is not EMPTY:
                row[feature] = value
            elif feature in of_draw:
                row[feature] = of_draw[feature]
        rows.append(row)
    return rows
