"""Bounds on what records can make grow, from bytes to dead letters: labels, categories, and sizes of numbers."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable
from typing import Any

import pytest
from river import base

from attributary_agents.config.models import ModelConfig
from attributary_agents.config.reading import parse_config
from attributary_agents.models.guards.ranges import ENOUGH, MANY, NEW_RANGE, WINDOW, Ranges
from attributary_agents.models.guards.vocabulary import EARLY, FEW, OTHER, Known, Vocabulary
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_topics import InvalidRecordError
from tests.agents.stand_ins import DEAD_LETTERS, FACTORY, TOPIC, balances, header

PLAIN: dict[str, Any] = {"change": None, "watch_loss": False, "quality": [], "explainers": {"pfi": {"n_samples": 2}}}
NOTING = "tests.agents.models.test_growth:noting"


class Noting(base.Classifier):
    """Predicts all labels alike, and keeps what it was taught."""

    def __init__(self) -> None:
        self.labels: list[Any] = []
        self.colours: list[Any] = []

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        known = set(self.labels)
        return dict.fromkeys(known, 1 / len(known)) if known else {}

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        self.labels.append(y)
        self.colours.append(x.get("colour"))


class NotingRegressor(base.Regressor):
    """Predicts 0 and learns nothing."""

    def predict_one(self, x: dict[str, Any]) -> float:
        return 0.0

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        pass


def noting() -> Noting:
    return Noting()


def noting_regressor() -> NotingRegressor:
    return NotingRegressor()


def partition_of(stored: dict[bytes, bytes] | None = None, **model: Any) -> Partition:
    config = parse_config({"models": {"m": {"factory": NOTING, "label": "any", **PLAIN, **model}}})
    return Partition(TOPIC, 0, config, (stored or {}).get)


def record(offset: int, x: dict[str, Any], y: Any = True) -> Record:
    return Record(TOPIC, 0, offset, offset, b"m", json.dumps({"x": x, "y": y}).encode())


def feed(partition: Partition, *rows: tuple[dict[str, Any], Any]) -> list[Outgoing]:
    """Let the partition handle the rows; return the dead letters."""
    first = partition.offset + 1
    sent = [out for i, (x, y) in enumerate(rows) for out in partition.handle(record(first + i, x, y))]
    return [out for out in sent if out.topic == DEAD_LETTERS]


def reasons(sent: list[Outgoing]) -> list[str]:
    return [header(out, "attributary-dlq-reason") for out in sent if out.topic == DEAD_LETTERS]


def labelled(*labels: Any) -> list[tuple[dict[str, Any], Any]]:
    return [({"a": 1.0}, label) for label in labels]


def test_half_of_the_labels_are_taken_on_sight_and_the_others_when_they_come_again() -> None:
    partition = partition_of(max_labels=4)
    letters = feed(partition, *labelled("a", "b", "c", "d", "c", "e", "d", "a", "f", "f"))
    assert reasons(letters) == ["too_many_labels"] * 5
    assert partition.models["m"].model.labels == ["a", "b", "c", "d", "a"]
    message = header(letters[0], "attributary-dlq-message")
    assert "max_labels" in message
    assert "comes again" in message
    assert "comes again" not in header(letters[-1], "attributary-dlq-message")
    assert header(letters[0], "attributary-dlq-stage") == "decode"
    assert balances(partition.counters)


def test_labels_sent_once_cannot_fill_the_bound() -> None:
    partition = partition_of(max_labels=10)
    feed(partition, *labelled(*(f"junk{i}" for i in range(500))))
    assert reasons(feed(partition, *labelled("good", "good", "good"))) == ["too_many_labels"]
    assert partition.models["m"].model.labels[-2:] == ["good", "good"]
    assert len(encode_state(partition.models["m"])) < 20_000


def test_an_established_model_takes_few_that_are_sent_once() -> None:
    partition = partition_of()
    rows = [({"a": 1.0, "colour": "red"}, i % 2 == 0) for i in range(EARLY)]
    assert feed(partition, *rows) == []
    letters = feed(partition, *(({"a": 1.0, "colour": f"c{i}"}, f"label {i}") for i in range(300)))
    assert reasons(letters) == ["too_many_labels"] * (300 - FEW + 2)
    feed(partition, *(({"a": 1.0, "colour": f"d{i}"}, True) for i in range(300)))
    state = partition.models["m"]
    assert set(state.model.colours) == {"red", OTHER}
    # A class of its own, which begins later, loses one record.
    assert reasons(feed(partition, *(({"a": 1.0, "colour": "new"}, "new") for _ in range(5)))) == ["too_many_labels"]
    assert state.model.labels[-4:] == ["new"] * 4
    assert state.model.colours[-4:] == [OTHER, "new", "new", "new"]


def test_a_rare_second_class_that_begins_late_loses_nothing() -> None:
    partition = partition_of()
    assert feed(partition, *labelled(*[False] * (2 * EARLY), True, False)) == []


def test_forty_classes_work_as_installed() -> None:
    partition = partition_of()
    assert feed(partition, *labelled(*range(40), *(f"class {i}" for i in range(10)))) == []


@pytest.mark.parametrize("model", [{"factory": "tests.agents.models.test_growth:noting_regressor"}, {"learn": False}])
def test_targets_and_labels_of_models_that_do_not_learn_are_not_bounded(model: dict[str, Any]) -> None:
    assert feed(partition_of(max_labels=2, **model), *labelled(*range(30))) == []


def test_null_is_no_bound() -> None:
    partition = partition_of(max_labels=None, max_categories=None, max_jump=None)
    rows = [({"a": 10.0**i, "colour": f"c{i}"}, i) for i in range(150)]
    assert feed(partition, *([({"a": 1.0}, 0)] * ENOUGH), *rows) == []
    assert partition.models["m"].model.colours[-150:] == [f"c{i}" for i in range(150)]


def test_categories_beyond_the_bound_are_one_and_are_counted() -> None:
    partition = partition_of(max_categories=4)
    colours = ["a", "b", "c", None, "d", "c", "e", "e", "a", "f", "f", OTHER, "x" * 30]
    assert feed(partition, *(({"a": 1.0, "b": True, "colour": colour}, True) for colour in colours)) == []
    state = partition.models["m"]
    seen = ["a", "b", OTHER, None, OTHER, "c", OTHER, "e", "a", OTHER, OTHER, OTHER, OTHER]
    assert state.model.colours == seen
    assert (state.n_other_categories, state.n_missing) == (6, 1)
    # The explainer draws from what the model sees.
    assert {row.get("colour") for row in state.explainers["pfi"].reservoir.rows} <= {*seen}


def test_a_model_that_does_not_learn_sees_categories_as_they_are() -> None:
    partition = partition_of(max_categories=2, learn=False)
    feed(partition, *(({"colour": f"c{i}"}, True) for i in range(30)))
    assert partition.models["m"].n_other_categories == 0
    assert OTHER not in {row["colour"] for row in partition.models["m"].explainers["pfi"].reservoir.rows}


def test_what_is_remembered_of_ever_new_labels_and_categories_is_bounded() -> None:
    config = ModelConfig(factory=FACTORY, max_labels=20, max_categories=20, max_features=5)
    vocabulary = Vocabulary(config)
    for i in range(20_000):
        vocabulary.read({f"f{i % 9}": f"{'long' * 500}{i}", "g": f"{i}"})
    snapshot = vocabulary.snapshot()
    assert len(snapshot["categories"]) == 5
    assert len(json.dumps(snapshot, default=repr)) < 5 * 40 * 70
    assert Vocabulary.from_snapshot(config, snapshot).snapshot() == snapshot


@pytest.mark.parametrize("value", ["ü" * 25, "\ud800" * 30, 10**40, -(10**40), 2**64, 1.5, True])
def test_any_value_is_known_again(value: Any) -> None:
    known = Known(1)
    assert known.takes(value)
    assert Known(1, *known.snapshot()).takes(value)
    assert not known.takes("other")


def numbers(n: int, seed: int = 1, scale: float = 1.0) -> list[tuple[dict[str, Any], Any]]:
    rng = random.Random(seed)
    return [({"a": scale * rng.uniform(-1, 1), "b": rng.uniform(-1, 1)}, True) for _ in range(n)]


def test_a_number_far_beyond_is_refused_before_anything_is_learnt() -> None:
    partition = partition_of()
    feed(partition, *numbers(ENOUGH - 1))
    largest = max(abs(x["a"]) for x, _ in numbers(ENOUGH))
    assert feed(partition, *numbers(1, seed=2)) == []
    state = partition.models["m"]
    before = state.n_observations, len(state.model.labels)
    letters = feed(partition, ({"a": -1e6, "b": 0.5}, True))
    assert reasons(letters) == ["out_of_range"]
    assert "max_jump" in header(letters[0], "attributary-dlq-message")
    assert (state.n_observations, len(state.model.labels)) == before
    assert feed(partition, ({"a": 19.9 * largest, "b": 0.5}, True)) == []
    assert feed(partition, ({"a": 19.9 * 19.9 * largest, "b": 0.5}, True)) == []


def test_numbers_are_not_compared_before_enough_are_known_and_zeros_say_nothing() -> None:
    partition = partition_of()
    zeros: list[tuple[dict[str, Any], Any]] = [({"a": 0, "b": 0.0}, True)] * 300
    assert feed(partition, *zeros, *numbers(ENOUGH - 1), ({"a": 1e9, "b": 1}, True), *zeros) == []
    assert reasons(feed(partition, ({"a": 1e9, "b": 1e9}, True))) == ["out_of_range"]  # of b


@pytest.mark.parametrize(
    "own",
    [
        {"bounds": {"a": [None, None]}},
        {"bounds": {"*": [None, 1e9]}},
        {"bounds": {"a": [-5, 5]}, "clip": True},
        {"features": {"a": "category", "b": "number"}},
        {"max_jump": None},
    ],
)
def test_bounds_and_categories_are_not_compared(own: dict[str, Any]) -> None:
    partition = partition_of(**own)
    rows = [({"a": 1, "b": x["b"]}, y) for x, y in numbers(ENOUGH)]
    assert feed(partition, *rows, ({"a": 10**6, "b": 0.5}, True)) == []


def refused_of(ranges: Ranges, values: Iterable[float]) -> list[int]:
    """Return which of the values of feature a are refused, by their numbers."""
    refused = []
    for i, value in enumerate(values):
        try:
            ranges.check({"a": value})
        except InvalidRecordError:
            refused.append(i)
    return refused


def established() -> Ranges:
    ranges = Ranges("m", ModelConfig(factory=FACTORY))
    assert refused_of(ranges, [1.0] * ENOUGH) == []
    return ranges


def test_another_unit_for_good_is_the_new_range_after_twenty(caplog: pytest.LogCaptureFixture) -> None:
    partition = partition_of()
    feed(partition, *numbers(ENOUGH))
    new = [({"a": 1e4, "b": 0.5}, True), ({"a": 0, "b": 0.5}, True)]
    with caplog.at_level(logging.WARNING):
        sent = feed(partition, *(new * NEW_RANGE))
        assert reasons(sent) == ["out_of_range"] * (NEW_RANGE - 1)
        assert feed(partition, *numbers(ENOUGH, scale=1e4)) == []
    assert sum("its range now goes to" in one.getMessage() for one in caplog.records) == 1
    assert reasons(feed(partition, ({"a": 1e9, "b": 0.5}, True))) == ["out_of_range"]


@pytest.mark.parametrize("apart", [1, 2, 3, 20, 50])
def test_two_ranges_that_alternate_lose_nineteen_numbers(apart: int) -> None:
    values = [1e4 if i % apart == 0 else 1.0 for i in range(20_000)]
    beyond = [i for i, value in enumerate(values) if value > 1]
    assert refused_of(established(), values) == beyond[: NEW_RANGE - 1]


def test_fewer_than_twenty_of_a_thousand_are_refused_for_ever_and_the_log_tells_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one_in = WINDOW // (NEW_RANGE - 1) + 1
    values = [1e4 if i % one_in == 0 else 1.0 for i in range(20_000)]
    with caplog.at_level(logging.WARNING):
        assert refused_of(established(), values) == list(range(0, 20_000, one_in))
    assert len(caplog.records) == 1
    assert "more than 1 %" in caplog.records[0].getMessage()
    assert "bounds" in caplog.records[0].getMessage()


def test_one_percent_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    one_in = WINDOW // (MANY - 1)
    refused_of(established(), [1e4 if i % one_in == 0 else 1.0 for i in range(20_000)])
    assert not caplog.records


@pytest.mark.parametrize("at", [0, 5, NEW_RANGE - 1])
def test_one_absurd_number_among_those_of_another_unit_is_refused_still(at: int) -> None:
    ranges = established()
    values = [1e4] * NEW_RANGE
    values[at] = 1e12
    # The absurd one makes 20 where it comes last: the next decides.
    assert len(refused_of(ranges, values)) == NEW_RANGE - 1 + (at == NEW_RANGE - 1)
    assert refused_of(ranges, [1e4, 19e4, 1e12]) == [2]


def test_what_is_remembered_of_refused_numbers_is_bounded() -> None:
    config = ModelConfig(factory=FACTORY)
    ranges = Ranges("m", config)
    for _ in range(ENOUGH):
        ranges.check({"a": 1.0, "b": 1.0})
    for i in range(100):  # no two of the numbers of a are of one range, so those of b, in the same records, wait
        with pytest.raises(InvalidRecordError, match=r"x\.a"):
            ranges.check({"a": 10.0 ** (3 + 2 * i), "b": 1e4})
    snapshot = ranges.snapshot()
    assert {name: len(numbers) for name, (_, numbers) in snapshot["refused"].items()} == {"a": 20, "b": 20}
    assert Ranges.from_snapshot("m", config, snapshot).snapshot() == snapshot
    ranges.check({"a": 1.0, "b": 1e4})
    for _ in range(WINDOW):
        ranges.check({"a": 1.0, "b": 1.0})
    assert ranges.snapshot()["refused"] == {}


def test_a_refused_record_moves_no_range() -> None:
    partition = partition_of(max_labels=2)
    feed(partition, *numbers(ENOUGH))
    assert reasons(feed(partition, ({"a": 15.0, "b": 1e6}, True))) == ["out_of_range"]
    assert reasons(feed(partition, ({"a": 15.0, "b": 0.5}, "new"))) == ["too_many_labels"]
    assert reasons(feed(partition, ({"a": 100.0, "b": 0.5}, True))) == ["out_of_range"]


def test_ranges_are_of_a_bounded_number_of_features_and_of_any_number() -> None:
    config = ModelConfig(factory=FACTORY, max_features=5)
    ranges = Ranges("m", config)
    for i in range(3 * ENOUGH):
        ranges.check({"a": -(10**400), "zero": 0, "yes": True, "text": "t", "none": None, f"f{i}": i + 1})
    snapshot = ranges.snapshot()
    assert snapshot["largest"] == {"a": 1.7976931348623157e308}
    assert len(snapshot["young"]) == 4
    assert Ranges.from_snapshot("m", config, snapshot).snapshot() == snapshot


def hostile(n: int) -> list[Record]:
    """All that is refused, replaced and forgotten, on both sides of any offset."""
    rng, made = random.Random(3), []
    for i in range(n):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), "colour": rng.choice("rgb")}
        y: Any = x["a"] > 0
        if i > ENOUGH:
            if i % 3 == 0:
                x["colour"] = f"colour {rng.randrange(30)}"
            if i % 7 == 0:
                y = f"label {rng.randrange(6)}"
            if i % 50 < 25 and i % 100 > 50:
                x["b"] *= 1e5
        made.append(record(i, x, y))
    return made


@pytest.mark.parametrize("cut", [ENOUGH - 10, ENOUGH + 55, ENOUGH + 78, ENOUGH + 250])
def test_restored_and_continued_equals_never_stopped_and_a_crash_repeats_the_same(cut: int) -> None:
    own = {"max_labels": 6, "max_categories": 8, "publish": {"every": 100}}
    records = hostile(ENOUGH + 400)
    never = partition_of(**own)
    whole = [never.handle(one) for one in records]
    stopped = partition_of(**own)
    for one in records[: cut + 1]:
        stopped.handle(one)
    stored = {b"m": encode_state(stopped.models["m"])}
    # The crash came before the checkpoint: what the model has seen comes again, and no dead letter of it.
    again = partition_of(stored, **own)
    sent = [again.handle(one) for one in records]
    assert sent[: cut + 1] == [[]] * (cut + 1)
    assert sent[cut + 1 :] == whole[cut + 1 :]
    assert again.counters == never.counters
    assert balances(again.counters)
    for name in ("vocabulary", "ranges"):
        assert getattr(again.models["m"], name).snapshot() == getattr(never.models["m"], name).snapshot()
    assert again.models["m"].n_other_categories == never.models["m"].n_other_categories > 0
    assert {"too_many_labels", "out_of_range"} <= {reason for sent in whole for reason in reasons(sent)}


def test_a_state_without_bounds_is_taken_over() -> None:
    state = partition_of().models.find_or_make("m")
    feed(partition := partition_of(), *numbers(10))
    snapshot = partition.models["m"].snapshot()
    for name in ("vocabulary", "ranges", "target_range", "n_other_categories", "features"):
        del snapshot[name]
    state.restore(snapshot)
    assert (state.n_observations, state.n_other_categories) == (10, 0)


def test_a_feature_that_is_bounded_later_is_compared_no_longer() -> None:
    config = ModelConfig(factory=FACTORY)
    ranges = Ranges("m", config)
    for _ in range(ENOUGH):
        ranges.check({"a": 1.0, "b": 1.0})
    later = Ranges.from_snapshot("m", config.model_copy(update={"bounds": {"a": (None, 1e9)}}), ranges.snapshot())
    later.check({"a": 1e8, "b": 1.0})
    with pytest.raises(InvalidRecordError, match=r"x\.b"):
        later.check({"a": 1e8, "b": 1e8})


REGRESSOR = {"factory": "tests.agents.models.test_growth:noting_regressor"}


def targets(n: int, scale: float = 1.0) -> list[tuple[dict[str, Any], Any]]:
    rng = random.Random(2)
    return [({"a": 1.0}, scale * rng.uniform(-5, 5)) for _ in range(n)]


def test_a_target_far_beyond_is_refused_before_anything_is_learnt() -> None:
    partition = partition_of(**REGRESSOR)
    assert feed(partition, *targets(ENOUGH)) == []
    state = partition.models["m"]
    before = state.n_observations, state.model_loss.snapshot()
    letters = feed(partition, ({"a": 1.0}, -1e5))
    assert reasons(letters) == ["out_of_range"]
    message = header(letters[0], "attributary-dlq-message")
    assert "the largest of y so far (max_jump, or `label_bounds` of the model)" in message
    assert (state.n_observations, state.model_loss.snapshot()) == before
    assert feed(partition, ({"a": 1.0}, 0), ({"a": 1.0}, -99.0)) == []


def test_targets_of_another_unit_for_good_lose_nineteen(caplog: pytest.LogCaptureFixture) -> None:
    partition = partition_of(**REGRESSOR)
    feed(partition, *targets(ENOUGH))
    assert reasons(feed(partition, *[({"a": 1.0}, 1e4)] * 1000)) == ["out_of_range"] * (NEW_RANGE - 1)
    assert any("of the target were beyond" in one.getMessage() for one in caplog.records)


@pytest.mark.parametrize(
    "own",
    [
        {"max_jump": None, **REGRESSOR},
        {"label_bounds": [None, None], **REGRESSOR},
        {"label_bounds": [-1e4, 1e6], **REGRESSOR},
        {"loss": "score", **REGRESSOR},
        {},  # a classifier, whose classes are numbers
    ],
)
def test_targets_that_are_not_compared(own: dict[str, Any]) -> None:
    rows = [({"a": 1.0}, i % 5) for i in range(ENOUGH + 5)]
    assert "out_of_range" not in reasons(feed(partition_of(**own), *rows, ({"a": 1.0}, 10**6)))


def test_bounds_of_features_say_nothing_of_the_target() -> None:
    partition = partition_of(bounds={"*": [None, None], "y": [None, None]}, **REGRESSOR)
    assert reasons(feed(partition, *targets(ENOUGH), ({"a": 1.0, "y": 1e9}, 1e9))) == ["out_of_range"]
    partition = partition_of(label_bounds=[None, None], **REGRESSOR)
    letters = feed(partition, *[({"y": 1.0}, 1.0)] * ENOUGH, ({"y": 1.0}, 1e9), ({"y": 1e9}, 1.0))
    assert ["the largest of x.y so far" in header(one, "attributary-dlq-message") for one in letters] == [True]


def test_label_bounds_refuse_from_the_first_on_and_never_clip() -> None:
    partition = partition_of(label_bounds=[0, 10.5], bounds={"a": [0, 1]}, clip=True, **REGRESSOR)
    letters = feed(partition, *[({"a": 2.0}, y) for y in (0, 10.5, -0.1, 11, 5)])
    assert reasons(letters) == ["out_of_bounds"] * 2
    assert "at least 0 and at most 10.5 (label_bounds" in header(letters[0], "attributary-dlq-message")
    assert partition.models["m"].n_observations == 3


@pytest.mark.parametrize("cut", [ENOUGH - 10, ENOUGH + 30, ENOUGH + 120])
def test_refused_targets_are_the_same_after_a_restart(cut: int) -> None:
    rows = [(x, 1e6 * y if i > ENOUGH and i % 9 == 0 else y) for i, (x, y) in enumerate(targets(ENOUGH + 300))]
    records = [record(i, *row) for i, row in enumerate(rows)]
    never = partition_of(**REGRESSOR)
    whole = [never.handle(one) for one in records]
    assert sum(map(len, map(reasons, whole))) == NEW_RANGE - 1
    stopped = partition_of(**REGRESSOR)
    for one in records[: cut + 1]:
        stopped.handle(one)
    again = partition_of({b"m": encode_state(stopped.models["m"])}, **REGRESSOR)
    assert [again.handle(one) for one in records][cut + 1 :] == whole[cut + 1 :]
    assert again.models["m"].target_range.snapshot() == never.models["m"].target_range.snapshot()
    assert balances(again.counters)
