"""An observation after which nothing is to be told of importances, taken in by one compiled call.

It does what `Blocks.update` does, for all explainers of a model, where no block ends with the observation and no
importance is to be published. It reads Python objects itself; what it does not cover is left to Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..compiled import array_at, compiled
from ..objects import (
    addresses_of,
    dict_size,
    has,
    has_failed,
    next_entry,
    number_at,
    size_of,
    value_of,
    whole_at,
    whole_of,
)
from ..typing import Array, Ints
from ..validation import LARGEST
from .blocks import BLOCK
from .kernels import FILLED, add

NOT_KNOWN, TELLS, QUIET = range(3)
"""What is found: something is another object than it was; something may be to be told; the observation is taken in. Of
the first two nothing has changed."""

_MARGIN = 1e-9
"""By how much a movement may be computed in another way than here, at most."""

_WORDS, _NUMBERS, _N_NUMBERS, _N, _GOES_ON, _KEY, _ENTRY, _HERE = range(8)
"""Places of `known`: how many entries it has; the address of `numbers`, and how many there are; the number of
explainers; numbers for `next_entry`, and the address of the first."""

_EXPLAINERS, _PUBLICATIONS, _WATCHES = range(8, 11)
"""Addresses of the model's dicts, by the name of an explainer."""

_NAMES = addresses_of(
    "explainers", "publications", "shifts",
    "_smoothed", "moments", "latest", "_published", "_blocks", "_block", "_take_reference_at", "n",
)  # fmt: skip
(
    _EXPLAINERS_AT, _PUBLICATIONS_AT, _WATCHES_AT,
    _SMOOTHED_AT, _MOMENTS_AT, _LATEST_AT, _PUBLISHED_AT, _BLOCKS_AT, _BLOCK_AT, _TAKE_REFERENCE_AT, _N_AT,
) = range(11, 22)  # fmt: skip
"""Addresses of names of attributes."""

_FIRST = 22
"""Where the explainers begin, with so many entries for each as `_ENTRIES`."""

_NAME, _EXPLAINER, _SMOOTHED, _WEIGHTS, _MOMENTS, _LATEST, _PUBLICATION, _PUBLISHED = range(8)
_WATCH, _SHIFT, _BLOCKS, _BLOCK = range(8, 12)
"""Addresses of the objects of an explainer, in the order of `Part`."""

_F, _K, _N_COLUMNS, _OF_MEANS, _OF_INCREMENTS, _OF_BLOCK, _OF_COLUMNS, _OF_COUNTS = range(12, 20)
"""The numbers of features, of names and of columns of the block; addresses of the numbers of the means and the
increments, and of the block, its columns and its counts."""
_AT, _EVERY, _LEAST, _COMPARES, _HAS_SHARES, _IS_EXPLAINED = range(20, 26)
"""Where `numbers` has what is material, and after it the shares; the rule of the publication; whether the explainer has
explained the observation."""
_ENTRIES = 26


@compiled(reads_objects=True)
def take_quietly(address: int, state: int, before: int, observation: int) -> int:
    """Take an observation into the blocks of a model's explainers, unless something may be to be told; return what is.

    Parameters
    ----------
    address
        That of `known`, see `Quiet`.
    state, before
        Addresses: of the model's state, and of a list with the number of observations that each explainer had explained
        before; empty where none has explained this one.
    observation
        The observation's number.
    """
    known = array_at(address, (array_at(address, (1,), np.int64)[0],), np.int64)
    found = _looked(known, state, before, observation)
    if has_failed():
        return NOT_KNOWN
    if found == QUIET:
        for i in range(known[_N]):
            part = known[_FIRST + i * _ENTRIES : _FIRST + (i + 1) * _ENTRIES]
            if part[_IS_EXPLAINED]:
                _add(part, observation)
    return found


@compiled(reads_objects=True)
def _looked(known: Any, state: int, before: int, observation: int) -> int:
    """Return what is found, and note who has explained the observation."""
    numbers = array_at(known[_NUMBERS], (known[_N_NUMBERS],), np.float64)
    n, n_before = known[_N], size_of(before)
    for i in range(3):
        if not has(state, known[_EXPLAINERS_AT + i], known[_EXPLAINERS + i]):
            return NOT_KNOWN
    if dict_size(known[_EXPLAINERS]) != n or dict_size(known[_PUBLICATIONS]) != n or (n_before != 0 and n_before != n):
        return NOT_KNOWN
    found = QUIET
    known[_GOES_ON] = 0
    for i in range(n):
        part = known[_FIRST + i * _ENTRIES : _FIRST + (i + 1) * _ENTRIES]
        if not next_entry(known[_EXPLAINERS], known[_HERE]) or not _is_as_known(part, known):
            return NOT_KNOWN
        n_explained = whole_at(part[_WEIGHTS], known[_N_AT])
        part[_IS_EXPLAINED] = n_before == n and n_explained > whole_of(before, i)
        if part[_IS_EXPLAINED] and not _goes_on(part):
            found = TELLS
        if found == QUIET and _may_publish(part, known, numbers, observation, n_explained):
            found = TELLS
    return found


