"""The registry: what is said where it does not answer, and that each schema is asked for once."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme
from support.registry import avro_bytes, framed

from attributary_agents.demo.local_broker import free_port
from attributary_agents.errors import AttributaryError, ConfigError, SchemaUnavailableError
from attributary_agents.sources.formats import registry as client
from attributary_agents.sources.formats.base import Decoded, Format
from attributary_agents.sources.formats.factory import new_format
from attributary_agents.sources.mappers.mapper import decode_patiently
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.fake_registry import FakeRegistry, kafka_config, record

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
NOT_BY_ONE = "was it written with a schema registry?"
VALUE = framed(1, avro_bytes(SCHEMA, {"n": 5}))


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        fake.put(1, SCHEMA)
        yield fake


def started(format_: Format) -> str:
    """What is said of a format that cannot start."""

    async def start() -> None:
        try:
            await format_.start()
        finally:
            await format_.close()

    with pytest.raises(ConfigError) as caught:
        asyncio.run(start())
    return str(caught.value)


def refused(format_: Format, value: bytes) -> AttributaryError | InvalidRecordError:
    """Why a value cannot be read."""

    async def decode() -> None:
        try:
            await format_.decode(record(value))
        finally:
            await format_.close()

    with pytest.raises((InvalidRecordError, SchemaUnavailableError)) as caught:
        asyncio.run(decode())
    return caught.value


def test_a_schema_is_fetched_once_and_then_known_at_once(registry: FakeRegistry) -> None:
    format_ = registry.format("avro")

    async def decode() -> list[Any]:
        await format_.start()
        before = format_.decode_now(record(VALUE))
        many = await asyncio.gather(*(format_.decode(record(VALUE)) for _ in range(20)))
        return [before, *many, format_.decode_now(record(VALUE))]

    found = asyncio.run(decode())
    assert found == [None, *[[Decoded({"n": 5})]] * 21]
    assert registry.asked == ["/schemas/types", "/schemas/ids/1"]
    assert not format_.is_waiting


def test_whoever_is_cancelled_takes_the_answer_from_nobody(registry: FakeRegistry) -> None:
    format_ = registry.format("avro")
    registry.held.clear()

    async def decode() -> list[Decoded]:
        first = asyncio.create_task(format_.decode(record(VALUE)))
        while not registry.asked:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(format_.decode(record(VALUE)))
        await asyncio.sleep(0)
        first.cancel()
        registry.held.set()
        return await second

    assert asyncio.run(decode()) == [Decoded({"n": 5})]
    assert registry.asked == ["/schemas/ids/1"]


def test_a_record_without_a_value_is_none(registry: FakeRegistry) -> None:
    format_ = registry.format("avro")
    assert format_.decode_now(record(None)) == []
    assert format_.decode_now(record(b"")) == []


def test_an_id_that_the_registry_has_not_is_a_dead_letter_and_asked_for_once(registry: FakeRegistry) -> None:
    format_ = registry.format("avro")
    error = refused(format_, framed(999_999, b"\x0a"))
    assert isinstance(error, InvalidRecordError)
    assert error.reason == "unknown_schema"
    assert str(error) == f"schema id 999999 is not in {registry.url}: another cluster's registry?"
    with pytest.raises(InvalidRecordError, match="999999 is not in"):
        format_.decode_now(record(framed(999_999, b"\x0c")))
    assert registry.asked == ["/schemas/ids/999999"]
    assert not format_.is_waiting


def test_an_id_that_comes_to_the_registry_later_is_asked_for_again(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    format_ = registry.format("avro")
    refused(format_, framed(2, b"\x0a"))
    registry.put(2, SCHEMA)
    monkeypatch.setattr(client, "_NOT_THERE_S", 0.0)
    assert asyncio.run(format_.decode(record(framed(2, b"\x0a")))) == [Decoded({"n": 5})]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"a":1}', "expected byte 0 and a schema id, got b'{\"a\":1}': is the topic JSON?"),
        (b"\x01\0\0\0\1", f"expected byte 0 and a schema id, got b'\\x01\\x00\\x00\\x00\\x01': {NOT_BY_ONE}"),
        (b"\0\0\0\x01", f"expected byte 0 and a schema id, got b'\\x00\\x00\\x00\\x01': {NOT_BY_ONE}"),
    ],
)
def test_a_value_without_framing_is_a_dead_letter(registry: FakeRegistry, value: bytes, said: str) -> None:
    error = refused(registry.format("avro"), value)
    assert isinstance(error, InvalidRecordError)
    assert (error.reason, str(error)) == ("not_framed", said)
    assert registry.asked == []


def test_a_schema_of_another_kind_is_named(registry: FakeRegistry) -> None:
    registry.put(2, 'syntax = "proto3"; message R { int32 n = 1; }', "PROTOBUF")
    registry.put(3, {"type": "object"}, "JSON")
    format_ = registry.format("avro")
    error = refused(format_, framed(2, b""))
    assert isinstance(error, InvalidRecordError)
    assert (error.reason, str(error)) == ("wrong_schema", "schema id 2 is of type PROTOBUF: format: protobuf?")
    with pytest.raises(InvalidRecordError, match=r"^schema id 2 is of type PROTOBUF: format: protobuf\?$"):
        format_.decode_now(record(framed(2, b"")))
    assert str(refused(format_, framed(3, b""))) == "schema id 3 is of type JSON: another format?"
    assert registry.asked == ["/schemas/ids/2", "/schemas/ids/3"]


def test_nothing_at_the_address_is_said_at_the_start_and_waited_for_later() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    format_ = new_format("avro", kafka_config(url))
    assert started(format_) == f"{url}: connection refused; is schema_registry.url right?"
    error = refused(format_, VALUE)
    assert isinstance(error, SchemaUnavailableError)
    assert str(error) == f"{url}: connection refused"
    assert format_.is_waiting


def test_a_name_that_no_host_has_is_said() -> None:
    said = started(new_format("avro", kafka_config("http://registry.invalid:8081")))
    assert said == "http://registry.invalid:8081: no such host; is schema_registry.url right?"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_fails_is_waited_for(registry: FakeRegistry, status: int) -> None:
    registry.status = status
    format_ = registry.format("avro")
    error = refused(format_, VALUE)
    assert isinstance(error, SchemaUnavailableError)
    assert str(error) == f"{registry.url} answers {status}, and no schema"
    assert format_.is_waiting
    registry.status = 200
    assert asyncio.run(format_.decode(record(VALUE))) == [Decoded({"n": 5})]
    assert not format_.is_waiting


def test_a_404_of_something_else_is_waited_for_and_makes_no_dead_letters(registry: FakeRegistry) -> None:
    registry.status = 404
    assert isinstance(refused(registry.format("avro"), VALUE), SchemaUnavailableError)
    said = started(registry.format("avro"))
    assert said == f"{registry.url}: no schema registry answers there (404); is schema_registry.url right?"


def test_a_registry_that_does_not_answer_in_time_is_waited_for(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUT_S", 0.2)
    registry.held.clear()
    error = refused(registry.format("avro"), VALUE)
    assert isinstance(error, SchemaUnavailableError)
    assert str(error) == f"{registry.url}: no answer within 0.2 s"


def test_the_user_is_told_to_the_registry_and_its_password_to_nobody(registry: FakeRegistry) -> None:
    format_ = registry.format("avro", username="reader", password="canary4Kq9")
    assert asyncio.run(format_.decode(record(VALUE))) == [Decoded({"n": 5})]
    assert registry.authorizations == ["Basic " + b64encode(b"reader:canary4Kq9").decode()]
    registry.status = 401
    said = started(registry.format("avro", username="reader", password="canary4Kq9"))
    assert said == (
        f"{registry.url} refuses the user 'reader' (401): kafka.schema_registry.username and password; "
        "is schema_registry.url right?"
    )
    registry.status = 403
    assert "refuses who gives no user (403)" in started(registry.format("avro"))


def test_a_registry_behind_tls_is_trusted_by_its_ca(tmp_path: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(["AVRO"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"https://127.0.0.1:{server.server_port}"
    try:
        asyncio.run(new_format("avro", kafka_config(url, ca_file=str(tmp_path / "ca.pem"))).start())
        said = started(new_format("avro", kafka_config(url)))
        assert said.startswith(f"{url}: its certificate is not trusted (")
        assert "kafka.schema_registry.ca_file" in said
        said = started(new_format("avro", kafka_config(url, ca_file=str(tmp_path / "nothing.pem"))))
        assert said == f"kafka.schema_registry.ca_file: {tmp_path / 'nothing.pem'}: no such file or directory"
    finally:
        server.shutdown()
        server.server_close()


def test_references_are_fetched_each_before_what_needs_it(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    money = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
    item = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": "Money"}]}
    fields = [{"name": "item", "type": "Item"}, {"name": "paid", "type": "Money"}]
    order = {"type": "record", "name": "Order", "fields": fields}
    of_money = {"name": "Money", "subject": "money/value", "version": 2}
    of_item = {"name": "Item", "subject": "item", "version": 1}
    registry.put(4, order, references=[of_item, of_money])
    registry.answers["/subjects/item/versions/1"] = {"schema": json.dumps(item), "references": [of_money]}
    registry.answers["/subjects/money%2Fvalue/versions/2"] = {"schema": json.dumps(money)}
    found = asyncio.run(registry.format("avro").decode(record(framed(4, b"\x0a\x0c"))))
    assert found == [Decoded({"item": {"price": {"cents": 5}}, "paid": {"cents": 6}})]
    del registry.answers["/subjects/money%2Fvalue/versions/2"]
    error = refused(registry.format("avro"), framed(4, b"\x0a\x0c"))
    assert isinstance(error, InvalidRecordError)
    assert str(error) == f"schema id 4 refers to version 2 of money/value, which {registry.url} has not"
    assert client._MOST_REFERENCES == 200
    monkeypatch.setattr(client, "_MOST_REFERENCES", 20)
    registry.put(5, order, references=[{"name": f"N{i}", "subject": "item", "version": i} for i in range(30)])
    registry.answers |= {f"/subjects/item/versions/{i}": {"schema": json.dumps(item)} for i in range(30)}
    assert str(refused(registry.format("avro"), framed(5, b""))) == "schema id 5 refers to more than 20 others"


def test_a_record_waits_for_its_schema_and_says_so_once(
    registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.status = 503
    format_ = registry.format("avro")

    async def decode() -> list[Decoded]:
        waiting = asyncio.create_task(decode_patiently(format_, record(VALUE), first_s=0.01, longest_s=0.02))
        while len(registry.asked) < 3:
            await asyncio.sleep(0.01)
        assert format_.is_waiting
        registry.status = 200
        return await waiting

    with caplog.at_level(logging.INFO):
        assert asyncio.run(decode()) == [Decoded({"n": 5})]
    said = [one.message for one in caplog.records if one.name.startswith(("attributary", "stamina"))]
    why = f"{registry.url} answers 503, and no schema"
    assert said[0] == f"t, partition 0, offset 7 waits for its schema: {why}; it is asked for again"
    assert said[1].startswith("t, partition 0, offset 7 waits no longer, after ")
    assert len(said) == 2
    assert asyncio.run(decode_patiently(format_, record(VALUE))) == [Decoded({"n": 5})]


def test_what_is_a_dead_letter_is_not_waited_for(registry: FakeRegistry) -> None:
    with pytest.raises(InvalidRecordError, match="999 is not in"):
        asyncio.run(decode_patiently(registry.format("avro"), record(framed(999, b""))))
    assert registry.asked == ["/schemas/ids/999"]
