"""Joins a model's observations with their labels, in either order.

No clock is read: the watermark, the largest time of any record of the model so far, decides what has come too late. So
a replay of the same records expires the same observations.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from hashlib import blake2b
from statistics import median
from typing import Any, NamedTuple, Self

logger = logging.getLogger(__name__)

_LABEL_BITS = 32


class Ended(Enum):
    """Fate of an observation."""

    JOINED = "joined"
    EXPIRED = "expired"


def hash_of(text: str) -> int:
    """Return 8 bytes of a text's hash, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Past:
    """Remembers ended observations; the oldest are forgotten first.

    One is remembered for `keep_ms`, in time of the stream; `most` are at once.
    """

    def __init__(self, keep_ms: int, most: int) -> None:
        self._keep_ms, self._most = keep_ms, most
        self._ended: dict[int, int] = {}
        """Hash of the id to when it ended, and to a hash of its label, as one number: a pair takes twice the memory."""

    def __len__(self) -> int:
        return len(self._ended)

    def find(self, key: str) -> Ended | None:
        """Return whether an observation was joined or expired; None if unknown."""
        found = self._ended.get(hash_of(key))
        return None if found is None else Ended.EXPIRED if _label(found) < 0 else Ended.JOINED

    def has_label(self, key: str, y: Any) -> bool:
        """Return whether a joined observation had this label."""
        return _label(self._ended[hash_of(key)]) == _hash_of_label(y)

    def note(self, key: str, watermark: int, y: Any = None, *, ended: Ended) -> None:
        """Remember that an observation has ended now."""
        self._ended[hash_of(key)] = _packed(watermark, -1 if ended is Ended.EXPIRED else _hash_of_label(y))
        if len(self._ended) > self._most:
            del self._ended[next(iter(self._ended))]

    def forget(self, watermark: int) -> None:
        """Forget observations that ended too long ago."""
        for key in [*self._outdated(watermark)]:
            del self._ended[key]

    def _outdated(self, watermark: int) -> Iterator[int]:
        for key, ended in self._ended.items():
            if _ended_at(ended) + self._keep_ms >= watermark:
                return
            yield key

    def snapshot(self) -> dict[int, int]:
        """Return plain data to restore from."""
        return dict(self._ended)

    def restore(self, snapshot: dict[int, int]) -> Self:
        """Restore as much of `snapshot` as is remembered; return this object."""
        self._ended = dict(snapshot)
        while len(self._ended) > self._most:
            del self._ended[next(iter(self._ended))]
        return self


def _packed(ended_at: int, label: int) -> int:
    """Pack the time of the end and the label's hash (or -1) into a number."""
    return (ended_at << _LABEL_BITS + 1) | (label + 1)


def _ended_at(packed: int) -> int:
    return packed >> _LABEL_BITS + 1


def _label(packed: int) -> int:
    return (packed & (1 << _LABEL_BITS + 1) - 1) - 1


def _hash_of_label(y: Any) -> int:
    return hash_of(f"{type(y).__name__}:{y}") >> (64 - _LABEL_BITS)


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
        """Return plain data to restore from."""
        return {
            **{name: getattr(self, name) for name in ("watermark", "total_delay_ms")},
            "counts": asdict(self.counts),
            "delays": list(self.delays),
            "recent": list(self._recent),
            "waiting": {key: tuple(one) for key, one in self._waiting.items()},
            "early": {key: tuple(one) for key, one in self._early.items()},
            "past": self._past.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Restore from `snapshot`; another `ttl_ms` moves the deadlines."""
        self.watermark, self.total_delay_ms = snapshot["watermark"], snapshot["total_delay_ms"]
        self.counts = JoinCounts(**snapshot["counts"])
        self.delays = list(snapshot["delays"])
        self._recent.extend(snapshot["recent"])
        self._waiting = {key: Waiting(*one) for key, one in snapshot["waiting"].items()}
        self._names = {one.names: one.names for one in self._waiting.values()}
        self._early = {key: Early(*one) for key, one in snapshot["early"].items()}
        self._past.restore(snapshot["past"])


@dataclass(frozen=True)
class Join:
    """How the observations of a model wait for their labels.

    One waits for the other for `ttl_ms`, in time of the stream (None: labels come in the observation); an observation
    that has no label in time still counts where none is needed, if `explains_unlabelled`. A request waits for its
    response for `pair_ms` (None: observations come whole). A record's time may be ahead of Kafka's timestamp by
    `max_ahead_ms`: further, and all that waits would expire.
    """

    ttl_ms: int | None = None
    max_waiting: int = 10_000
    explains_unlabelled: bool = False
    pair_ms: int | None = None
    max_ahead_ms: int = 3_600_000


@dataclass
class Late:
    """A model's waiting observations and requests.

    Observations wait for labels. Requests wait for the responses of a model that is served elsewhere. `labels` is None
    where labels come in the observation or never, `pairs` where observations come whole.
    """

    labels: Joiner | None
    pairs: Joiner | None

    @classmethod
    def of(cls, join: Join | None) -> Self | None:
        """Return a model's initial state; None where nothing of it ever waits."""
        if join is None:
            return None
        return cls(
            None if join.ttl_ms is None else Joiner(join.ttl_ms, join.max_waiting),
            None if join.pair_ms is None else Joiner(join.pair_ms, join.max_waiting),
        )

    def forget_predictions(self) -> None:
        """Forget the predictions of a model that starts again."""
        if self.labels is not None:
            self.labels.forget_predictions()

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {name: None if joiner is None else joiner.snapshot() for name, joiner in vars(self).items()}


def restored(begun: Late | None, model_id: str, snapshot: dict[str, Any] | None) -> Late | None:
    """Return `begun` with the snapshot's waiting items; log any losses."""
    for name, known in (snapshot or {}).items():
        joiner = getattr(begun, name, None)
        if known is not None and joiner is not None:
            joiner.restore(known)
        elif known is not None and known["waiting"]:
            logger.warning(
                "model %s: %d observations waited, and the configuration has no more %s for them: they are forgotten",
                *(model_id, len(known["waiting"]), name),
            )
    return begun
