"""Guard against numbers far beyond all earlier values.

Most models that learn such a value of a feature, or of the target, are ruined.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from attributary_explainers.wording import show_number
from attributary_topics import InvalidRecordError

from ...config.models import ModelConfig

logger = logging.getLogger(__name__)

ALL_OTHERS = "*"
"""Stands in `bounds` for every feature that is not named there."""
TARGET = "y"
"""Field of an observation, and the one name that the ranges of a target have."""

ENOUGH = 1000
"""Values other than 0 of a feature, from which on a number is compared with the largest of them."""
WINDOW = 1000
"""Values other than 0 of a feature among which its refused numbers are counted."""
NEW_RANGE = 20
"""Refused numbers in the window that are the feature's new range: of another unit, or of a state seldom taken."""
MANY = 11
"""Refused numbers in the window, more than 1 % of it, of which a line in the log tells."""

_INFINITE = float("inf")


class Ranges:
    """Largest absolute values so far of the features without `bounds`.

    0 is within every range and says nothing of it. Features declared `category` have none: their numbers are names. Of
    the features that are not declared, `max_features` are remembered.

    Parameters
    ----------
    is_target
        Whether these are the numbers that a regressor predicts, as `{"y": number}`; `label_bounds` decide then.
    """

    def __init__(self, model_id: str, config: ModelConfig, *, is_target: bool = False) -> None:
        self.model_id = model_id
        self._is_target = is_target
        self.max_jump = config.max_jump
        self._most_features = max(config.max_features, len(config.features or ()))
        exempt: Iterable[str]
        if is_target:
            exempt = () if config.label_bounds is None else (TARGET,)
        else:
            declared = sorted(name for name, kind in (config.features or {}).items() if kind == "category")
            exempt = *config.bounds, *declared
            if ALL_OTHERS in config.bounds:
                self.max_jump = None
        self._exempt = dict.fromkeys(exempt, _INFINITE)
        self._largest: dict[str, float] = {**self._exempt}
        self._young: dict[str, tuple[int, float]] = {}
        """Of features that have not had enough values: their number, and the largest."""
        self._beyond: dict[str, _Refused] = {}
        self._told: set[str] = set()
        """Features of which the log has told that many of their numbers are refused."""

    def check(self, x: dict[str, Any]) -> None:
        """Refuse numbers far beyond their ranges; else extend the ranges to `x`.

        Raises
        ------
        InvalidRecordError
            `out_of_range`.
        """
        if self.max_jump is None:
            return
        largest = self._largest
        try:  # nearly always every feature is a number within its range
            for name, value in x.items():
                if abs(value) > largest[name]:
                    break
            else:
                if self._beyond:
                    self._count_on(x)
                return
        except (TypeError, KeyError):
            pass  # a text, a missing value, or a feature that has not had enough values
        larger = {
            name: float(min(abs(value), sys.float_info.max))  # an integer may be larger than any float
            for name, value in x.items()
            if (type(value) is float or type(value) is int) and value and abs(value) > largest.get(name, -1.0)
        }
        if larger:
            self._refuse(x, larger, self.max_jump)
        if self._beyond:
            self._count_on(x)
        for name, size in larger.items():
            if name in largest:
                largest[name] = max(size, largest[name])
            else:
                self._count(name, size)

    def _refuse(self, x: dict[str, Any], numbers: dict[str, float], jump: float) -> None:
        largest = self._largest
        beyond = [name for name, size in numbers.items() if size > jump * largest.get(name, _INFINITE)]
        if not beyond:
            return
        for name in beyond:
            self._beyond.setdefault(name, _Refused()).add(numbers[name])
        new = {name: self._beyond[name].new_largest() for name in beyond}
        refused = [name for name in beyond if numbers[name] > jump * new[name]]
        if refused:
            self._count_on(x)
            self._tell(refused)
            name = min(refused)
            shown = name if self._is_target else f"x.{name}"
            limit = f"{show_number(largest[name])}, the largest of {shown} so far"
            expected = f"a number at most {jump:g} times {limit} (max_jump, or {self._bounds} of the model)"
            raise InvalidRecordError("out_of_range", shown, expected, x[name])
        for name in beyond:
            logger.warning(
                "model %s: %d of at most %d numbers of %s were beyond %g times %s, the largest before: its range now "
                "goes to %s. If they are wrong, set %s",
                *(self.model_id, NEW_RANGE, WINDOW, self._shown(name), jump, show_number(largest[name])),
                *(show_number(new[name]), self._bounds),
            )
            largest[name] = new[name]
            del self._beyond[name]

    def _tell(self, refused: list[str]) -> None:
        for name in refused:
            if len(self._beyond[name].numbers) >= MANY and name not in self._told:
                self._told.add(name)
                logger.warning(
                    "model %s: more than 1 %% of the last %d numbers of %s are dead letters (out_of_range): they are "
                    "beyond %g times %s, the largest that the model has taken. If they are right, set %s that take "
                    "them, or raise `max_jump`",
                    *(self.model_id, WINDOW, self._shown(name), self.max_jump, show_number(self._largest[name])),
                    self._bounds,
                )

    @property
    def _bounds(self) -> str:
        return "`label_bounds`" if self._is_target else "`bounds`"

    def _shown(self, name: str) -> str:
        return "the target" if self._is_target else f"feature {name!r}"

    def _count_on(self, x: dict[str, Any]) -> None:
        """Count the values of features whose numbers were refused before.

        Refused numbers before the window no longer matter.
        """
        for name in [name for name in self._beyond if x.get(name)]:
            if self._beyond[name].is_over():
                del self._beyond[name]

    def _count(self, name: str, size: float) -> None:
        n, largest = self._young.pop(name, (0, 0.0))  # and back: the last of them is the one seen last
        if n + 1 >= ENOUGH:
            self._largest[name] = max(size, largest)
            return
        if not n and len(self._young) + len(self._largest) - len(self._exempt) >= self._most_features:
            self._forget_one()
        self._young[name] = n + 1, max(size, largest)

    def _forget_one(self) -> None:
        """Forget a feature to make room.

        It is the one not seen for longest of those without enough values, or else the one known for longest.
        """
        if self._young:
            del self._young[next(iter(self._young))]
            return
        name = next(name for name in self._largest if name not in self._exempt)
        del self._largest[name]
        self._beyond.pop(name, None)
        self._told.discard(name)

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        largest = {name: size for name, size in self._largest.items() if name not in self._exempt}
        return {
            "largest": largest,
            "young": {name: list(known) for name, known in self._young.items()},
            "refused": {name: [run.n_values, list(map(list, run.numbers))] for name, run in self._beyond.items()},
            "told": sorted(self._told),
        }

    @classmethod
    def from_snapshot(
        cls, model_id: str, config: ModelConfig, snapshot: dict[str, Any] | None, *, is_target: bool = False
    ) -> Ranges:
        """Restore the ranges from a snapshot, but for features exempt now.

        None: no range is known.
        """
        ranges = cls(model_id, config, is_target=is_target)
        if snapshot is not None:
            ranges._largest = {**snapshot["largest"], **ranges._exempt}
            ranges._young = {name: (n, size) for name, (n, size) in snapshot["young"].items()}
            ranges._beyond = {
                name: _Refused(n_values, [(at, size) for at, size in numbers])
                for name, (n_values, numbers) in snapshot.get("refused", {}).items()
                if name not in ranges._exempt
            }
            ranges._told = set(snapshot.get("told", ()))
        return ranges


