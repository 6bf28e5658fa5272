"""Reports features whose values broke, without labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Self, TypeAlias

from ..core.values import FAR, GONE, NEW, NOTHING, OF_ANOTHER_TYPE, STUCK, FeatureValues
from ..errors import SnapshotError
from ..notebook.cards import figure
from ..notebook.described import Described
from ..notebook.rows import as_row
from ..snapshots import Stored, attributes, set_attributes
from ..typing import Features, Snapshot
from ..validation import check_integer
from .events import MOSTLY, Fault, InputBreak, InputBreakEnd, InputEvent, ValueSummary
from .units import swapped_with, unit_of

_FORMAT = 2
_FAULTS: dict[int, Fault] = {GONE: "missing", STUCK: "stuck", NEW: "new", FAR: "range", OF_ANOTHER_TYPE: "type"}
_CODES = {fault: code for code, fault in _FAULTS.items()}
_BACK = 0.1
"""Share of the latest values that may be wrong where a break counts as over."""
_LEARNT = 1
"""Breaks of a feature that came back, after which the next one is reported, and learnt."""
_BACK_FOR = 25
"""Observations for which it has to be so small."""


Reference: TypeAlias = tuple[ValueSummary, list[float], int, float]
"""Summary of the values of a feature, numbers kept of them, blocks of 50 numbers, and what a block is worth."""


class _Feature(Stored):
    """State of a watched feature."""

    _unstored = ("values",)

    def __init__(self) -> None:
        self.values = FeatureValues()
        self.broken: InputBreak | None = None
        self.n_back = 0
        self.n_returned = 0
        """Breaks after which the values came back."""

    def snapshot(self) -> Snapshot:
        return {**super().snapshot(), "values": self.values.snapshot()}

    def _complete(self) -> None:
        stored: Any = self.values
        self.values = FeatureValues()
        self.values.restore(stored)


class InputMonitor(Described):
    """A monitor that reports features whose values broke.

    It sees what needs no statistics, within 50 to 100 observations and without labels: a feature that is missing, that
    is stuck at one value, that has words which never came before, that is far outside what came before (as in another
    unit), or that is text instead of a number. What is missing, far outside or text in some rows and not in others, as
    in four of five, is told when such values follow right ones so much more often than before that chance alone brings
    as much once in 10⁹ rows at most. A feature is judged when 250 observations of it have come. Runs of
    missing or equal values count only where they are longer than twice the longest run before, so a sensor that pauses
    is learnt.

    While a break lasts, the reference stays as it was. A break is over when the values are as before again, or after
    `settles` observations, when they become the reference.

    Parameters
    ----------
    settles
        Valid range >= 100. Observations after which broken values are the new reference.
    most
        Valid range >= 1. Features that are watched; those that come later are not.

    Examples
    --------
    >>> import random
    >>> rng, monitor = random.Random(1), InputMonitor()
    >>> for i in range(1100):
    ...     age = rng.randint(17, 90)
    ...     for event in monitor.update({"age": 12 * age if i >= 1000 else age}):
    ...         print(event.sentence("credit"))
    credit: age is 216 to 1 068, and was 19 to 88 before (12 times what it was), since 1 001
    """

    def __init__(self, *, settles: int = 1000, most: int = 1000) -> None:
        self.settles = check_integer("settles", settles, minimum=100)
        self.most = check_integer("most", most, minimum=1)
        self.n_observations = 0
        self._features: dict[Any, _Feature] = {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the monitor."""
        return {"settles": self.settles, "most": self.most}

    @property
    def broken(self) -> dict[Any, InputBreak]:
        """The features that are broken now, each with its report."""
        return {name: one.broken for name, one in self._features.items() if one.broken is not None}

    def values_of(self, name: Any) -> tuple[ValueSummary, ValueSummary] | None:
        """Return summaries of a feature's reference and latest values, or None.

        The latest are 50. None where the feature is not watched.
        """
        one = self._features.get(name)
        if one is None:
            return None
        return _reference(one.values)[0], _summary(one.values.latest(one.values.n_latest))

    def references(self) -> dict[Any, Reference]:
        """Return all features' references, taken before the latest 50 values."""
        return {name: _reference(one.values) for name, one in self._features.items()}

    def latest(self, name: Any, n: int) -> list[Any]:
        """Return the latest values of a feature, at most 50: None where missing."""
        return self._features[name].values.latest(n) if name in self._features else []

    def update(self, x: Features) -> list[InputEvent]:
        """Take in an observation; return the events to report, mostly none.

        Parameters
        ----------
        x
            Feature to value. A known feature that is not in it is missing.
        """
        if type(x) is not dict:
            x = as_row(x)
        self.n_observations += 1
        features, events = self._features, []
        n_known = 0
        for name, value in x.items():
            one = features.get(name)
            if one is None:
                if len(features) >= self.most:
                    continue
                one = features[name] = _Feature()
            n_known += 1
            code = one.values.add(value)
            if code != NOTHING or one.broken is not None:
                events += self._follow(name, one, code)
        if n_known < len(features):
            for name, one in features.items():
                if name not in x:
                    code = one.values.add(None)
                    if code != NOTHING or one.broken is not None:
                        events += self._follow(name, one, code)
        return events

    def _follow(self, name: Any, one: _Feature, code: int) -> list[InputEvent]:
        broken, values = one.broken, one.values
        if broken is None:
            values.is_held, one.n_back = True, 0
            one.broken = self._report(name, one, code)
            if one.n_returned >= _LEARNT:  # it comes and goes: from now on it is known to
                values.learn_latest()
            return [one.broken]
        usual = values.n_missing / max(values.n, 1)
        is_back = all(values.share_of(of) <= _BACK + (usual if of == GONE else 0.0) for of in _FAULTS)
        one.n_back = one.n_back + 1 if is_back else 0
        if one.n_back >= _BACK_FOR:
            values.is_held = False
            one.n_returned += 1
            return [self._end(one, broken, "returned")]
        if self.n_observations - broken.since >= self.settles:
            values.forget()
            return [self._end(one, broken, "settled")]
        return []

    def _end(self, one: _Feature, broken: InputBreak, reason: Any) -> InputBreakEnd:
        one.broken, one.n_back = None, 0
        return InputBreakEnd(broken, reason, self.n_observations)

    def _report(self, name: Any, one: _Feature, code: int) -> InputBreak:
        values, fault = one.values, _FAULTS[code]
        n = values.since(code)
        latest, wrong = values.latest(n), values.latest(n, code)
        share = len(wrong) / len(latest)
        if share < MOSTLY and fault != "missing":  # what is right says nothing of what is wrong with the rest
            latest = wrong
        before, after = values.numbers_kept(), _numbers(latest)
        unit = other = None
        if fault == "range":
            other = swapped_with(
                name,
                {other: of.values.numbers_kept() for other, of in self._features.items()},
                {other: _numbers(of.values.latest(n)) for other, of in self._features.items()},
            )
            earlier = _numbers(values.latest(values.n_latest))[: -len(after)]
            unit = None if other is not None else unit_of(before, after, earlier[-1] if earlier else None)
        return InputBreak(
            feature=name,
            fault=fault,
            observation=self.n_observations,
            since=self.n_observations - n + 1,
            before=ValueSummary.of(values.n, values.n_missing, before, values.words),
            after=_summary(latest),
            unit=unit,
            swapped_with=other,
            share=share,
        )

    def restart(self) -> list[InputBreakEnd]:
        """Start again, as with another source; return the ends of open breaks."""
        ended = [self._end(one, one.broken, "replaced") for one in self._features.values() if one.broken is not None]
        self._features = {}
        return ended

    def _facts(self) -> list[tuple[str, str]]:
        return [
            *super()._facts(),
            ("features", figure(len(self._features))),
            ("broken", ", ".join(map(str, self.broken)) or "none"),
        ]

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from: numbers, text, bytes, lists, dicts."""
        state = attributes(self, ("n_observations", "_features"))
        return {"format": _FORMAT, "parameters": self.parameters, "state": state}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the monitor of a snapshot, which continues bit for bit.

        Raises
        ------
        SnapshotError
            It is of another format.
        """
        if not isinstance(snapshot, Mapping) or snapshot.get("format") != _FORMAT:
            raise SnapshotError(f"expected a snapshot of an InputMonitor of format {_FORMAT}: make a new one")
        monitor = cls(**snapshot["parameters"])
        set_attributes(monitor, snapshot["state"])
        return monitor


def _reference(values: FeatureValues) -> Reference:
    kept = values.numbers_kept()
    return ValueSummary.of(values.n, values.n_missing, kept, values.words), kept, values.n_blocks, values.independent()


def _numbers(values: list[Any]) -> list[float]:
    return [value for value in values if isinstance(value, float)]


def _summary(values: list[Any]) -> ValueSummary:
    words = Counter(value for value in values if isinstance(value, str))
    return ValueSummary.of(len(values), values.count(None), _numbers(values), words)
