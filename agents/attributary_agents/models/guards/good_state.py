"""Last good copy of a model, and observations that it could handle.

They tell whether the model is at fault or the observations. Counts of observations alone decide, and all of it is in
the stored state: a replay decides the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import zstandard

from attributary_explainers import ModelError, dump_model

_EVERY = 1000
"""Observations from one copy to the next; a young model is copied as often as it doubles its age."""

_LARGE = 500_000
"""Bytes of a model beyond which it is copied more rarely: half as often from there on, and at each doubling."""

_FIRST = 50

_CLEAN = 20
"""Observations in a row that have to be handled before a copy is taken: a model that was ruined shows it at once."""

_PATIENCE = 3
"""Failures in a row after which the model is examined; twice as many after each examination that finds it well."""

_N_WITNESSES = 5

_WITNESS_EVERY = 50
"""Observations from one witness to the next: a hostile few cannot be all of them."""

_MAX_BYTES, _MAX_RATIO = 2**25, 64
"""A stored copy is unpacked to so many bytes at most, or to so many times its length where that is more."""

Read = Callable[[bytes], Any]


class GoodState:
    """Last good state of a version of a model.

    The copy is a compressed dump. It is taken when the version begins, after 50, 100, 200, 400 and 800 observations,
    and from then on every 1000, or more rarely of a large model.
    """

    def __init__(self) -> None:
        self.copy: bytes | None = None
        """The model, compressed; None before the version's first observation, and where the model does not learn."""
        self.first: bytes | None = None
        """The model before the version's first observation, compressed."""
        self.at = 0
        """Observation of the model after which the copy was taken."""
        self.due = 0
        """Observation after which the next copy is to be taken."""
        self.began = 0
        """Observation of the model before the version's first."""
        self.n_clean = 0
        """Observations in a row that were handled."""
        self.n_failed = 0
        """Observations in a row on which the model failed."""
        self.patience = _PATIENCE
        """Failures in a row after which the model is examined next."""
        self.witnesses: list[bytes] = []
        """Observations that the model has handled, the oldest first."""

    def begin(self, model: Any, observation: int) -> None:
        """Take the first copy, of a version before its first observation.

        Parameters
        ----------
        observation
            Number of the model's observations so far.
        """
        self.began = observation
        self._take(model, observation)
        self.first = self.copy

    @property
    def is_beginning(self) -> bool:
        """Whether the copy is of the version before its first observation."""
        return self.at == self.began

    def note(self, model: Any, observation: int, x: dict[str, Any], y: Any) -> None:
        """Take in a handled observation; copy the model if that is due.

        Parameters
        ----------
        observation
            Its number, from 1.
        """
        if self.copy is None:
            return
        self.n_clean += 1
        self.n_failed = 0
        age = observation - self.began
        if age <= _N_WITNESSES or age % _WITNESS_EVERY == 0:
            # As bytes, which are the same whatever strings the observation shares with others.
            self.witnesses = [*self.witnesses[1 - _N_WITNESSES :], dump_model((x, y))]
        if observation >= self.due and self.n_clean >= _CLEAN:
            self._take(model, observation)
            self.patience = _PATIENCE

    def note_failure(self) -> None:
        """Take in an observation on which the model failed."""
        self.n_clean = 0
        self.n_failed += 1

    @property
    def is_examination_due(self) -> bool:
        """Whether the model has failed so often in a row that it may be at fault."""
        return self.copy is not None and self.n_failed >= self.patience

    def acquit(self) -> None:
        """Note that an examination found the model well.

        The next examination is further away, whatever the stream does.
        """
        self.patience *= 2

    def went_back(self) -> None:
        """Note that the copy is the model again."""
        self.n_failed = self.n_clean = 0
        self.patience = _PATIENCE

    def give_up(self) -> None:
        """Drop a copy that cannot be read; the next copy is of the present model."""
        self.copy, self.first, self.witnesses = None, None, []

    def load(self, read: Read) -> Any:
        """Load the copied model, a new object each time.

        Parameters
        ----------
        read
            Makes an object of what `dump_model` gave: by the list of types, because the copy has been stored.
        """
        assert self.copy is not None
        return _unpacked(self.copy, read)

    def load_first(self, read: Read) -> Any | None:
        """Load the model from before the version's first observation.

        None where that model is not known.

        Parameters
        ----------
        read
            As for `load`.
        """
        return None if self.first is None else _unpacked(self.first, read)

    def observations(self, read: Read) -> list[tuple[dict[str, Any], Any]]:
        """Return the witnesses: features and labels of handled observations.

        Parameters
        ----------
        read
            As for `load`.
        """
        return [read(one) for one in self.witnesses]

    def _take(self, model: Any, observation: int) -> None:
        try:
            data = dump_model(model)
        except ModelError:  # it could be saved when it was made, and cannot now: the checkpoint will say so
            return
        self.copy, self.at = zstandard.ZstdCompressor(level=3).compress(data), observation
        every = _EVERY << (len(data) // _LARGE).bit_length()
        self.due = observation + min(every, max(_FIRST, observation - self.began))

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {**vars(self), "witnesses": list(self.witnesses)}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any] | None) -> Self:
        """Restore a good state from its snapshot.

        An older state has none, and is copied with its next observation.
        """
        good = cls()
        if snapshot is not None:
            vars(good).update({**snapshot, "witnesses": list(snapshot["witnesses"])})
        return good


def _unpacked(copy: bytes, read: Read) -> Any:
    most = max(_MAX_BYTES, _MAX_RATIO * len(copy))
    return read(zstandard.ZstdDecompressor().decompress(copy, max_output_size=most))
