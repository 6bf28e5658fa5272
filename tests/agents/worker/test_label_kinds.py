"""One label of another kind costs one record, whichever model it is sent to, and whether or not a worker restarts."""

from __future__ import annotations

import json
import random
from itertools import chain
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import ConfigError
from attributary_agents.models.guards.label_kinds import MAJORITY, MEMORY, LabelKind, kind_of
from attributary_agents.models.model_state import ModelState
from attributary_agents.state.checkpoints import encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_explainers.models.known import classes_of
from attributary_topics import InvalidRecordError
from tests.agents.stand_ins import TOPIC, balances, header

SCALER = {"class": "river.preprocessing.StandardScaler"}
LOGISTIC = {"class": "river.linear_model.LogisticRegression"}
TREE = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 20}}


def _of(name: str, **params: Any) -> dict[str, Any]:
    return {"class": f"river.{name}", "params": params}


MODELS: dict[str, Any] = {
    "forest": _of("forest.ARFClassifier", n_models=3, seed=1),
    "AMF": _of("forest.AMFClassifier", n_estimators=3, seed=1),
    "Hoeffding tree": TREE,
    "HAT": _of("tree.HoeffdingAdaptiveTreeClassifier", grace_period=20, seed=1),
    "EFDT": _of("tree.ExtremelyFastDecisionTreeClassifier", grace_period=20),
    "SRP": _of("ensemble.SRPClassifier", n_models=3, seed=1, model=TREE),
    "ADWIN bagging": _of("ensemble.ADWINBaggingClassifier", n_models=3, seed=1, model=TREE),
    "leveraging bagging": _of("ensemble.LeveragingBaggingClassifier", n_models=3, seed=1, model=TREE),
    "bagging": _of("ensemble.BaggingClassifier", n_models=3, seed=1, model=LOGISTIC),
    "AdaBoost": _of("ensemble.AdaBoostClassifier", n_models=3, seed=1, model=TREE),
    "naive Bayes": _of("naive_bayes.GaussianNB"),
    "neighbours": _of("neighbors.KNNClassifier"),
    "one against the rest": _of("multiclass.OneVsRestClassifier", classifier=LOGISTIC),
    "softmax": _of("linear_model.SoftmaxRegression"),
    "logistic regression": LOGISTIC,
    "perceptron": _of("linear_model.Perceptron"),
    "pipeline": [SCALER, LOGISTIC],
    "pipeline with a tree": [SCALER, TREE],
}
RELATIVES = {"HAT", "EFDT", "ADWIN bagging", "leveraging bagging", "softmax", "perceptron", "pipeline with a tree"}
"""Models that keep labels as another one of these does."""
CHEAP = {"explainers": {"pfi": {"n_samples": 2}}, "change": {"window": 50}, "publish": {"every": 10}}
N = 60


class Job:
    """A partition that is fed from bytes, and can crash: then what was stored is all that is left."""

    def __init__(self, model: Any, seed: int = 1, **settings: Any) -> None:
        self.config = parse_config({"models": {"m": {"model": model, **CHEAP, **settings}}})
        self.partition = Partition(TOPIC, 0, self.config, {}.get)
        self.rng = random.Random(seed)
        self.offset = -1
        self.sent: list[Outgoing] = []

    def send(self, *labels: Any) -> list[str]:
        """Send an observation with each label; `None` makes the right boolean. Return the reasons of dead letters."""
        before = len(self.sent)
        for label in labels:
            x = {"a": self.rng.random(), "b": self.rng.random(), "c": self.rng.random()}
            y = x["a"] + 0.1 * self.rng.random() > 0.5 if label is None else label
            self.value(json.dumps({"x": x, "y": y}).encode())
        return [header(one, "attributary-dlq-reason") for one in self.sent[before:] if "dead" in one.topic]

    def value(self, value: bytes) -> None:
        self.offset += 1
        self.sent += self.partition.handle(Record(TOPIC, 0, self.offset, 1_700_000_000_000, b"m", value))

    def restart(self) -> None:
        table = {
            b"m": encode_state(self.state),
            checkpoint_key(0): encode_checkpoint(self.offset, self.partition.counters),
        }
        self.partition = Partition(TOPIC, 0, self.config, table.get)
        self.partition.models.restore("m")

    @property
    def state(self) -> ModelState:
        return self.partition.models["m"]


