"""A worker that is killed between any two revisions of an incident goes on with the same ids and the same bytes."""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from tests.agents.models.frozen import FLIPPED_FROM, made
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.test_partition import partition_of, record
from tests.delivery.remains import checkpoint, stored_models

KINDS = ("learns", "frozen")
EVERY = 12
"""Each run takes one in so many of the places at which a worker may be killed."""

LEARNS = {
    "model": {"class": "river.tree.HoeffdingAdaptiveTreeClassifier", "params": {"grace_period": 20, "seed": 1}},
    "alpha": 0.02,
    "explainers": {"pfi": {"n_samples": 2}},
    "change": {
        "window": 60,
        "detector": "page_hinkley",
        "detector_params": {"min_instances": 1, "threshold": 2.0, "delta": 0.005, "mode": "up"},
    },
    "publish": {"every": 500},
}
FROZEN = {
    "factory": "tests.agents.models.frozen:frozen",
    "learn": False,
    "change": None,
    "explainers": {"pfi": {"n_samples": 1}},
    "explain": {"every": 64},
    "publish": {"every": 10_000, "min_observations": 10_000},
}


@cache
def worker(kind: str) -> Config:
    return parse_config({"models": {"m": LEARNS if kind == "learns" else FROZEN}})


def drifting(n: int = 2000) -> list[dict[str, Any]]:
    """The label follows another feature from 800 on, and the third is missing from 1600 on."""
    rng, found = random.Random(3), []
    for i in range(n):
        x: dict[str, Any] = {name: round(rng.gauss(0, 1), 6) for name in "abc"}
        y = (x["b" if i >= 800 else "a"] > 0) != (rng.random() < 0.05)
        found.append({"x": {**x, "c": None} if i >= 1600 else x, "y": y})
    return found


@cache
def stream(kind: str) -> list[Record]:
    flipped = made(17_000, seed=11, until=12_500)
    given = drifting() if kind == "learns" else [{"x": one.x, "y": one.y} for one in flipped]
    given.insert(500, {"x": {"a": 0.0, "b": 0.0, "c": 0.0}})  # without a label: a dead letter
    return [record(i, b"m", json.dumps(one).encode()) for i, one in enumerate(given)]


Sent = list[tuple[int, Outgoing]]


def handled(partition: Partition, records: list[Record]) -> Sent:
    """What is sent, with the offset of the record that it follows from."""
    return [(one.offset, outgoing) for one in records for outgoing in partition.handle(one)]


def left(partition: Partition, config: Config) -> dict[str, Any]:
    """What is stored in the end."""
    table: dict[bytes, bytes] = {}
    checkpoint(partition, table)
    return stored_models(table, config)


@cache
def undisturbed(kind: str) -> tuple[Sent, dict[str, Any]]:
    partition = partition_of(worker(kind))
    return handled(partition, stream(kind)), left(partition, worker(kind))


def revisions(kind: str) -> list[dict[str, Any]]:
    return [json.loads(one.value or b"") for _, one in undisturbed(kind)[0] if "incidents" in one.topic]


def places(kind: str) -> list[int]:
    """So many records are behind a worker that is killed: just before and after each revision, and in between."""
    n = len(stream(kind))
    at = [one["source"]["offset"] for one in revisions(kind)]
    between = [(before + after) // 2 for before, after in pairwise([0, *at, n])]
    return sorted({*at, *(offset + 1 for offset in at), *between})


@cache
def stored(kind: str) -> dict[int, dict[bytes, bytes]]:
    """What is in the table at each place, where it is the last that the worker has stored."""
    partition, table, found, begin = partition_of(worker(kind)), dict[bytes, bytes](), {}, 0
    for place in places(kind):
        handled(partition, stream(kind)[begin:place])
        checkpoint(partition, table)
        found[place], begin = dict(table), place
    return found


def test_what_is_resumed_has_every_kind_of_end() -> None:
    told = {kind: {(one["what"], one["life"], one["reason"]) for one in revisions(kind)} for kind in KINDS}
    assert told["learns"] >= {
        ("changed", "suspected", "suspected"),
        ("changed", "withdrawn", "noise"),
        ("changed", "confirmed", "confirmed"),
        ("worse", "confirmed", "raised"),
        ("worse", "confirmed", "lasts"),
        ("worse", "over", "settled"),
        ("inputs", "confirmed", "confirmed"),
    }
    assert [one["explanation"] is not None for one in revisions("learns") if one["what"] == "worse"] == [True] * 4
    lives = [(one["revision"], one["life"], one["reason"]) for one in revisions("frozen")]
    assert lives[0] == (1, "suspected", "suspected")
    assert lives[-1] == (len(lives), "over", "returned")
    first, *others = revisions("frozen")
    assert first["id"] == f"m:{TOPIC}:0:{first['source']['offset']}:0"
    assert FLIPPED_FROM < first["source"]["offset"] < FLIPPED_FROM + 500
    assert {one["id"] for one in others} == {first["id"]}


@pytest.mark.parametrize("nth", [pytest.param(n, marks=[pytest.mark.long] if n else []) for n in range(EVERY)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_between_any_two_revisions_gives_the_same_bytes(kind: str, nth: int) -> None:
    sent, models = undisturbed(kind)
    for place in places(kind)[nth::EVERY]:
        successor = Partition(TOPIC, 0, worker(kind), stored(kind)[place].get)
        assert successor.offset == place - 1
        again = handled(successor, stream(kind)[place:])
        assert again == [one for one in sent if one[0] >= place], place
        assert left(successor, worker(kind)) == models, place
