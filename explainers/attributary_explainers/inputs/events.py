"""Events about the values of a feature: they broke, or are back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from ..notebook.cards import ShownEvent
from ..typing import Snapshot
from ..wording import show_number
from .sentences import of_break, of_end
from .units import UnitChange

Fault: TypeAlias = Literal["missing", "stuck", "new", "range", "type"]
"""What is wrong with the values of a feature.

`missing`: there are none. `stuck`: all are the same one. `new`: they are words that never came before. `range`: they
are far outside what came before. `type`: they are words where numbers came, or the other way round.
"""

MOSTLY = 0.9
"""Share of wrong values from which all are said to be wrong."""
_SHOWN = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
_WORDS = 5


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """Summary of a feature's values.

    `missing` is a share of the `n` values; `quantiles` of the numbers are those at 0, .02, .1, .25, .5, .75, .9, .98
    and 1, empty without a number; `words` has the most frequent words with their shares of `n`, and `n_words` counts
    the different ones.
    """

    n: int
    missing: float
    quantiles: tuple[float, ...] = ()
    words: tuple[tuple[str, float], ...] = ()
    n_words: int = 0

    @classmethod
    def of(cls, n: int, n_missing: int, numbers: Sequence[float], words: Mapping[str, int]) -> Self:
        """Return the summary of `n` values, of which these are numbers and words."""
        found = tuple(np.quantile(np.array(numbers), _SHOWN, method="nearest").tolist()) if len(numbers) else ()
        most = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:_WORDS]
        shares = tuple((word, count / n) for word, count in most) if n else ()
        return cls(n, n_missing / n if n else 0.0, found, shares, len(words))

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the summary that the snapshot was taken of."""
        words = tuple((word, share) for word, share in snapshot["words"])
        return cls(**{**snapshot, "quantiles": tuple(snapshot["quantiles"]), "words": words})


@dataclass(frozen=True, slots=True)
class InputBreak(ShownEvent):
    """The values of a feature broke: no statistics are needed to see it.

    `observation` is the number, from 1, of the observation at which it is reported, and `since` that of the first one
    whose value is wrong. `before` sums up the values that came before, `after` those since. `unit` is the unit that
    explains a `range`, and `swapped_with` the feature with which this one has changed places, where there is one.
    `share` is that of the values since then that are wrong; below .9, `after` sums up these alone, but for `missing`.
    """

    feature: Any
    fault: Fault
    observation: int
    since: int
    before: ValueSummary
    after: ValueSummary
    unit: UnitChange | None = None
    swapped_with: Any = None
    share: float = 1.0

    def sentence(self, model_id: str = "the model") -> str:
        """Return it in plain English."""
        of = "" if self.share >= MOSTLY else f" in {show_number(round(100.0 * self.share))} % of observations"
        return of_break(self, model_id, of)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return asdict(self)

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the break that the snapshot was taken of."""
        unit = None if snapshot["unit"] is None else UnitChange(**snapshot["unit"])
        before, after = (ValueSummary.from_snapshot(snapshot[name]) for name in ("before", "after"))
        return cls(**{**snapshot, "before": before, "after": after, "unit": unit})


@dataclass(frozen=True, slots=True)
class InputBreakEnd(ShownEvent):
    """A break is over.

    `returned`: values are as they were before it. `settled`: they have stayed as they are for so long that they are
    the reference from now on. `replaced`: the watch began anew.
    """

    broken: InputBreak
    reason: Literal["returned", "settled", "replaced"]
    observation: int

    def sentence(self, model_id: str = "the model") -> str:
        """Return it in plain English."""
        return of_end(self, model_id)


InputEvent: TypeAlias = InputBreak | InputBreakEnd
"""What `InputMonitor.update` returns."""
