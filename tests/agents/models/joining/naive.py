"""The join as ATTACH's table says it, without any structure: all that has come is kept, and looked through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class NaiveJoiner:
    """Decides each record by going through the whole past."""

    ttl: int
    cap: int
    watermark: int | None = None
    ids: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Id to what is known of it: state, arrival, order, label."""
    n: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    order: int = 0

    def _in(self, state: str) -> list[str]:
        found = [key for key, one in self.ids.items() if one["state"] == state]
        return sorted(found, key=lambda key: self.ids[key]["order"])

    def _move(self, time: int) -> None:
        self.watermark = time if self.watermark is None else max(self.watermark, time)
        for key in self._in("waiting"):
            if self.ids[key]["at"] + self.ttl < self.watermark:
                self._expire(key, "expired_ttl")
        for key in self._in("early"):
            if self.ids[key]["at"] + self.ttl < self.watermark:
                self._orphan(key)
        for key in [*self._in("joined"), *self._in("expired")]:
            if self.ids[key]["ended"] + self.ttl < self.watermark:
                del self.ids[key]

    def _expire(self, key: str, why: str) -> None:
        self.n[why] += 1
        self.ids[key] |= {"state": "expired", "ended": self.watermark}
        self._forget_beyond()

    def _orphan(self, key: str) -> None:
        self.n["orphaned"] += 1
        del self.ids[key]

    def _join(self, key: str, y: Any) -> tuple[str, Any]:
        self.n["joined"] += 1
        self.ids[key] |= {"state": "joined", "ended": self.watermark, "y": y, "order": self._next()}
        self._forget_beyond()
        return key, y

    def _forget_beyond(self) -> None:
        past = [*self._in("joined"), *self._in("expired")]
        past.sort(key=lambda key: self.ids[key].get("past", 0))
        for key in past:
            self.ids[key].setdefault("past", self._next())
        past.sort(key=lambda key: self.ids[key]["past"])
        while len(past) > 4 * self.cap:
            del self.ids[past.pop(0)]

    def _next(self) -> int:
        self.order += 1
        return self.order

    def observation(self, key: str, time: int) -> tuple[str, Any] | None:
        self._move(time)
        state = self.ids.get(key, {}).get("state")
        if state in ("waiting", "joined", "expired"):
            self.n["repeated"] += 1
            return None
        self.n["observed"] += 1
        if state == "early":
            return self._join(key, self.ids[key]["y"])
        self.ids[key] = {"state": "waiting", "at": self.watermark, "order": self._next()}
        while len(self._in("waiting")) > self.cap:
            self._expire(self._in("waiting")[0], "expired_cap")
        return None

    def label(self, key: str, time: int, y: Any) -> tuple[str, Any] | None:
        self._move(time)
        self.n["labels"] += 1
        state = self.ids.get(key, {}).get("state")
        if state == "waiting":
            return self._join(key, y)
        if state == "expired":
            self.n["late"] += 1
        elif state in ("joined", "early"):
            self.n["duplicate"] += 1
            self.n["changed"] += self.ids[key]["y"] != y
        else:
            self.ids[key] = {"state": "early", "at": self.watermark, "y": y, "order": self._next()}
            while len(self._in("early")) > self.cap:
                self._orphan(self._in("early")[0])
        return None

    def count(self, state: str) -> int:
        return len(self._in(state))


NAMES = (
    "observed",
    "joined",
    "expired_ttl",
    "expired_cap",
    "repeated",
    "labels",
    "orphaned",
    "duplicate",
    "changed",
    "late",
)
