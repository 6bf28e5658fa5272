"""Keeps what the output topics have said in one SQLite file, and answers from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from .rows import (
    Arrived,
    Kind,
    Live,
    Snapshot,
    StoredChange,
    StoredModel,
    StoredReason,
    StoredVersion,
    Window,
)


class Store:
    """Keeps events, one packed row each; one thread at a time writes, any number read meanwhile.

    Parameters
    ----------
    path
        The file, made if it is not there; None keeps everything in a temporary file that goes with the object.
    max_bytes
        Largest size of the file; the oldest events go first.
    max_age_s
        How long events are kept, by their own times.

    Raises
    ------
    StoreError
        The file cannot be opened, or another server has it open.
    """

    def __init__(
        self, path: Path | None = None, *, max_bytes: int = 2 * 10**9, max_age_s: float = 30 * 86400.0
    ) -> None:
        raise NotImplementedError

    # What is written.

    def take(self, records: Sequence[Arrived], positions: Mapping[tuple[str, int], int] = {}) -> list[Live]:
        """Take records, and where their topics are read to, in one transaction; return what is new of them for pages.

        A record that it has already, by its id, changes nothing. `positions` is topic and partition to the next offset.
        """
        raise NotImplementedError

    def positions(self) -> dict[tuple[str, int], int]:
        """Return where each partition of each topic is read to."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop everything: the topics have been made anew."""
        raise NotImplementedError

    def trim(self, now_ms: int) -> None:
        """Thin and drop what is too old or too much."""
        raise NotImplementedError

    # What is read.

    def models(self) -> list[StoredModel]:
        """Return all models, by their ids."""
        raise NotImplementedError

    def model(self, model_id: str) -> StoredModel | None:
        """Return a model; None where no topic has said anything of it."""
        raise NotImplementedError

    def window(
        self,
        model_id: str,
        explainer: str,
        *,
        start: int | None = None,
        end: int | None = None,
        by: str = "time",
        points: int = 600,
        top: int = 10,
        features: Collection[str] = (),
    ) -> Window | None:
        """Return a window of an explainer's events, bounds included; None where there is no event in it.

        Parameters
        ----------
        start, end
            Milliseconds since the epoch, or observations; None: from the first, to the last.
        by
            `time` or `observation`: what start, end and the equal widths of points count.
        top
            How many features are shown, the most important of the last event, and those of `features` in any case.
        """
        raise NotImplementedError

    def recent(
        self, model_id: str, explainer: str, scalar: str, *, start: int | None, points: int
    ) -> list[float | None]:
        """Return one of `SCALARS` from a moment on, put together into at most so many values."""
        raise NotImplementedError

    def snapshot(
        self, model_id: str, explainer: str, *, time_ms: int | None = None, observation: int | None = None
    ) -> Snapshot | None:
        """Return the last event at or before a moment, or of all where none is given; the first where all are later."""
        raise NotImplementedError

    def nearest(self, model_id: str, explainer: str, value: int, by: str) -> tuple[int | None, int] | None:
        """Return time and observation of the event that is nearest to a moment."""
        raise NotImplementedError

    def versions(self, model_id: str) -> list[StoredVersion]:
        """Return the versions of a model, the newest first."""
        raise NotImplementedError

    def changes(
        self,
        model_id: str | None = None,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        events: Collection[str] = (),
        is_open: bool | None = None,
        last: int | None = None,
    ) -> list[StoredChange]:
        """Return changes, the newest first; of all kinds where `events` is empty."""
        raise NotImplementedError

    def n_changes(
        self,
        model_id: str | None = None,
        *,
        start_ms: int | None = None,
        end_ms: int | None = None,
        events: Collection[str] = (),
    ) -> int:
        """Return how many there are."""
        raise NotImplementedError

    def change(self, change_id: str) -> StoredChange | None:
        """Return a change by its id."""
        raise NotImplementedError

    def chain(self, change_id: str) -> list[StoredChange]:
        """Return all events that belong to a change: what it closes, and what closes it, in the order of time."""
        raise NotImplementedError

    def dead_letters(
        self, model_id: str | None = None, *, start_ms: int | None = None, end_ms: int | None = None
    ) -> list[StoredReason]:
        """Count dead letters by model, reason and stage, by the hour that they are of."""
        raise NotImplementedError

    def dependences(self, model_id: str) -> list[Mapping[str, object]]:
        """Return the latest partial dependence event of each feature."""
        raise NotImplementedError

    def live(self, after: int, *, last: int = 10_000) -> list[Live] | None:
        """Return live events behind an id; None where the first of them is not kept any more."""
        raise NotImplementedError

    @property
    def position(self) -> int:
        """Id of the latest live event; 0 before there is one."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the bytes that the file takes."""
        raise NotImplementedError

    def n_records(self, kind: Kind) -> int:
        """Return how many events of a kind are kept."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is written and close the file."""
        raise NotImplementedError

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
