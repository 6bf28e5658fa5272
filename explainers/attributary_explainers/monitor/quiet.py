"""Takes in observations after which nothing is to be told of a model's importances, which is nearly all of them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, Protocol

import numpy as np

from ..incremental.removal import RemovalExplainer
from ..ranking import shares_of
from ..shifts.quiet import NOT_KNOWN, QUIET, Part, Quiet, take_quietly
from ..smoothing.kernels import MEAN
from .explainers import ShiftWatch
from .publication import Publication
from .settings import Settings


class Told(Protocol):
    """The state of a model of whose importances something may be told."""

    explainers: dict[str, RemovalExplainer]
    publications: dict[str, Publication]
    shifts: dict[str, ShiftWatch]
    n_observations: int

    @property
    def settings(self) -> Settings:
        """What is watched of the model, and how."""


class QuietImportances:
    """Takes an observation into the watches of a model's importances at once, where nothing is to be told of them.

    That is where no block of increments ends, no event is due at intervals, and no importance has moved by what is
    material since it was published. Compiled code decides it, and is told anew what it has to know when something is
    another object. A copy begins anew: it would hold addresses.
    """

    def __init__(self) -> None:
        self._quiet: Quiet | None = None
        self._latest: list[Any] = []

    def take(self, state: Told, known: Sequence[int]) -> bool:
        """Take in the last observation of the state; False, and nothing has changed, where that is left to the caller.

        Parameters
        ----------
        known
            By explainer, the number of observations that it had explained before.
        """
        if self._quiet is not None:
            found = take_quietly(self._quiet.address, id(state), id(known), state.n_observations)
            if found != NOT_KNOWN:
                return found == QUIET
        self._look(state)
        return False

    def _look(self, state: Told) -> None:
        """Look at the objects of the state, where they seem to stay the same."""
        latest, self._quiet = self._latest, None
        self._latest = [one._smoothed.latest for one in state.explainers.values()]
        stay = len(latest) == len(self._latest) and all(map(is_, latest, self._latest))
        if not latest or not stay or state.settings.sharded or len(state.publications) != len(latest):
            return
        parts = [_part_of(state, name) for name in state.explainers]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts):
            self._quiet = Quiet(found, state.explainers, state.publications, state.shifts)

    def __reduce__(self) -> tuple[type[QuietImportances], tuple[()]]:
        return QuietImportances, ()


def _part_of(state: Told, name: str) -> Part | None:
    """Return what belongs to an explainer; None where compiled code does not do what is to be done."""
    publication, watch, explainer = state.publications.get(name), state.shifts.get(name), state.explainers[name]
    if publication is None or watch is None:
        return None
    smoothed, shift = explainer._smoothed, watch.shift
    blocks, (names, increments), moments = shift._blocks, smoothed.latest, smoothed.moments
    columns = blocks.columns_of(names)
    if columns is None or len(columns) != len(increments):
        return None
    arrays = moments, increments, blocks.block
    if not all(one.flags.c_contiguous and one.dtype == np.float64 for one in arrays) or columns.dtype != np.int64:
        return None
    published, shares, rule = publication.published, None, publication.rule
    if publication.compares:
        if published is None or list(published) != list(smoothed.names):
            return None
        shares = shares_of(published.values())
        if not any(shares):
            return None
    return Part(
        name, explainer, smoothed, smoothed.weights, moments, smoothed.latest,
        publication, published,
        watch, shift, blocks, blocks.block, moments[MEAN], columns, blocks.counts,
        shares, rule.every, rule.min_observations, rule.material_shift, publication.has_shares,
    )  # fmt: skip
