"""Mean decrease in impurity in a worker: its events are the trees' own, and a model without trees has none."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from river import naive_bayes, tree
from river.datasets import synth

from attributary_agents.config.models import ModelConfig
from attributary_agents.errors import ConfigError
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.trial import check_model
from attributary_agents.models.versions import Version
from attributary_agents.state.codec import decode_state, encode_state
from attributary_explainers import ndcg, shift
from attributary_topics import ImportanceEvent, Observation, Source
from tests.agents.models.test_prequential import state_of
from tests.explainers.incremental.test_mdi import naive

TREE: dict[str, Any] = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50, "delta": 0.01}}
FOREST: dict[str, Any] = {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}
REGRESSOR: dict[str, Any] = {"class": "river.tree.HoeffdingTreeRegressor", "params": {"grace_period": 50}}


def credit(n: int = 600) -> list[Observation]:
    return [Observation("m", x, y) for x, y in synth.Agrawal(classification_function=2, seed=3).take(n)]


def numbers(n: int = 600) -> list[Observation]:
    return [
        Observation("m", {str(name): value for name, value in x.items()}, y) for x, y in synth.Friedman(seed=3).take(n)
    ]


def config(model: dict[str, Any], **settings: Any) -> ModelConfig:
    chosen = {"explainers": {"mdi": {}}, "change": None, "watch_loss": False, "publish": {"every": 100}, **settings}
    return ModelConfig.model_validate({"model": model, "alpha": 0.01, **chosen})


def events_of(state: ModelState, stream: list[Observation]) -> list[tuple[ImportanceEvent, dict[str, float]]]:
    """Return each event of mdi with what the trees say at that moment, by the textbook's recursion."""
    found = []
    for observation in stream:
        n = state.n_observations
        for event in prequential(state, observation, Source("topic", 0, n), n):
            if isinstance(event, ImportanceEvent) and event.explainer == "mdi":
                found.append((event, expected(state.model)))
    return found


def expected(model: Any) -> dict[str, float]:
    trees = (
        [member.model if hasattr(member, "model") else member for member in model]
        if hasattr(model, "__iter__")
        else [model]
    )
    found: dict[str, float] = {}
    for one in trees:
        weight, *_, decreases = naive(one._root)
        for feature, decrease in decreases.items():
            found[feature] = found.get(feature, 0.0) + decrease / weight / len(trees)
    return found


@pytest.mark.parametrize(
    ("model", "stream", "loss"),
    [(TREE, credit(), "brier"), (FOREST, credit(), "brier"), (REGRESSOR, numbers(), "squared")],
)
def test_an_event_has_the_decrease_of_the_trees_as_they_are_then(model: Any, stream: Any, loss: str) -> None:
    state = new_state("m", config(model))
    found = events_of(state, stream)
    assert [event.observation for event, _ in found] == [100, 200, 300, 400, 500, 600]
    for event, decreases in found:
        told = {name: feature.importance for name, feature in event.features.items()}
        assert told == pytest.approx(decreases, rel=1e-9, abs=1e-9)
        assert [feature.rank for feature in event.features.values()] == list(range(1, len(told) + 1))
        assert {(f.std_error, f.half_width) for f in event.features.values()} <= {(None, None)}, "it has no interval"
        assert (event.removal, event.alpha, event.loss) == ("none", 0.0, loss)
        assert (event.n_observations, event.stale) == (event.observation, False)
    last = found[-1][0]
    assert len(last.features) >= 2
    assert last.model_loss == state.model_loss.value, "impurity is in the unit of this loss"


def test_losses_in_another_unit_than_the_impurity_are_left_out() -> None:
    ((event, _), *_) = events_of(new_state("m", config(TREE, loss="cross_entropy")), credit(100))
    assert (event.loss, event.model_loss, event.baseline_loss) == ("brier", None, None)


def test_a_group_has_the_sum_of_its_features_and_what_is_declared_has_0_before_a_split() -> None:
    stream = credit(300)
    plain = events_of(new_state("m", config(TREE)), stream)[-1][0].features
    groups = {"who": ["age", "elevel", "zipcode"]}
    features = dict.fromkeys(stream[0].x, "any")
    grouped = events_of(new_state("m", config(TREE, groups=groups, features=features)), stream)[-1][0].features
    of_group = sum(plain[name].importance for name in groups["who"] if name in plain)
    assert of_group > 0
    assert grouped["who"].importance == pytest.approx(of_group)
    assert grouped.keys() == {*features, "who"} - set(groups["who"])
    assert min(feature.importance for feature in grouped.values()) == 0.0


