"""Page of a replay: an HTML file that shows its published events.

It is the page of `attributary serve`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from attributary_topics import ModelStatus, encode_json
from attributary_topics.names import installed_version

from ..config.settings import Config
from ..private_files import write_private
from ..serve.page import single_file
from ..serve.reading import arrived, kinds_of
from ..serve.store.rows import Arrived
from ..serve.store.store import Store
from ..serve.views.whole import whole
from ..worker.records import Outgoing

_AT_ONCE = 500
"""Events that are taken into the store together."""


class ReplayPage:
    """Page of a replay's published events, kept in a store until it is made.

    The store is the page's own, in a temporary file. No event has a time, since a file has none: all is by observation,
    and the same rows make the same page.
    """

    def __init__(self, model_id: str, config: Config) -> None:
        self._model_id = model_id
        self._config = config
        self._topics = config.kafka.topics
        self._store = Store()
        self._waiting: list[Arrived] = []
        self._n = 0

    def take(self, outgoing: Outgoing) -> None:
        """Take a record that would have been sent, if the page shows its kind."""
        kind = kinds_of(self._topics).get(outgoing.topic)
        if kind is None:
            return
        record = SimpleNamespace(
            topic=outgoing.topic,
            partition=0,
            offset=self._n,
            timestamp=None,
            key=outgoing.key,
            value=outgoing.value,
            headers=outgoing.headers,
        )
        self._n += 1
        self._waiting.append(replace(arrived(record, kind), time_ms=None))
        if len(self._waiting) == _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        self._store.take(self._waiting, live=False)
        self._waiting.clear()

    def write(self, path: Path, status: ModelStatus | None) -> None:
        """Write the page of everything taken, with the model's final status."""
        status = status or _nothing_learnt(self._model_id)
        self.take(Outgoing(self._topics.status, self._model_id.encode(), encode_json(status), []))
        self._flush()
        write_private(path, single_file(whole(self._store, self._config, build=installed_version())).encode())

    def close(self) -> None:
        """Remove the store."""
        self._store.close()


def _nothing_learnt(model_id: str) -> ModelStatus:
    """Return the status of a model that no record has reached.

    The file is empty, or all of it was refused before.
    """
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
