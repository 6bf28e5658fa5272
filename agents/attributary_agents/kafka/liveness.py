"""Questions to silent brokers, so that a broker that hangs is noticed.

One that has stopped in the middle of something keeps its connections: no other request would end for minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataRequest

from .brokers import BROKERS
from .upstream.aiokafka_client import is_known, probe

ASK_AFTER_S, ANSWER_WITHIN_S = 5.0, 5.0
"""A broker that has been silent for the first is asked, and fails where it does not answer within the second."""

_LOOK_S = 1.0  # between two looks at what has answered
_ASKED = 3  # brokers that are asked at each look


@dataclass
class _Question:
    """Question to a broker, and for how long its answer has been missing."""

    answer: asyncio.Future[None]
    waited_s: float = 0.0


async def keep_asking(find_client: Callable[[], AIOKafkaClient | None]) -> None:
    """Ask brokers of which nothing has been heard for a time; this never ends.

    Parameters
    ----------
    find_client
        Returns the client that asks, of the running event loop; None while there is none.
    """
    asked: dict[str, _Question] = {}
    while True:
        began = time.monotonic()
        await asyncio.sleep(_LOOK_S)
        is_free = time.monotonic() - began < 1.5 * _LOOK_S
        for node, question in list(asked.items()):
            if question.answer.done():
                if not question.answer.cancelled():
                    question.answer.exception()  # noted where it arose
                del asked[node]
                continue
            if BROKERS.silent_s_of(node) < ASK_AFTER_S:  # by another connection
                question.waited_s = 0.0
            elif is_free:  # an answer that has arrived is not read while a step blocks the event loop
                question.waited_s += _LOOK_S
            if question.waited_s >= ANSWER_WITHIN_S:
                BROKERS.fail(node, f"connected, and no answer within {ANSWER_WITHIN_S:g} s")
        for node in BROKERS.to_probe:
            if node not in asked and is_known(node):
                asked[node] = _Question(asyncio.ensure_future(probe(node)))
        client = find_client()
        if client is None or (BROKERS.silent_s < ASK_AFTER_S and not BROKERS.is_lost):
            continue
        nodes = {f"{broker.host}:{broker.port}": broker.nodeId for broker in client.cluster.brokers()}
        others = sorted(nodes.keys() - asked.keys(), key=lambda node: (BROKERS.silent_s_of(node), node))
        for node in others[:_ASKED]:
            asked[node] = _Question(asyncio.ensure_future(client.send(nodes[node], MetadataRequest([]))))