@compiled(reads_objects=True)
def _is_as_known(part: Any, known: Any) -> bool:
    """Return whether all that belongs to an explainer, and may be replaced, is the object that it was."""
    if known[_KEY] != part[_NAME] or known[_ENTRY] != part[_EXPLAINER]:
        return False
    if value_of(known[_PUBLICATIONS], part[_NAME]) != part[_PUBLICATION]:
        return False
    smoothed, blocks = part[_SMOOTHED], part[_BLOCKS]
    return (
        value_of(known[_WATCHES], part[_NAME]) == part[_WATCH]
        and has(part[_EXPLAINER], known[_SMOOTHED_AT], smoothed)
        and has(smoothed, known[_MOMENTS_AT], part[_MOMENTS])
        and has(smoothed, known[_LATEST_AT], part[_LATEST])
        and has(part[_PUBLICATION], known[_PUBLISHED_AT], part[_PUBLISHED])
        and has(part[_SHIFT], known[_BLOCKS_AT], blocks)
        and has(blocks, known[_BLOCK_AT], part[_BLOCK])
    )


@compiled(reads_objects=True)
def _goes_on(part: Any) -> bool:
    """Return whether the block takes the increments, and goes on after them."""
    increments = array_at(part[_OF_INCREMENTS], (part[_K],), np.float64)
    for i in range(part[_K]):
        if not abs(increments[i]) < LARGEST:
            return False
    return array_at(part[_OF_COUNTS], (4,), np.int64)[FILLED] < BLOCK - 1  # type: ignore[no-any-return]


@compiled(reads_objects=True)
def _may_publish(part: Any, known: Any, numbers: Any, observation: int, n_explained: int) -> bool:
    """Return whether `Publication.trigger` may find that an event is due, or take a reference."""
    if observation % part[_EVERY] == 0:
        return True
    if part[_HAS_SHARES] and not number_at(part[_PUBLICATION], known[_TAKE_REFERENCE_AT]) > observation:
        return True
    if not part[_COMPARES] or n_explained < part[_LEAST]:
        return False
    means, at = array_at(part[_OF_MEANS], (part[_F],), np.float64), part[_AT]
    total = 0.0
    for f in range(part[_F]):
        if not abs(means[f]) < LARGEST:
            return True
        total += max(means[f], 0.0)
    if not total > 0.0:
        return True
    moved = 0.0
    for f in range(part[_F]):
        moved += abs(numbers[at + 1 + f] - max(means[f], 0.0) / total)
    return not 0.5 * moved < numbers[at] - _MARGIN


@compiled(reads_objects=True)
def _add(part: Any, observation: int) -> None:
    """Add increments to a block, as `Blocks.update` does."""
    block = array_at(part[_OF_BLOCK], (2, part[_N_COLUMNS]), np.float64)
    columns = array_at(part[_OF_COLUMNS], (part[_K],), np.int64)
    increments = array_at(part[_OF_INCREMENTS], (part[_K],), np.float64)
    add(block, columns, increments, array_at(part[_OF_COUNTS], (4,), np.int64), observation, LARGEST)


@dataclass(frozen=True, eq=False)
class Part:
    """What belongs to an explainer, each object as it is now; the first of them are those that compiled code looks for.

    Attributes
    ----------
    name, explainer, smoothed, weights, moments, latest
        The explainer with what smooths its increments, which have names; `moments` has the memory of `means`.
    publication, published
        When its importance is published, and what was last.
    watch, shift, blocks, block
        What watches for lasting shifts of it.
    means, columns, counts
        The importances; the columns of the increments in the block, and its counts.
    shares
        The shares of what was published, in the order of the means; of something else than 0. None where the importance
        is not compared with it.
    every, least, material
        The rule of the publication.
    has_shares
        Whether a reference is taken.
    """

    name: str
    explainer: Any
    smoothed: Any
    weights: Any
    moments: Array
    latest: tuple[tuple[Any, ...], Array]
    publication: Any
    published: Any
    watch: Any
    shift: Any
    blocks: Any
    block: Array
    means: Array
    columns: Ints
    counts: Ints
    shares: Sequence[float] | None
    every: int
    least: int
    material: float
    has_shares: bool


class Quiet:
    """What compiled code has to know of a model's explainers, to take an observation in.

    Parameters
    ----------
    parts
        The explainers, in the order of the dict. Held, and so is all whose address is known.
    explainers, publications, watches
        The model's dicts.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        explainers: Mapping[str, Any],
        publications: Mapping[str, Any],
        watches: Mapping[str, Any],
    ) -> None:
        self._held = parts, explainers, publications, watches
        known = self._known = np.zeros(_FIRST + _ENTRIES * len(parts), np.int64)
        numbers: list[float] = []
        for i, part in enumerate(parts):
            entries = known[_FIRST + i * _ENTRIES :][:_ENTRIES]
            entries[: _BLOCK + 1] = [id(getattr(part, field.name)) for field in fields(part)[: _BLOCK + 1]]
            increments, shares = part.latest[1], part.shares
            arrays = part.means, increments, part.block, part.columns, part.counts
            entries[[_F, _K, _N_COLUMNS]] = len(part.means), len(increments), part.block.shape[1]
            entries[_OF_MEANS : _OF_COUNTS + 1] = [one.ctypes.data for one in arrays]
            entries[[_AT, _EVERY, _LEAST]] = len(numbers), part.every, part.least
            entries[[_COMPARES, _HAS_SHARES]] = shares is not None, part.has_shares
            numbers += [part.material, *(shares or ())]
        self._numbers = np.array([*numbers, 0.0])
        known[[_WORDS, _N, _NUMBERS, _N_NUMBERS]] = len(known), len(parts), self._numbers.ctypes.data, len(numbers) + 1
        known[_EXPLAINERS : _WATCHES + 1] = id(explainers), id(publications), id(watches)
        known[_EXPLAINERS_AT:_FIRST] = _NAMES
        self.address: int = known.ctypes.data
        """For `take_quietly`."""
        known[_HERE] = self.address + 8 * _GOES_ON
