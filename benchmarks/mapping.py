"""Measure what mapping a record of a topic that is not ours costs, beside reading its JSON alone.

    python -m benchmarks.mapping        # seconds

The same flat record of twelve fields by sections from the shortest to one with JMESPath in every role; and Debezium's
envelope. Processor time of one record, from its bytes to what is written to our topic, the best of five rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import orjson

from attributary_agents.config.reading import parse_config
from attributary_agents.sources.formats.base import JsonFormat
from attributary_agents.sources.mapping import Mapping
from attributary_agents.sources.records import OriginRecord

N = 5000
NOW_MS = 1_700_000_000_123

FLAT: dict[str, Any] = {
    "id": "s12-1700000000", "ts": NOW_MS, "station": "s12", "temp": 12.5, "hum": 0.6, "wind": 3.2, "hour": 7,
    "weekday": 2, "holiday": False, "season": "autumn", "weather": "rain", "count": 31,
}  # fmt: skip
ENVELOPE: dict[str, Any] = {
    "before": None, "after": FLAT, "op": "c", "ts_ms": NOW_MS,
    "source": {"connector": "postgresql", "ts_ms": NOW_MS, "db": "core", "table": "rentals", "lsn": 7},
}  # fmt: skip
FEATURES = ("temp", "hum", "wind", "hour", "weekday", "holiday", "season", "weather")
HASH = ", ".join(f"{name}: {name}" for name in FEATURES)

SECTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "y alone": (FLAT, {"y": "count"}),
    "model, x, y, id, time: plain paths": (
        FLAT,
        {"model": "store-{station}", "y": "count", "id": "id", "time": "ts", "x": {"all_but": ["station"]}},
    ),
    "the same, x by eight names": (
        FLAT,
        {"model": "store-{station}", "y": "count", "id": "id", "time": "ts", "x": {"only": list(FEATURES)}},
    ),
    "the same, and one filter": (
        FLAT,
        {"model": "store-{station}", "y": "count", "id": "id", "time": "ts", "where": "count >= `0`"},
    ),
    "everything by JMESPath": (
        FLAT,
        {
            "model": "store-{station || ''}",
            "y": "count || `0`",
            "id": "id || ''",
            "time": "ts || `0`",
            "x": f"{{{HASH}}}",
            "where": "count >= `0`",
        },
    ),
    "Debezium's envelope": (ENVELOPE, {"unwrap": "debezium", "y": "count", "id": "id", "model": "store-{station}"}),
}


def processor_us(work: Callable[[], object]) -> float:
    """Return microseconds of processor time of one call, the best of five rounds."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(N):
            work()
        best = min(best, time.process_time() - began)
    return best / N * 1e6


def priced(value: dict[str, Any], section: dict[str, Any]) -> tuple[float, float, float]:
    """Return microseconds of reading a record's JSON alone, of mapping it, and of writing what is mapped as JSON."""
    model = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}
    source = {"topic": "rentals", **section}
    config = parse_config({"sources": {"rentals": source}, "models": {"store-*" if "model" in section else "s": model}})
    mapping, format_ = Mapping("rentals", config.sources["rentals"], config), JsonFormat()
    raw = orjson.dumps(value)
    record = OriginRecord("rentals", 0, 7, NOW_MS, b"s12", raw)
    (mapped,) = mapping.map(record, format_.decode_now(record))
    alone = processor_us(lambda: orjson.loads(raw))
    whole = processor_us(lambda: mapping.map(record, format_.decode_now(record)))
    return alone, whole, processor_us(lambda: orjson.dumps(mapped.fields))


def main() -> None:
    """Print the table."""
    print(f"{'section':<38} {'JSON alone':>11} {'mapped':>9} {'ratio':>6} {'and written':>12}")
    for name, (value, section) in SECTIONS.items():
        alone, whole, written = priced(value, section)
        print(f"{name:<38} {alone:>8.2f} µs {whole:>6.2f} µs {whole / alone:>6.1f} {whole + written:>9.2f} µs")


if __name__ == "__main__":
    main()
