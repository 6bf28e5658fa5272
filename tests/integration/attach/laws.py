"""Records of topics that are not ours, by laws that change half-way: what a model relies on is known beforehand."""

from __future__ import annotations

import random
from typing import Any

JOBS = ("admin", "technician", "student", "retired")


def rental(rng: random.Random, number: int, *, at_ms: int, changed: bool) -> tuple[dict[str, Any], int]:
    """Return a rental's record and its count: by the temperature, later by the humidity; the rest is noise."""
    temp, hum = rng.uniform(0, 30), rng.uniform(20, 100)
    hour = at_ms // 3_600_000 % 24
    count = 10 + (0.75 * (100 - hum) if changed else 2 * temp) + rng.gauss(0, 2)
    record = {
        "id": f"r{number}",
        "ts": at_ms,
        "station": f"s{rng.randrange(2)}",
        "temp": round(temp, 2),
        "hum": round(hum, 1),
        "wind": round(rng.expovariate(0.2), 1),
        "hour": hour,
        "weekday": at_ms // 86_400_000 % 7,
        "holiday": rng.random() < 0.03,
        "season": rng.choice(("spring", "summer")),
        "weather": rng.choice(("clear", "clouds", "rain")),
    }
    return record, max(0, round(count))


def application(rng: random.Random, number: int, *, changed: bool) -> tuple[dict[str, Any], bool]:
    """Return a bank's row without its outcome, and the outcome: by the duration of the call, later by the balance."""
    duration, balance = rng.randrange(10, 600), round(rng.gauss(1000, 600), 2)
    row = {
        "id": number,
        "age": rng.randrange(18, 80),
        "job": rng.choice(JOBS),
        "balance": balance,
        "duration": duration,
        "housing": rng.random() < 0.5,
        "subscribed": None,
    }
    return row, balance > 1000 if changed else duration > 300


def transaction(rng: random.Random) -> dict[str, float]:
    """Return what a model of fraud is asked with."""
    return {name: round(rng.random(), 4) for name in ("amount", "distance", "hour", "age")}


def score(x: dict[str, float], *, changed: bool) -> float:
    """Return what the served model answers: by the amount and a little by the hour, later by the distance instead."""
    return round(0.1 + 0.7 * (x["distance"] if changed else x["amount"]) + 0.2 * x["hour"], 4)