def values(job: Job) -> list[dict[str, Any]]:
    """The events, all that they say but where they came from."""
    events = [json.loads(one.value or b"") for one in job.sent if "dead" not in one.topic]
    return [{name: value for name, value in event.items() if name != "source"} for event in events]


@pytest.mark.parametrize("name", MODELS)
def test_one_label_of_another_kind_is_one_dead_letter_and_nothing_is_lost(name: str) -> None:
    job = Job(MODELS[name])
    assert job.send(*[None] * N) == []
    assert job.send("true") == ["wrong_type"]
    (letter,) = [one for one in job.sent if "dead" in one.topic]
    assert header(letter, "attributary-dlq-stage") == "decode"
    assert "y: expected a boolean, as the labels before" in header(letter, "attributary-dlq-message")
    assert job.send(*[None] * 100) == []
    job.restart()
    assert job.send(*[None] * 50) == []
    assert job.state.n_observations == N + 150
    assert balances(job.partition.counters)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in RELATIVES else name for name in MODELS]
)
def test_what_a_refused_label_leaves_is_nothing(name: str) -> None:
    """Without the wrong one, the events are the same."""
    with_it, without = Job(MODELS[name]), Job(MODELS[name])
    for job in (with_it, without):
        job.send(*[None] * N)
    state = with_it.rng.getstate()
    with_it.send("true")
    with_it.rng.setstate(state)
    with_it.sent.pop()
    for job in (with_it, without):
        job.send(*[None] * N)
        assert len(values(job)) >= 2 * N // 10
    assert values(with_it) == values(without)


