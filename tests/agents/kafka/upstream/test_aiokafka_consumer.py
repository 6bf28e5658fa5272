"""What aiokafka's consumer, admin client and protocol have no public way to."""

from __future__ import annotations

import inspect

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.metadata import MetadataRequest


def test_upstream_tells_no_note_beside_an_offset_and_lends_no_client() -> None:
    public = {name for name, _ in inspect.getmembers(AIOKafkaConsumer) if not name.startswith("_")}
    assert not {name for name in public if "client" in name or "metadata" in name}
    assert "return committed\n" in inspect.getsource(AIOKafkaConsumer.committed)
    assert "commit_map[partition].offset" in inspect.getsource(AIOKafkaConsumer.committed)


def test_upstreams_admin_client_asks_a_broker_of_its_own_choice_about_topics() -> None:
    assert "node_id" not in inspect.signature(AIOKafkaAdminClient.describe_topics).parameters
    assert not {name for name, _ in inspect.getmembers(AIOKafkaAdminClient) if name in ("client", "send")}


def test_upstream_does_not_know_ids_of_topics() -> None:
    versions = [kind.API_VERSION for kind in inspect.getmodule(MetadataRequest).__dict__.values() if _is_request(kind)]  # type: ignore[union-attr]
    assert max(versions) < 10


def _is_request(kind: object) -> bool:
    return getattr(kind, "__name__", "").startswith("MetadataRequest_v")
