"""Reads into a store in a thread of its own, as a server does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.serve.reading import Reading
from attributary_agents.serve.store.rows import Arrived, Live
from attributary_agents.serve.store.store import Store
from attributary_topics import DeadLetter, Source, encode_json
from attributary_topics.cloudevents import event_time
from tests.agents.serve.store.events import n_records

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes]], int]


def config_for(broker: Broker, prefix: str, **serve: Any) -> Config:
    """Return a configuration with topics of its own."""
    return parse_config(
        {
            "kafka": {"brokers": [broker.bootstrap], "group": prefix, "topic_prefix": prefix, "partitions": 2},
            "models": {"bank": {"model": {"class": "river.tree.HoeffdingTreeClassifier"}, "explainers": {"pfi": {}}}},
            "serve": serve,
        }
    )


def topics_of(config: Config) -> dict[str, int]:
    """Return the topics that are read, with their partitions."""
    topics = config.kafka.topics
    return dict.fromkeys((topics.importances, topics.incidents, topics.dead_letters, topics.status), 2)


def on_wire(records: Iterable[Arrived], now_ms: int) -> list[Sent]:
    """Return events as workers send them, sent at a time."""
    sent: list[Sent] = []
    for one in records:
        time = event_time(one.time_ms or 0)
        headers = [("ce_id", one.id.encode()), *([("ce_time", time.encode())] if time else [])]
        sent.append((one.model_id.encode(), encode_json(one.event), headers, now_ms))
    return sent


def letter_on_wire(offset: int, now_ms: int, key: bytes = b"bank") -> Sent:
    """Return a dead letter as workers send it."""
    letter = DeadLetter(
        key, b"no JSON", [], Source("observations", 0, offset), now_ms, "decode", "invalid_json", "ValueError", "bad"
    )
    return key, letter.value, [(name, value or b"") for name, value in letter.all_headers()], now_ms


class Server:
    """Reads inside the block; what it was told is in `told` and `broker`."""

    def __init__(self, config: Config, path: Path) -> None:
        serve = config.serve
        self.store = Store(path, max_bytes=serve.max_bytes, max_age_s=serve.max_age)
        self.told: list[Live] = []
        self.broker: list[bool] = []
        self.reading = Reading(
            config, self.store, told=self.told.extend, broker=lambda answers, _: self.broker.append(answers)
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self.error: BaseException | None = None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self.reading.run())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - told by whoever leaves the block
            self.error = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(lambda: self._task.cancel())
        self._thread.join(60)
        self.store.close()
        assert self.error is None

    def n(self, kind: Any = "importance") -> int:
        """Return how many events there are."""
        return n_records(self.store, kind)

    @property
    def is_up_to_date(self) -> bool:
        """Whether it has read what there was when it began."""
        state = self.reading.state()
        return state.broker == "answers" and not state.is_reading_past and not state.missing


def answers(store: Store) -> str:
    """Return what a store says, as text: two are equal where all of it is, NaN too."""
    found: list[Any] = []
    for model in store.models():
        found += [model.model_id, model.status, model.status_ms, store.versions(model.model_id)]
        for one in model.explainers:
            window = store.window(model.model_id, one.explainer, top=100)
            assert window is not None
            found += [one.explainer, one.version, one.n_events, one.first_ms, one.last_ms, one.features, one.scalars]
            numbers = (one.importance, one.half_width, window.time_ms, window.observation, window.importance)
            found += [array.tolist() for array in (*numbers, window.low, window.high, window.share, window.rank)]
    return repr([*found, store.incidents(), store.dead_letters()])
