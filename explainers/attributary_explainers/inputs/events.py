"""Events about the values of a feature: they broke, or are back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from ..notebook.cards import ShownEvent
from ..snapshots import Stored
from ..wording import show_count, show_number
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
_ENDS = {
    "returned": "are as before again",
    "settled": "stay as they are, which is the reference from now on",
    "replaced": "are watched anew",
}


@dataclass(frozen=True, slots=True)
class ValueSummary(Stored):
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

    @property
    def span(self) -> str:
        """Where most of the numbers lie, in words."""
        low, high = self.quantiles[1], self.quantiles[-2]
        return show_number(low) if low == high else f"{show_number(low)} to {show_number(high)}"


@dataclass(frozen=True, slots=True)
class InputBreak(ShownEvent, Stored):
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
        return f"{model_id}: {self.feature} {self.fault_words()}, since {show_count(self.since)}"

    def fault_words(self) -> str:
        """Return the fault of the values, and the values before."""
        before, after = self.before, self.after
        of = "" if self.share >= MOSTLY else f" in {show_number(round(100.0 * self.share))} % of observations"
        if self.fault == "missing":
            was = "never was" if before.missing == 0.0 else f"was in {show_number(100.0 * before.missing)} %"
            return f"is {'missing' if of else 'always missing'}{of}, and {was} before"
        if self.fault == "stuck":
            return f"is stuck at {show_number(after.quantiles[0]) if after.quantiles else repr(after.words[0][0])}"
        if self.fault == "new":
            words = ", ".join(repr(word) for word, _ in after.words[:3])
            return f"has values that never came before: {words}{' …' if after.n_words > 3 else ''}"
        if self.fault == "range":
            said = f"is {after.span}{of}, and was {before.span} before"
            if self.swapped_with is not None:
                return f"{said} (it has changed places with {self.swapped_with})"
            return said if self.unit is None else f"{said} ({self.unit.words})"
        if after.quantiles:
            return f"is a number{of} ({after.span}), and was text before"
        return f"is text{of} ({after.words[0][0]!r}), and was a number ({before.span}) before"


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
        broken = self.broken
        values = f"the values of {broken.feature}, broken since {show_count(broken.since)}"
        return f"{model_id}: {values}, {_ENDS[self.reason]}"


InputEvent: TypeAlias = InputBreak | InputBreakEnd
"""What `InputMonitor.update` returns."""
