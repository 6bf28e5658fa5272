"""Names that are sent to a model without declared features: which are taken, and what a few records of them cost."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from attributary_agents.config.models import ModelConfig
from attributary_agents.models.guards.known_features import FEW, IN_ALL, UNSEEN, KnownFeatures
from attributary_agents.models.guards.vocabulary import EARLY
from attributary_agents.state.codec import encode_state
from attributary_topics import InvalidRecordError
from tests.agents.models.test_growth import feed, partition_of, reasons, record
from tests.agents.stand_ins import FACTORY, balances, header

Row = tuple[dict[str, Any], Any]


def good(n: int) -> list[Row]:
    rng = random.Random(n)
    return [({"a": (a := rng.gauss(0, 1)), "b": rng.gauss(0, 1)}, a > 0) for _ in range(n)]


def wide(name: str, n: int) -> Row:
    return {"a": 0.1, **{f"{name}{i}": 1.0 for i in range(n)}}, True


@pytest.mark.parametrize("times", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_junk_names_at_the_start_cost_few_good_records(times: int) -> None:
    partition = partition_of()
    feed(partition, *(wide(f"junk{i}_", 100) for _ in range(times) for i in range(6)))
    assert len(feed(partition, *good(1000))) <= 1
    assert partition.models["m"].n_observations >= 1000
    assert balances(partition.counters)


def test_a_bound_that_is_full_makes_room_for_what_keeps_coming() -> None:
    partition = partition_of()
    assert feed(partition, ({f"junk{i}": 1.0 for i in range(500)}, True)) == []
    letters = feed(partition, *good(1000))
    assert reasons(letters) == ["too_large"] * (UNSEEN - 1)
    assert "at most 500 features at a time (max_features)" in header(letters[0], "attributary-dlq-message")
    known = partition.models["m"].features.known
    assert {"a", "b"} <= known.keys()
    assert len(known) == 500


def test_a_wide_record_is_refused_by_an_established_model_and_leaves_nothing() -> None:
    partition = partition_of()
    assert feed(partition, *good(EARLY)) == []
    letters = feed(partition, wide("junk", 490))
    assert reasons(letters) == ["too_large"]
    assert "`features` that declare them" in header(letters[0], "attributary-dlq-message")
    assert feed(partition, *good(100)) == []
    state = partition.models["m"]
    assert state.features.known.keys() == {"a", "b"}
    assert {name for one in state.explainers.values() for name in one.importance} == {"a", "b"}


def test_a_new_schema_loses_fewer_than_twenty_records() -> None:
    partition = partition_of()
    feed(partition, *good(EARLY))
    assert feed(partition, *[wide("few", FEW)] * 50) == [], "twenty new ones are taken at once"
    assert reasons(feed(partition, *[wide("many", 200)] * 50)) == ["too_large"] * (IN_ALL - 1)
    assert feed(partition, *good(10)) == []


def test_drops_do_not_fill_the_bound_of_an_established_model() -> None:
    partition = partition_of()
    feed(partition, *good(EARLY))
    for i in range(50):
        feed(partition, wide(f"drop{i}_", FEW), *good(2))
    assert len(partition.models["m"].features.known) == 2 + FEW


def test_what_a_refused_record_brought_is_not_known() -> None:
    partition = partition_of(max_labels=2)
    feed(partition, *good(10))
    x, _ = wide("junk", 100)
    assert reasons(feed(partition, (x, "new label"), (x, "other label"))) == ["too_many_labels"] * 2
    assert partition.models["m"].features.known.keys() == {"a", "b"}


def test_a_stream_as_wide_as_the_bound_is_taken_and_declared_features_are_not_counted() -> None:
    partition = partition_of()
    assert feed(partition, *[({f"f{i}": 1.0 for i in range(500)}, True)] * 3) == []
    features = {f"f{i}": "number" for i in range(600)}
    partition = partition_of(features=features)
    assert feed(partition, *[(dict.fromkeys(features, 1.0), True)] * 3) == []
    assert partition.models["m"].features.known == {}


def test_groups_are_not_counted() -> None:
    features = KnownFeatures(ModelConfig(factory=FACTORY, max_features=2, groups={"g": ["a", "b", "c"]}))
    for names in ("abcde", "abcd", "cde"):
        features.check(dict.fromkeys(names, 1.0))
        features.note(dict.fromkeys(names, 1.0))
    assert features.known.keys() == {"d", "e"}
    with pytest.raises(InvalidRecordError):
        features.check(dict.fromkeys("af", 1.0))


@pytest.mark.parametrize("cut", [3, EARLY + 30])
def test_restored_and_continued_equals_never_stopped(cut: int) -> None:
    own = {"max_features": 60}
    rows = [*good(20), *[wide("x", 35)] * 3, *good(EARLY), *[wide("y", 24), *good(1)] * 30, *good(5)]
    never, stopped = partition_of(**own), partition_of(**own)
    whole = [never.handle(record(i, *row)) for i, row in enumerate(rows)]
    for i, row in enumerate(rows[: cut + 1]):
        stopped.handle(record(i, *row))
    again = partition_of({b"m": encode_state(stopped.models["m"])}, **own)
    sent = [again.handle(record(i, *row)) for i, row in enumerate(rows)]
    assert sent[cut + 1 :] == whole[cut + 1 :]
    assert again.counters == never.counters
    assert again.models["m"].features.snapshot() == never.models["m"].features.snapshot()
    assert never.counters.dead_letters["too_large"]


@pytest.mark.parametrize("back", ["good", "third"])
def test_names_that_filled_the_bound_make_room_again(back: str) -> None:
    """Also for a third set of names, while the explainers would still know the first."""
    partition = partition_of(max_features=20)
    for lost, prefix in ((0, "good"), (UNSEEN - 1, "junk"), (UNSEEN - 1, back)):
        rows = [({f"{prefix}{i}": 1.0 for i in range(20)}, i % 2 == 0) for i in range(150)]
        letters = feed(partition, *rows)
        assert len(letters) == lost
    names = {f"{back}{i}" for i in range(20)}
    state = partition.models["m"]
    assert state.features.known.keys() == names
    assert {name for one in state.explainers.values() for name in one.importance} == names


def test_junk_that_comes_again_and_again_does_not_keep_the_bound_full() -> None:
    partition = partition_of(max_features=20)
    junk = {f"junk{i}": 1.0 for i in range(20)}, True
    letters = feed(partition, *(row for i in range(20) for row in (junk, *good(20))))
    lost = [one for one in letters if "a" in json.loads(one.value or b"")["x"]]
    assert len(lost) == UNSEEN - 1
    assert {"a", "b"} <= partition.models["m"].features.known.keys()
