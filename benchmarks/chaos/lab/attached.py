"""Topics that are not ours: visits by customer over six partitions, and what came of them later, over three."""

from __future__ import annotations

import heapq
import itertools
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from attributary_agents.kafka.observations import default_partition
from benchmarks.chaos.lab.workload import Sent, ordinary, raw_config

PARTITIONS = {"visits": 6, "outcomes": 3}

STORES, OPEN_AT_ONCE, STAYS_OPEN, SHORT_STAYS_OPEN = 12, 6, 300, 150
"""Stores, how many of them have visits at a time, and for how many visits until the next one takes the place of one."""

SHORT_WINDOW = 50
"""Labelled visits of a store after which a change can be told, where there are few of each."""

STEP_MS = 1000
IDLE_S, SHORT_IDLE_S = 90, 45
TTL_S = 300

_BAD_VISITS = (
    b"{poison",
    b'{"kind": "visit", "id": "x1", "a": 0.5}',
    b"[1, 2]",
    b'{"kind": "visit", "id": {}, "store": 1}',
)
_PASSED_OVER = (b'{"kind": "test", "id": "x2", "store": 1, "a": 0.5}', None)


def attached_config(bootstrap: str, name: str, *, short: bool = False, **sections: Any) -> dict[str, Any]:
    """A template of models, and the topics of others from which their observations and labels are mapped."""
    raw = raw_config(bootstrap, name)
    name = raw["kafka"]["topic_prefix"]
    model = ordinary(every=20)
    if short:
        model["change"]["window"] = SHORT_WINDOW
    common = {"model": "store-{store}", "time": "ts"}
    return {
        **raw,
        "models": {"store-*": {**model, "max_models": 4 * STORES, "idle": f"{SHORT_IDLE_S if short else IDLE_S}s"}},
        "sources": {
            "visits": {
                **common,
                "topic": f"{name}-visits",
                "id": "id",
                "where": "kind == 'visit'",
                "x": {"only": ["a", "b", "c"]},
            }
        },
        "labels": {
            "outcomes": {**common, "topic": f"{name}-outcomes", "id": "visit", "y": "bought", "ttl": f"{TTL_S}s"}
        },
        **sections,
    }


def attached_records(prefix: str, n: int, seed: int, *, drift_at: int, stays_open: int = STAYS_OPEN) -> list[Sent]:
    """Make n visits and what came of them, in the order of their times, which end now.

    Most outcomes come one to two minutes after the visit; some before it, twice, too late, never, or of no visit.
    """
    begin_ms = round(time.time() * 1000) - (n + TTL_S) * STEP_MS
    return list(_in_order(prefix, n, random.Random(seed), drift_at, stays_open, begin_ms))


def _in_order(prefix: str, n: int, rng: random.Random, drift_at: int, stays_open: int, begin_ms: int) -> Iterator[Sent]:
    later: list[tuple[int, int, Sent]] = []
    order = itertools.count()
    for i in range(n):
        at = begin_ms + i * STEP_MS
        while later and later[0][0] <= at:
            yield heapq.heappop(later)[2]
        store = (i // stays_open + rng.randrange(OPEN_AT_ONCE)) % STORES
        x = {name: round(rng.uniform(-1, 1), 3) for name in "abc"}
        bought = (x["b" if i >= drift_at else "a"] > 0) != (rng.random() < 0.02)
        visit = {"kind": "visit", "id": f"v{i}", "ts": at + 1, "store": store, **x}
        for delay_s in _delays_s(rng):
            back = at + 1000 * delay_s
            outcome = {"visit": f"v{i}", "ts": back, "store": store, "bought": bought}
            sent = _sent(prefix, "outcomes", f"v{i}", outcome, back)
            if delay_s:
                heapq.heappush(later, (back, next(order), sent))
            else:
                yield sent
        if rng.random() < 0.01:
            stray = {"visit": f"stray{i}", "ts": at, "store": store, "bought": True}
            yield _sent(prefix, "outcomes", f"stray{i}", stray, at)
        customer = f"c{rng.randrange(200)}"
        if rng.random() < 1 / 75:
            spoilt = rng.choice(_BAD_VISITS if rng.random() < 0.5 else _PASSED_OVER)
            yield _sent(prefix, "visits", customer, spoilt, at)
        yield _sent(prefix, "visits", customer, visit, at + 1)


def _delays_s(rng: random.Random) -> list[int]:
    """Seconds after the visit at which outcomes come; at 0 it comes before the visit."""
    drawn = rng.random()
    if drawn < 0.03:
        return []
    if drawn < 0.05:
        return [0]
    if drawn < 0.06:
        return [rng.randrange(3 * TTL_S // 2, 2 * TTL_S)]
    ordinary_s = rng.randrange(60, 120)
    return [ordinary_s, ordinary_s + 5] if drawn < 0.08 else [ordinary_s]


def _sent(prefix: str, topic: str, key: str, value: Any, time_ms: int) -> Sent:
    coded = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Sent(default_partition(key, PARTITIONS[topic]), key.encode(), coded, f"{prefix}-{topic}", time_ms)


def fate(topic: str, value: bytes | None) -> str:
    """Say what must become of a record: the id of its model, `dead letter`, or `passed over`.

    By other means than the mapper's.
    """
    if not value or b'"kind": "test"' in value:
        return "passed over"
    if topic == "visits" and value in _BAD_VISITS:
        return "dead letter"
    return f"store-{json.loads(value)['store']}"