@pytest.mark.parametrize(
    ("name", "wrong"),
    # Logistic regression refuses a text by itself, as a label that its classes do not have.
    [(name, wrong) for name in ("forest", "Hoeffding tree", "naive Bayes") for wrong in ("true", 7)]
    + [("pipeline", 7)],
)
def test_a_first_label_that_is_wrong_leaves_no_trace(name: str, wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    job, never = Job(MODELS[name]), Job(MODELS[name])
    job.send(wrong)
    job.rng.seed(5)
    never.rng.seed(5)
    assert job.send(*[None] * N) == never.send(*[None] * N) == []
    kind = kind_of(wrong)
    assert f"model m: its labels are booleans, and not {kind}s: it begins again, and forgets the 1" in caplog.text
    assert job.send(wrong) == ["wrong_type"]
    assert job.state.n_observations == never.state.n_observations == N
    assert values(job) == values(never)


def test_two_labels_of_a_kind_decide_until_many_more_are_of_another() -> None:
    job = Job(MODELS["forest"])
    assert job.send("x", True, "x", True, False, 1, "x") == ["wrong_type"] * 3
    assert job.state.labels.kind == "text"
    job = Job(MODELS["forest"])
    assert job.send(True, "x", False, "x", 1, True, "x", 2) == ["wrong_type"] * 3
    assert job.state.labels.kind == "boolean"


def test_zero_and_one_are_booleans_for_a_model_as_they_are_in_python() -> None:
    mixed, plain = Job(MODELS["forest"]), Job(MODELS["forest"])
    rng = random.Random(3)
    labels = [rng.random() < 0.5 for _ in range(60)]
    assert plain.send(*labels) == []
    assert mixed.send(*(int(y) if i % 2 else y for i, y in enumerate(labels))) == []
    assert [one.value for one in mixed.sent] == [one.value for one in plain.sent]
    assert len(mixed.sent) == 6
    assert mixed.send(0.5, 2, "true") == ["wrong_type"] * 3
    classes = Job(MODELS["forest"])
    assert classes.send(0, True, 1, 2, True, 3) == ["wrong_type"], "where a third number is, booleans are others"


def test_a_single_zero_among_booleans_is_no_way_in_for_other_numbers() -> None:
    job = Job(MODELS["Hoeffding tree"])
    assert job.send(0, *[None] * 100, 5, *[None] * 50) == ["wrong_type"]
    assert job.state.n_observations == 151


@pytest.mark.parametrize("restarts", [False, True])
def test_a_single_boolean_before_zero_and_one_takes_no_class_away(restarts: bool) -> None:
    job = Job(MODELS["Hoeffding tree"])
    assert job.send(True, 0, 1, 0) == []
    if restarts:
        job.restart()
    assert job.send(*[0, 1, 0, 1, 2] * 20) == []
    assert job.send(True) == ["wrong_type"]
    assert job.state.n_observations == 104


def test_labels_that_were_declared_until_now_are_not_outdone_by_one() -> None:
    job = Job(MODELS["Hoeffding tree"], label="boolean")
    job.send(*[None] * N)
    table = {b"m": encode_state(job.state), checkpoint_key(0): encode_checkpoint(job.offset, job.partition.counters)}
    job.config = parse_config({"models": {"m": {"model": MODELS["Hoeffding tree"], **CHEAP}}})
    job.partition = Partition(TOPIC, 0, job.config, table.get)
    assert job.send("true", *[None] * 5) == ["wrong_type"]
    assert job.state.n_observations == N + 5


def test_labels_of_an_anomaly_detector_say_nothing_of_its_successor() -> None:
    job = Job(_of("anomaly.HalfSpaceTrees", seed=1), change=None)
    job.send(*["unknown"] * 20)
    table = {b"m": encode_state(job.state), checkpoint_key(0): encode_checkpoint(job.offset, job.partition.counters)}
    regression = [SCALER, _of("linear_model.LinearRegression")]
    job.config = parse_config({"models": {"m": {"model": regression, **CHEAP, "version": "2"}}})
    job.partition = Partition(TOPIC, 0, job.config, table.get)
    assert job.send(*[1.5] * 5) == []


def test_the_kind_changes_when_another_is_of_ten_more_labels(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(MODELS["forest"])
    assert job.send("x", "x", *[None] * 11) == ["wrong_type"] * 11
    assert job.send(None) == [], "the twelfth: the first two were the wrong ones"
    assert "its labels are booleans from now on, which outnumber the texts before by 10: it begins again" in caplog.text
    assert job.send(*[None] * 18, "x") == ["wrong_type"]
    assert job.state.n_observations == 19
    assert balances(job.partition.counters)


def test_a_first_copy_that_cannot_be_read_ends_nothing() -> None:
    job = Job(MODELS["naive Bayes"])
    job.send("x", "x")
    job.state.good.first = b"no zstd"  # as whoever can write states may leave it
    assert job.send(*[None] * 12) == [*["wrong_type"] * 11, "wrong_label"], "it goes on with the model as it is"
    assert job.state.labels.kind == "boolean"


def test_an_established_model_begins_again_when_its_labels_change_for_good() -> None:
    job, never = Job(MODELS["forest"]), Job(MODELS["forest"])
    assert job.send(*[None] * 1200) == []
    assert job.send(*["x", "y"] * 505) == ["wrong_type"] * (MEMORY + MAJORITY - 1)
    assert job.state.n_observations == 1
    for one in (job, never):
        one.rng.seed(3)
    del job.sent[:]
    never.send("y")
    job.rng.seed(3)
    never.rng.seed(3)
    assert job.send(*["x", "y"] * 30) == never.send(*["x", "y"] * 30) == []
    assert job.state.n_observations == never.state.n_observations == 61
    assert balances(job.partition.counters)


WRONG, GOOD = "true", None


def _of_twenty(job: Job) -> tuple[list[Any], int]:
    return [WRONG, WRONG, *(WRONG if i % 20 == 0 else GOOD for i in range(600))], 13


def _a_test_of_25(job: Job) -> tuple[list[Any], int]:
    return [*[WRONG] * 25, *[GOOD] * 600], 35


def _of_three(job: Job) -> tuple[list[Any], int]:
    return [WRONG if i % 3 == 0 else GOOD for i in range(600)], 5


@pytest.mark.parametrize("order", [_of_twenty, _a_test_of_25, _of_three])
def test_labels_of_a_minority_cost_a_bounded_number_of_the_others(order: Any) -> None:
    """All from bytes: what is a dead letter is counted by its label."""
    job = Job(MODELS["Hoeffding tree"])
    labels, most = order(job)
    job.send(*labels)
    letters = [json.loads(one.value or b"") for one in job.sent if "dead" in one.topic]
    lost = sum(one["y"] != WRONG for one in letters)
    assert lost <= most
    assert job.state.labels.kind == "boolean"
    assert job.send(GOOD, WRONG) == ["wrong_type"]
    assert balances(job.partition.counters)


def _refused(kind: LabelKind, label: Any) -> bool:
    try:
        kind.check(label, None)
    except InvalidRecordError:
        return True
    kind.note(label)
    return False


def _by_share(rng: random.Random) -> list[bool]:
    share = rng.choice((0.05, 0.2, 1 / 3, 0.45))
    return [rng.random() < share for _ in range(1500)]


def _in_bursts(rng: random.Random) -> list[bool]:
    """The wrong ones are never half of what has come so far, and come as late together as that lets them."""
    made = [False, False, False]
    while len(made) < 1500:
        n_wrong = sum(made)
        made += [False] * rng.randrange(1, 60)
        made += [True] * rng.randrange(0, (len(made) - 2 * n_wrong + 1) // 2 + 1)
    return made


def _first(rng: random.Random) -> list[bool]:
    return [True] * rng.randrange(1, 60) + _by_share(rng)


@pytest.mark.parametrize("order", [_by_share, _in_bursts, _first])
@pytest.mark.parametrize("wrong", [("true",), ("true", 7)])
@pytest.mark.share(2, "order", "wrong")
def test_each_good_label_that_is_lost_takes_a_wrong_one_before_it(order: Any, wrong: tuple[Any, ...]) -> None:
    """The bound by exact counts, over 200 orders of each sort, with wrong labels of one kind or of two."""
    for seed in range(200):
        rng = random.Random(seed)
        kind, n_wrong, lost = LabelKind(), 0, 0
        for is_wrong in order(rng):
            n_wrong += is_wrong
            lost += _refused(kind, rng.choice(wrong) if is_wrong else True) and not is_wrong
            assert lost <= n_wrong + 2 * MAJORITY
        assert kind.kind == "boolean"


def test_a_minority_never_takes_a_model_whose_labels_are_known() -> None:
    """With fewer than half of all labels so far, and twenty good ones first, the wrong ones never decide."""
    for seed in range(200):
        kind = LabelKind()
        for _ in range(2 * MAJORITY):
            assert not _refused(kind, True)
        for is_wrong in _in_bursts(random.Random(seed)):
            assert _refused(kind, "true" if is_wrong else False) == is_wrong


def test_a_restart_between_the_first_labels_changes_nothing() -> None:
    labels = ["x", "x", *[None] * 30, 3, "x", *[None] * 5]
    whole, stopped = Job(MODELS["Hoeffding tree"]), Job(MODELS["Hoeffding tree"])
    for label in labels:
        whole.send(label)
        stopped.send(label)
        stopped.restart()
    assert stopped.sent == whole.sent
    assert vars(stopped.state.labels) == vars(whole.state.labels)


def test_what_follows_from_a_refused_label_is_the_same_when_it_is_read_again() -> None:
    job = Job(MODELS["forest"])
    job.send(*[None] * N, "true")
    assert job.state.failed_offsets == {N: "wrong_type"}
    table = {b"m": encode_state(job.state)}  # a crash between the model's state and the checkpoint
    again = Partition(TOPIC, 0, job.config, table.get)
    value = json.dumps({"x": {"a": 1.0, "b": 1.0, "c": 1.0}, "y": "true"}).encode()
    assert again.handle(Record(TOPIC, 0, N, 1_700_000_000_000, b"m", value)) == []
    assert +again.counters.dead_letters == {"wrong_type": 1}


@pytest.mark.parametrize(
    ("label", "taken"), [("boolean", True), ("number", 1), ("number", 0.5), ("text", "true"), (None, "true")]
)
def test_a_declared_kind_holds_from_the_first_label_on(label: str | None, taken: Any) -> None:
    job = Job(MODELS["Hoeffding tree"], label=label)
    others = [one for one in (True, 2, "true") if kind_of(one) != kind_of(taken)]
    if label is not None:
        assert job.send(*others) == ["wrong_type"] * 2
    assert job.send(taken, taken) == []
    assert job.send(*others) == ["wrong_type"] * 2
    assert job.send(0, 1) == ([] if label in ("boolean", "number") else ["wrong_type"] * 2)


def test_any_takes_whatever_comes() -> None:
    job = Job(MODELS["neighbours"], label="any")
    assert "wrong_type" not in job.send(True, "x", 3, 1.5, None)


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"label.*did you mean 'boolean'"):
        Job(TREE, label="bool")


def test_a_regressor_takes_numbers_alone_once_it_had_some() -> None:
    job = Job([SCALER, _of("linear_model.LinearRegression")])
    assert job.send(1, 2.5, 3, True, "1", -1e3) == ["wrong_type", "wrong_type"]


def test_the_label_of_an_anomaly_detector_does_not_matter() -> None:
    job = Job(_of("anomaly.HalfSpaceTrees", seed=1), change=None)
    assert job.send(True, "x", 3, 0, None) == []


def test_what_is_wrong_first_is_forgotten_where_the_model_does_not_learn() -> None:
    job = Job(MODELS["naive Bayes"], learn=False)
    assert job.send("x", *[None] * 5, "x") == ["wrong_type"]
    assert job.state.n_observations == 5
    assert job.state.good.copy is None, "nothing is copied that cannot change"


def test_a_new_version_keeps_the_kind_until_twenty_labels_say_otherwise() -> None:
    job = Job(TREE)
    job.send(*[None] * N)
    table = {b"m": encode_state(job.state), checkpoint_key(0): encode_checkpoint(job.offset, job.partition.counters)}
    job.config = parse_config({"models": {"m": {"model": MODELS["naive Bayes"], **CHEAP, "version": "2"}}})
    job.partition = Partition(TOPIC, 0, job.config, table.get)
    assert job.send("x") == ["wrong_type"]
    assert job.send(*[None] * 5, *["x"] * 23) == ["wrong_type"] * 23
    assert job.send(*["x"] * 5) == []
    assert job.state.n_observations == 5, "what had learnt the first five begins again"
    job.partition = Partition(TOPIC, 0, job.config, table.get)
    job.offset = N - 1
    assert job.send(*["x"] * 20) == ["wrong_type"] * 19
    assert job.send(*["y"] * 5) == []
    assert (job.state.version, job.state.n_observations) == ("2", N + 6), "what came before still counts"


def test_an_older_state_without_a_kind_loses_nothing() -> None:
    job = Job(TREE)
    job.send(*[None] * N)
    job.state.labels = LabelKind.from_snapshot(None)
    assert job.send("true", *[None] * 5) == []
    assert job.state.n_observations == N + 6


class Fitted:
    """Has classes, as an estimator of scikit-learn."""

    def __init__(self, *classes: Any) -> None:
        self.classes_ = list(classes)


@pytest.mark.parametrize(
    ("classes", "label", "fits"),
    [
        (["a", "b"], "c", True),
        (["a", "b"], 1, False),
        ([0, 1], True, True),
        ([False, True], 1, True),
        ([0, 1, 2], True, False),
        (["a", 1], 2, True),
    ],
)
def test_the_classes_of_a_fitted_model_decide_before_the_first_label(classes: Any, label: Any, fits: bool) -> None:
    kind = LabelKind()
    if fits:
        assert not kind.check(label, None, classes_of(Fitted(*classes)))
        return
    for _ in range(19):
        with pytest.raises(InvalidRecordError, match="expected a"):
            kind.check(label, None, classes_of(Fitted(*classes)))
    assert kind.check(label, None, classes_of(Fitted(*classes)))


def test_a_snapshot_is_of_its_own() -> None:
    kind = LabelKind()
    for y in chain([True] * 3, [False]):
        kind.check(y, None)
        kind.note(y)
    again = LabelKind.from_snapshot(kind.snapshot())
    assert vars(again) == vars(kind)
    again.note(True)
    assert kind.n_learnt == 4
