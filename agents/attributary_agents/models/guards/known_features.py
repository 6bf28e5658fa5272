"""Bound on the number of undeclared features that a model meets.

Each known feature costs time at every observation. Half of the bound is given on sight while few observations are
known, and later as many again as there are within a thousand observations. Others are taken once they have come several
times. So names that are sent once neither fill the bound nor slow an established model, and those that have not come
for long make room; the others do, too, for names that have been refused a hundred times.
"""

from __future__ import annotations

from typing import Any

from attributary_topics import InvalidRecordError

from ...config.models import ModelConfig
from .vocabulary import EARLY

IN_ALL = 20
"""Observations with a new feature, of which the last is taken: where many are new at a time, or the bound is full."""

FEW = 20
"""New features that an established model takes on sight, within a thousand observations."""

UNSEEN = 100
"""Observations without a feature, or refused ones with another, after which that may have its place."""


class KnownFeatures:
    """Names of the features that a model has taken, up to `max_features`.

    Features of groups, which explainers know by the names of their groups, are not counted. Nor is anything where the
    features are declared.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._most = config.max_features
        self._is_declared = config.features is not None
        self._grouped = {name for members in config.groups.values() for name in members}
        self.n = 0
        """Observations that were offered."""
        self.known: dict[str, int] = {}
        """Names to the observation, of those offered, in which they came last; it lags for those of `latest`."""
        self.latest: dict[str, None] = {}
        """The names of the latest observation that was taken."""
        self.latest_at = 0
        """The observation, of those offered, that had just these names last."""
        self.waiting: dict[str, int] = {}
        """Names that are not known to the observations refused that had them, the latest at the end."""
        self.fresh: tuple[int, int] = (0, 0)
        """Observation since which new names are counted, and how many have been taken on sight since."""

    def check(self, x: dict[str, Any]) -> None:
        """Check that the model may be given these features.

        Raises
        ------
        InvalidRecordError
            `too_large`.
        """
        if self._is_declared:
            return
        self.n += 1
        if x.keys() == self.latest.keys():
            self.latest_at = self.n
            return
        new = [name for name in x if name not in self.known and name not in self._grouped]
        if not new or self._are_taken(x, new):
            return
        waited = min(self.waiting.get(name, 0) for name in new)
        over = len(self.known) + len(new) - self._most
        is_young = self.n <= EARLY and over <= 0
        if waited + 1 < (2 if is_young else IN_ALL):
            self._wait(new)
            raise self._refusal(new, over)
        if over > 0 and len(self._giving_way(x, waited)) < over:
            self._wait(new)
            raise self._refusal(new, over)

    def note(self, x: dict[str, Any]) -> list[str]:
        """Take in the features of an observation that the model has taken.

        `check` has seen them before.

        Returns
        -------
        The names that have made room: whoever knows them has to forget them, too.
        """
        if self._is_declared or (self.latest_at == self.n and self.n) or x.keys() == self.latest.keys():
            return []  # by the number, `check` has seen just now that these are the latest names
        forgotten: list[str] = []
        known = self.known
        known.update(dict.fromkeys((name for name in self.latest if name in known), self.latest_at))
        self.latest, self.latest_at = dict.fromkeys(x), self.n
        new = [name for name in x if name not in known and name not in self._grouped]
        if new:
            since, n_fresh = self._fresh()
            self.fresh = since, n_fresh + len(new)
            waited = min(self.waiting.get(name, 0) for name in new)
            forgotten = self._giving_way(x, waited)[: max(len(known) + len(new) - self._most, 0)]
            for name in forgotten:
                del known[name]
            for name in new:
                self.waiting.pop(name, None)
        known.update(dict.fromkeys((name for name in x if name not in self._grouped), self.n))
        return forgotten

    def _are_taken(self, x: dict[str, Any], new: list[str]) -> bool:
        """Return whether these are taken on sight."""
        n_known = len(self.known)
        if not n_known:
            return len(new) <= self._most
        if self.n <= EARLY:
            return n_known + len(new) <= max(self._most // 2, 1)
        n_fresh = self._fresh()[1]
        return n_fresh + len(new) <= max(FEW, n_known - n_fresh) and n_known + len(new) <= self._most

    def _fresh(self) -> tuple[int, int]:
        return self.fresh if self.n - self.fresh[0] < EARLY else (self.n, 0)

    def _giving_way(self, x: dict[str, Any], waited: int) -> list[str]:
        """Return the names that can make room, longest unseen first.

        They make room for names that have waited `waited` times.
        """
        latest, at = self.latest, self.latest_at
        last = [(at if name in latest else n, name) for name, n in self.known.items() if name not in x]
        # Names sent every now and then could fill the bound for ever: what has waited for so long is the next.
        least = UNSEEN if waited + 1 < UNSEEN else 0
        return [name for n, name in sorted(last) if self.n - n >= least]

    def _wait(self, new: list[str]) -> None:
        for name in new:
            self.waiting[name] = self.waiting.pop(name, 0) + 1
        while len(self.waiting) > 2 * self._most:
            del self.waiting[next(iter(self.waiting))]

    def _refusal(self, new: list[str], over: int) -> InvalidRecordError:
        n_known = len(self.known)
        if over > 0:
            expected = f"at most {self._most} features at a time (max_features), or `features` that declare them"
        else:
            expected = (
                f"few features that are new at a time, or such as came in {IN_ALL} observations: {len(new)} beside "
                f"{n_known} would slow the model down (`features` that declare them are taken at once)"
            )
        return InvalidRecordError("too_large", "x", expected, f"{n_known} and {len(new)} more")

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {
            "n": self.n,
            "known": dict(self.known),
            "latest": list(self.latest),
            "latest_at": self.latest_at,
            "waiting": dict(self.waiting),
            "fresh": list(self.fresh),
        }

    @classmethod
    def from_snapshot(cls, config: ModelConfig, snapshot: dict[str, Any] | None) -> KnownFeatures:
        """Restore the features from a snapshot, bounded as configured now.

        None: no feature is known.
        """
        features = cls(config)
        if snapshot is not None:
            features.n, features.latest_at = snapshot["n"], snapshot["latest_at"]
            features.known, features.waiting = dict(snapshot["known"]), dict(snapshot["waiting"])
            features.latest = dict.fromkeys(snapshot["latest"])
            features.fresh = snapshot["fresh"][0], snapshot["fresh"][1]
        return features
