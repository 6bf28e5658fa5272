"""Joins a model's observations with their labels, in either order.

No clock is read: the watermark, the largest time of any record of the model so far, decides what has come too late. So
a replay of the same records expires the same observations.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, NamedTuple

from .past import Ended, Past

BUCKETS_S = (1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_592_000)
"""Upper bounds of the histogram of label delays, in seconds."""

_DELAYS = 101
"""Delays that the median is of."""


_NEVER = 2**62
"""Count of observations that no model reaches: of a prediction that is of none."""


class Waiting(NamedTuple):
    """An observation that waits for its label.

    It `arrived` at that watermark: its deadline is `ttl` later. The names of its features are one object for all
    observations that have the same. `y_pred` is what was predicted then, by the model or as it was logged (None:
    nothing), by this version of the model after so many observations.
    """

    arrived: int
    time_ms: int
    names: tuple[str, ...]
    values: tuple[Any, ...]
    y_pred: Any
    version: str
    n_learnt: int

    @property
    def x(self) -> dict[str, Any]:
        """Its features by name."""
        return dict(zip(self.names, self.values, strict=True))


class Early(NamedTuple):
    """A label that waits for its observation."""

    arrived: int
    time_ms: int
    y: Any


class Joined(NamedTuple):
    """An observation and its label."""

    observation: Waiting
    y: Any


@dataclass
class JoinCounts:
    """Counts of observations and labels by their fate.

    Always: observed = joined + waiting + expired_ttl + expired_cap, and labels = joined + early + orphaned + duplicate
    + late. `changed` are the duplicate labels that said something else than the one that was joined, `old_version` the
    joined observations whose prediction was of a version before the present one.
    """

    observed: int = 0
    joined: int = 0
    expired_ttl: int = 0
    expired_cap: int = 0
    repeated: int = 0
    labels: int = 0
    orphaned: int = 0
    duplicate: int = 0
    changed: int = 0
    late: int = 0
    old_version: int = 0


class Joiner:
    """Joins observations and labels of a model by id.

    One waits for the other for `ttl_ms`, in time of the stream. At most `max_waiting` observations wait, and as many
    labels; beyond it the oldest gives way.
    """

    def __init__(self, ttl_ms: int, max_waiting: int) -> None:
        self._ttl, self.max_waiting = ttl_ms, max_waiting
        self.watermark: int | None = None
        """The largest time so far, in milliseconds; None before the first record."""
        self.counts = JoinCounts()
        self.delays = [0] * (len(BUCKETS_S) + 1)
        """How many labels were so late, by `BUCKETS_S`; the last is beyond them."""
        self.total_delay_ms = 0
        self._recent: deque[int] = deque(maxlen=_DELAYS)
        self._waiting: dict[str, Waiting] = {}
        self._early: dict[str, Early] = {}
        self._past = Past(ttl_ms, 4 * max_waiting)
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}

    @property
    def n_waiting(self) -> int:
        """Observations that wait for their label."""
        return len(self._waiting)

    @property
    def n_early(self) -> int:
        """Labels that wait for their observation."""
        return len(self._early)

    @property
    def n_expired(self) -> int:
        """Observations whose label did not come in time."""
        return self.counts.expired_ttl + self.counts.expired_cap

    @property
    def oldest_ms(self) -> int | None:
        """Time of the observation that waits longest; None where none waits."""
        return next((one.time_ms for one in self._waiting.values()), None)

    @property
    def median_delay_s(self) -> float | None:
        """Median of recent label delays in seconds; None before the first."""
        recent = tuple(self._recent)  # in one piece, whoever else notes a delay meanwhile
        return median(recent) / 1000 if recent else None

    def knows(self, key: str) -> bool:
        """Return whether an observation with this id is remembered."""
        return key in self._waiting or self._past.find(key) is not None

    def is_awaited(self, key: str) -> bool:
        """Return whether the label of this id has come already, and waits."""
        return key in self._early

    def move(self, time_ms: int) -> list[Waiting]:
        """Note a record's time; return the observations that have expired."""
        if self.watermark is not None and time_ms <= self.watermark:
            return []
        self.watermark = time_ms
        expired = []
        while self._waiting and next(iter(self._waiting.values())).arrived + self._ttl < time_ms:
            expired.append(self._expire())
            self.counts.expired_ttl += 1
        while self._early and next(iter(self._early.values())).arrived + self._ttl < time_ms:
            self._orphan()
        self._past.forget(time_ms)
        return expired

    def repeat(self) -> None:
        """Count an observation that has come before."""
        self.counts.repeated += 1

    def observe(
        self, key: str, time_ms: int, x: dict[str, Any], y_pred: Any, version: str, n_learnt: int
    ) -> tuple[Joined | None, list[Waiting]]:
        """Take in an observation; return it if joined, and any pushed out."""
        assert self.watermark is not None  # `move` comes first
        self.counts.observed += 1
        names = tuple(x)
        one = Waiting(
            self.watermark, time_ms, self._names.setdefault(names, names), tuple(x.values()), y_pred, version, n_learnt
        )
        early = self._early.pop(key, None)
        if early is not None:
            return self._join(key, one, early.y, early.time_ms), []
        self._waiting[key] = one
        expired = []
        while len(self._waiting) > self.max_waiting:
            expired.append(self._expire())
            self.counts.expired_cap += 1
        return None, expired

    def label(self, key: str, time_ms: int, y: Any) -> Joined | None:
        """Take a label; return it with its observation, if that waits."""
        assert self.watermark is not None  # `move` comes first
        self.counts.labels += 1
        one = self._waiting.pop(key, None)
        if one is not None:
            return self._join(key, one, y, time_ms)
        ended = self._past.find(key)
        if ended is Ended.EXPIRED:
            self.counts.late += 1
        elif ended is Ended.JOINED:
            self.counts.duplicate += 1
            self.counts.changed += not self._past.has_label(key, y)
        elif key in self._early:
            self.counts.duplicate += 1
            self.counts.changed += type(y) is not type(self._early[key].y) or y != self._early[key].y
        else:
            self._early[key] = Early(self.watermark, time_ms, y)
            while len(self._early) > self.max_waiting:
                self._orphan()
        return None

    def forget_predictions(self) -> None:
        """Forget the model's predictions that wait, but not the logged ones."""
        self._waiting = {
            key: one if one.n_learnt < 0 else one._replace(y_pred=None, n_learnt=_NEVER)
            for key, one in self._waiting.items()
        }

    def _join(self, key: str, one: Waiting, y: Any, labelled_ms: int) -> Joined:
        assert self.watermark is not None
        self.counts.joined += 1
        self._past.note(key, self.watermark, y, ended=Ended.JOINED)
        delay = max(labelled_ms - one.time_ms, 0)
        self.total_delay_ms += delay
        self._recent.append(delay)
        self.delays[next((n for n, most in enumerate(BUCKETS_S) if delay <= most * 1000), len(BUCKETS_S))] += 1
        return Joined(one, y)

    def _expire(self) -> Waiting:
        assert self.watermark is not None
        key = next(iter(self._waiting))
        one = self._waiting.pop(key)
        self._past.note(key, self.watermark, ended=Ended.EXPIRED)
        if len(self._names) > 64 and len(self._names) > len(self._waiting):
            self._names = {waiting.names: waiting.names for waiting in self._waiting.values()}
        return one

    def _orphan(self) -> None:
        del self._early[next(iter(self._early))]
        self.counts.orphaned += 1

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from, stored by columns to save space."""
        waiting, early = list(self._waiting.values()), list(self._early.values())
        names = {one: n for n, one in enumerate(dict.fromkeys(one.names for one in waiting))}
        versions = {one: n for n, one in enumerate(dict.fromkeys(one.version for one in waiting))}
        return {
            "watermark": self.watermark,
            "counts": asdict(self.counts),
            "delays": list(self.delays),
            "total_delay_ms": self.total_delay_ms,
            "recent": list(self._recent),
            "names": list(names),
            "versions": list(versions),
            "keys": list(self._waiting),
            "values": [one.values for one in waiting],
            "y_pred": [one.y_pred for one in waiting],
            "numbers": {
                "arrived": _packed(one.arrived for one in waiting),
                "time_ms": _packed(one.time_ms for one in waiting),
                "names": _packed(names[one.names] for one in waiting),
                "version": _packed(versions[one.version] for one in waiting),
                "n_learnt": _packed(one.n_learnt for one in waiting),
            },
            "early": {
                "keys": list(self._early),
                "y": [one.y for one in early],
                "arrived": _packed(one.arrived for one in early),
                "time_ms": _packed(one.time_ms for one in early),
            },
            "past": self._past.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore from `snapshot`; another `ttl_ms` moves the deadlines."""
        self.watermark = snapshot["watermark"]
        self.counts = JoinCounts(**snapshot["counts"])
        self.delays = list(snapshot["delays"])
        self.total_delay_ms = snapshot["total_delay_ms"]
        self._recent = deque(snapshot["recent"], maxlen=_DELAYS)
        names = [tuple(one) for one in snapshot["names"]]
        self._names = {one: one for one in names}
        stored, versions, early = snapshot["numbers"], snapshot["versions"], snapshot["early"]
        waiting = zip(
            _unpacked(stored["arrived"]),
            _unpacked(stored["time_ms"]),
            (names[n] for n in _unpacked(stored["names"])),
            snapshot["values"],
            snapshot["y_pred"],
            (versions[n] for n in _unpacked(stored["version"])),
            _unpacked(stored["n_learnt"]),
            strict=True,
        )
        self._waiting = dict(zip(snapshot["keys"], map(Waiting._make, waiting), strict=True))
        labels = zip(_unpacked(early["arrived"]), _unpacked(early["time_ms"]), early["y"], strict=True)
        self._early = dict(zip(early["keys"], map(Early._make, labels), strict=True))
        self._past.restore(snapshot["past"])


def _packed(numbers: Any) -> bytes:
    return array("q", numbers).tobytes()


def _unpacked(packed: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(packed)
    return numbers
