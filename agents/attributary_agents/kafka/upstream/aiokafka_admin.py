"""Addition to `aiokafka.admin.AIOKafkaAdminClient`.

It chooses by chance which broker it asks about topics, and so cannot be asked what each of them knows.

True for aiokafka 0.14.0; `test_aiokafka_consumer.py` says when it is mended.
"""

from __future__ import annotations

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient


def client_of_admin(admin: AIOKafkaAdminClient) -> AIOKafkaClient:
    """Return an admin's client, which asks brokers of our choice."""
    return admin._client