def check_label_bounds(y: Any, config: ModelConfig) -> None:
    """Check a numeric label against `label_bounds`.

    It is never clipped: nobody has observed the bound.

    Raises
    ------
    InvalidRecordError
        `out_of_bounds`.
    """
    if config.label_bounds is None or isinstance(y, bool) or not isinstance(y, (int, float)):
        return
    low, high = config.label_bounds
    if (low is not None and y < low) or (high is not None and y > high):
        ends = [f"at {word} {bound:.15g}" for word, bound in (("least", low), ("most", high)) if bound is not None]
        expected = f"a number of {' and '.join(ends)} (label_bounds of the model)"
        raise InvalidRecordError("out_of_bounds", TARGET, expected, y)


@dataclass
class _Refused:
    """Refused numbers among a feature's last values.

    Plain data of bounded size.
    """

    n_values: int = 0
    """Values since the first of them."""
    numbers: list[tuple[int, float]] = field(default_factory=list)
    """When each came, as `n_values` then was, and its size."""

    def add(self, size: float) -> None:
        self.numbers = [*self.numbers[1 - NEW_RANGE :], (self.n_values, size)]

    def is_over(self) -> bool:
        """Count a value; return whether no number in the window is left."""
        self.n_values += 1
        self.numbers = [(at, size) for at, size in self.numbers if at > self.n_values - WINDOW]
        return not self.numbers

    def new_largest(self) -> float:
        """Return the start of the new range; 0 while there are too few numbers.

        It is the second largest, by which one absurd number among those of another unit is refused still.
        """
        return sorted(size for _, size in self.numbers)[-2] if len(self.numbers) >= NEW_RANGE else 0.0
