"""A schema registry of a few lines, which can be told to fail, and records as they come from Kafka."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import KafkaConfig
from attributary_agents.sources.formats.base import Decoded, Format
from attributary_agents.sources.formats.factory import new_format
from attributary_agents.sources.records import OriginRecord

MODELS = {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


class FakeRegistry:
    """Answers as Confluent's does; `status` other than 200 is what it answers everything with."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/schemas/types": ["AVRO", "JSON", "PROTOBUF"]}
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.status = 200
        self.held = threading.Event()
        self.held.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.authorizations.append(self.headers["Authorization"])
                outer.held.wait(30)
                found = outer.answers.get(self.path)
                status, answer = NOT_FOUND if found is None else (200, found)
                if outer.status != 200:
                    status, answer = outer.status, {"message": "not now"}
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def put(self, schema_id: int, schema: Any, kind: str = "AVRO", references: Sequence[dict[str, Any]] = ()) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        answer: dict[str, Any] = {"schema": text, "references": list(references)}
        if kind != "AVRO":  # Confluent's leaves it out of Avro's
            answer["schemaType"] = kind
        self.answers[f"/schemas/ids/{schema_id}"] = answer

    def format(self, name: str, **settings: Any) -> Format:
        return new_format(name, kafka_config(self.url, **settings))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()


def kafka_config(url: str, **settings: Any) -> KafkaConfig:
    return parse_config({"models": MODELS, "kafka": {"schema_registry": {"url": url, **settings}}}).kafka


def record(
    value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = (), *, topic: str = "t", key: bytes | None = None
) -> OriginRecord:
    return OriginRecord(topic, 0, 7, 1_700_000_000_000, key, value, headers)


async def decode_one(format_: Format, value: bytes) -> dict[str, Any]:
    """Return the one object in a value, and close the format."""
    try:
        (found,) = await format_.decode(record(value))
    finally:
        await format_.close()
    assert found == Decoded(found.value)
    return found.value