def test_shift_and_ndcg_compare_with_the_reference() -> None:
    state = new_state("m", config(TREE, publish={"every": 100, "reference_after": 250}))
    by_observation = {event.observation: event for event, _ in events_of(state, credit(500))}
    assert by_observation[200].shift is None
    assert {by_observation[n].reference_id for n in (300, 400, 500)} == {"250"}
    now = {name: feature.importance for name, feature in by_observation[500].features.items()}
    assert state.mdi is not None
    reference = state.mdi.publication.snapshot()["_reference"]
    assert (by_observation[500].shift, by_observation[500].ndcg) == (shift(reference, now), ndcg(reference, now))


class _Walks:
    """Counts how often the importance is read."""

    def __init__(self) -> None:
        self.n = 0

    @property
    def importance(self) -> dict[str, float]:
        self.n += 1
        return {"age": 1.0 / self.n}


def test_the_trees_are_walked_when_an_event_or_the_reference_is_due_and_at_no_other_observation() -> None:
    state = new_state("m", config(TREE, publish={"every": 100, "reference_after": 150}))
    assert state.mdi is not None
    walks = state.mdi._explainer = _Walks()  # type: ignore[assignment]
    n_walks = []
    for observation in credit(250):
        prequential(state, observation, Source("topic", 0, 0), 0)
        n_walks.append(walks.n)
    assert [n_walks.index(n) + 1 for n in (1, 2, 3)] == [100, 150, 200]
    assert walks.n == 3
    assert state.mdi.importance == {"age": 1 / 3}, "and what is scraped is what was read last"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"class": "river.naive_bayes.GaussianNB"}, "GaussianNB"),
        ({"class": "river.linear_model.LogisticRegression"}, "LogisticRegression"),
        (
            [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
            "Pipeline",
        ),
    ],
)
def test_a_model_without_trees_is_refused_before_the_start(model: Any, name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_model("m", config(model))
    said = str(refused.value)
    assert said.startswith(f"models.m: explainers.mdi: {name} has no mean decrease in impurity")
    assert "Hoeffding trees" in said
    assert "mdi: null" in said
    assert "\n" not in said
    check_model("m", config(TREE))


def test_a_version_without_trees_takes_over_and_goes_on_without(caplog: pytest.LogCaptureFixture) -> None:
    state, stream = new_state("m", config(TREE)), credit(400)
    assert [event.observation for event, _ in events_of(state, stream[:200])] == [100, 200]
    with caplog.at_level(logging.WARNING):
        other, _ = swap(state, Version("2", {}, naive_bayes.GaussianNB()), Source("topic", 0, 200))
    assert "version 2 goes on without mdi: explainers.mdi: GaussianNB has no mean decrease" in caplog.text
    assert other.mdi is None
    assert events_of(other, stream[200:300]) == []
    back, _ = swap(other, Version("3", {}, tree.HoeffdingTreeClassifier()), Source("topic", 0, 300))
    ((event, _),) = events_of(back, stream[300:400])
    assert (event.model_version, event.n_observations) == ("3", 100)


def test_a_state_without_it_is_read_and_one_with_it_goes_on_without() -> None:
    with_it, without = config(TREE), config(TREE, explainers={"pfi": {"n_samples": 1}})
    state = new_state("m", with_it)
    events_of(state, credit(150))
    assert decode_state("m", without, encode_state(state)).mdi is None
    begun = decode_state("m", with_it, encode_state(new_state("m", without)))
    assert begun.mdi is not None
    assert (begun.mdi.n_observations, begun.mdi.importance) == (0, {})
    old = new_state("m", with_it).snapshot()
    del old["mdi"], old["pdp"]
    new_state("m", with_it).restore(old)


class Broken(tree.HoeffdingTreeClassifier):
    """A tree whose nodes are not those of River."""

    @property
    def _root(self) -> Any:
        return _Node()

    @_root.setter
    def _root(self, value: Any) -> None:
        pass

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        return {False: 0.5, True: 0.5}

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        pass


class _Node:
    @property
    def stats(self) -> Any:
        raise ZeroDivisionError("1234")


def test_trees_that_cannot_be_read_cost_no_observation(caplog: pytest.LogCaptureFixture) -> None:
    state = state_of(Broken(), explainers={"mdi": {}, "pfi": {}}, change=None, publish={"every": 50})
    with caplog.at_level(logging.WARNING):
        assert events_of(state, credit(200)) == []
    assert state.n_observations == 200
    assert caplog.text.count("model m: no mdi, its trees cannot be read: ZeroDivisionError") == 1
    assert "1234" not in caplog.text, "the text of somebody else's exception may hold values"


def test_it_tells_of_no_more_features_than_a_model_may_have() -> None:
    state = new_state("m", config(TREE))
    assert state.mdi is not None
    state.mdi._most = 1
    for event, decreases in events_of(state, credit(600)):
        largest = sorted(decreases.values())[-1:]
        assert [feature.importance for feature in event.features.values()] == pytest.approx(largest)
    assert len(decreases) > 1
