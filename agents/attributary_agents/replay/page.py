"""Writes the page of a replay: what it has published, in one HTML file that is the page of `attributary serve`."""

from __future__ import annotations

from pathlib import Path

from attributary_topics import ModelStatus, decode_dead_letter, decode_json, encode_json

from ..config.settings import Config
from ..private_files import write_private
from ..serve.single_file import single_file
from ..serve.store.rows import Arrived, Kind
from ..serve.store.store import Store
from ..serve.views.whole import whole
from ..worker.heartbeat.status import status_of
from ..worker.partition import Partition
from ..worker.records import Outgoing

_AT_ONCE = 500
"""Events that are taken into the store together."""


class ReplayPage:
    """Keeps what a replay publishes in a store of its own, a temporary file, until the page is made of it.

    No event has a time, since a file has none: all is by observation, and the same rows make the same page.
    """

    def __init__(self, model_id: str, config: Config) -> None:
        self._model_id = model_id
        self._config = config
        kinds: dict[str, Kind] = {
            config.kafka.topics.importances: "importance",
            config.kafka.topics.changes: "change",
            config.kafka.topics.dead_letters: "dead_letter",
        }
        self._kinds = kinds
        self._store = Store()
        self._waiting: list[Arrived] = []
        self._n = 0

    def take(self, outgoing: Outgoing) -> None:
        """Take one record that would have been sent."""
        kind = self._kinds[outgoing.topic]
        if kind == "dead_letter":
            letter = decode_dead_letter(outgoing.key, outgoing.value, outgoing.headers)
            self._add(kind, letter.id, {"reason": letter.reason, "stage": letter.stage})
        else:
            headers = dict(outgoing.headers)
            self._add(kind, (headers["ce_id"] or b"").decode(), decode_json(outgoing.value or b""))

    def _add(self, kind: Kind, event_id: str, event: dict[str, object]) -> None:
        self._waiting.append(Arrived(kind, 0, self._n, event_id, self._model_id, None, event))
        self._n += 1
        if len(self._waiting) == _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        self._store.take(self._waiting, live=False)
        self._waiting.clear()

    def write(self, path: Path, partition: Partition) -> None:
        """Write the page of all that was taken, and of how the model is doing at the end."""
        status = status_of(partition, self._model_id, None) or _nothing_learnt(self._model_id)
        self._add("status", self._model_id, decode_json(encode_json(status)))
        self._flush()
        write_private(path, single_file(whole(self._store, self._config)).encode())

    def close(self) -> None:
        """Remove the store."""
        self._store.close()


def _nothing_learnt(model_id: str) -> ModelStatus:
    """Return the status of a model that has been given nothing: the file is empty, or all of it was refused before."""
    return ModelStatus(
        model_id=model_id,
        state="learning",
        model_version=None,
        n_observations=0,
        n_refused=0,
        observations_per_second=None,
        event_time=None,
        partition=0,
    )
