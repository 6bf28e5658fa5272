"""One model: what there is of it, its dead letters, its partial dependences, and what to know before it is believed."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.serve.views.model import dead_letters as counted
from attributary_agents.serve.views.model import dependences, model_view
from attributary_agents.serve.views.words import NotFoundError

from ..incidents import explanation
from .stores import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    Arrived,
    arrived,
    config_of,
    dead_letters,
    importance,
    incident,
    status,
    store_of,
)

CONFIG = config_of({"bank": {"explainers": {"sage": {"n_samples": 1}, "pfi": {"n_samples": 1}}}})


def test_a_model_has_its_explainers_in_the_configured_order_and_its_versions_the_newest_first() -> None:
    records = [
        importance("bank", NOW + i * HOUR, 100 * (i + 1), {"a": 1.0, "b": 0.5}, name, model_version=str(1 + i // 2))
        for i in range(4)
        for name in ("other", "pfi", "sage")
    ]
    told = [
        incident("bank", NOW, 90, life="over", explanation=explanation()),
        incident("bank", NOW + HOUR, 190, life="suspected"),
    ]
    with store_of(records, told, dead_letters("bank", NOW, "wrong_type", 2)) as store:
        found = model_view(store, CONFIG, "bank", now_ms=NOW + 3 * HOUR, window_ms=DAY)
    assert [one.name for one in found.explainers] == ["sage", "pfi", "other"]
    first = found.explainers[0]
    assert (first.n_events, first.first_ms, first.last_ms) == (4, NOW, NOW + 3 * HOUR)
    assert (first.first_observation, first.last_observation, first.n_features, first.alpha) == (100, 400, 2, 0.001)
    assert (first.removal, first.loss.name, first.n_observations) == ("interventional", "brier", 400)
    assert [(one.version, one.first_observation, one.last_observation) for one in found.versions] == [
        ("2", 300, 400),
        ("1", 100, 200),
    ]
    assert found.row.explainer == "sage"
    assert found.quality == ["accuracy"]
    assert found.threshold == 0.25
    assert [(one.reason, one.stage, one.n) for one in found.dead_letters] == [("wrong_type", "decode", 2)]
    assert found.notes == []
    assert found.compare is not None
    assert (found.compare.a, found.compare.b) == ("bank@#100", "bank@#400")


def test_the_guard_is_that_of_the_status() -> None:
    waits = {"name": "labels 1", "n": 6, "needed": 30}
    guard = {"since": None, "waits_for": waits, "reach": None, "sentence": "not judged yet: 6 labels 1 of 30"}
    with store_of(status("bank", NOW, guard=guard)) as store:
        found = model_view(store, CONFIG, "bank", now_ms=NOW)
    assert found.model_dump(mode="json")["guard"] == guard
    with store_of(status("bank", NOW)) as store:
        assert model_view(store, CONFIG, "bank", now_ms=NOW).guard is None


def test_the_comparison_begins_where_all_intervals_are_known() -> None:
    records = [
        importance("bank", NOW + i, i, {"a": (1.0, None if i < 5 else 0.1), "b": (1.0, None if i < 3 else 0.1)})
        for i in range(1, 9)
    ]
    with store_of(records) as store:
        found = model_view(store, CONFIG, "bank", now_ms=NOW)
        first = model_view(store_of(records[0]), CONFIG, "bank", now_ms=NOW)
    assert found.compare is not None
    assert (found.compare.a, found.compare.b) == ("bank@#5", "bank@#8")
    assert first.compare is None


def test_a_configured_model_of_which_nothing_was_said_is_shown_without_numbers() -> None:
    config = config_of(
        {"bank": {"change": {"threshold": 0.3}}, "store-*": {"mode": "unlabelled"}, "still": {"change": None}}
    )
    with store_of() as store:
        found = model_view(store, config, "bank", now_ms=NOW)
        of_template = model_view(store, config, "store-9", now_ms=NOW)
        still = model_view(store, config, "still", now_ms=NOW)
    assert (found.row.state, found.row.n_observations, found.row.top, found.explainers) == ("learning", None, [], [])
    assert (found.threshold, still.threshold) == (0.3, None)
    assert (of_template.row.template, of_template.row.mode) == ("store-*", "unlabelled")


@pytest.mark.parametrize("model_id", ["bnak", "store-*", "", "x" * 5000, "\x00\x1b"])
def test_a_model_that_nobody_knows_is_refused(model_id: str) -> None:
    with store_of(status("bank", NOW)) as store, pytest.raises(NotFoundError) as unknown:
        model_view(store, config_of({"bank": {}, "store-*": {}}), model_id, now_ms=NOW)
    assert str(unknown.value).isprintable()
    assert (unknown.value.suggestion == "bank") == (model_id == "bnak")


@pytest.mark.parametrize(
    ("fields", "notes"),
    [
        ({}, []),
        (
            {"mode": "unlabelled"},
            ["importances of the model's predictions, not of being right: its observations have no labels"],
        ),
        (
            {"mode": "mirror", "fidelity": 0.9123},
            ["of a mirror, which learns what another model predicts; fidelity: 0.912."],
        ),
        ({"mode": "mirror", "fidelity": 0.71}, ["fidelity: 0.71, which is too low to rely on what follows."]),
        ({"mode": "mirror", "fidelity": None}, ["fidelity: not known yet."]),
        ({"model_loss": 0.7}, ["The model loses more (0.7) than its mean prediction, which knows no feature (0.68)"]),
        (
            {
                "loss": "squared",
                "loss_unit": "counts, squared",
                "loss_largest": None,
                "model_loss": 9.0,
                "baseline_loss": 4.0,
            },
            ["The model loses more (3) than its mean prediction, which knows no feature (2)"],
        ),
        ({"model_loss": 0.68004}, ["The model loses as much as its mean prediction, which knows no feature (0.68)"]),
        ({"baseline_loss": 0.1, "model_loss": 0.05}, ["a (pfi): far more than a model without features loses"]),
    ],
)
def test_what_to_know_before_the_numbers_are_believed(fields: dict[str, Any], notes: list[str]) -> None:
    event = importance("bank", NOW, 100, {"a": 0.501, "b": 0.2}, **fields)
    with store_of(event) as store:
        found = model_view(store, config_of({"bank": {"mode": fields.get("mode", "labelled")}}), "bank", now_ms=NOW)
    assert len(found.notes) == len(notes)
    for note, said in zip(notes, found.notes, strict=True):
        assert note in said
    assert found.row.is_unfaithful == (fields.get("fidelity") == 0.71)


def test_a_model_that_is_refused_says_so() -> None:
    with store_of(status("bank", NOW, "refused", model_version=None, n_observations=None, n_refused=None)) as store:
        found = model_view(store, CONFIG, "bank", now_ms=NOW)
    assert found.row.state == "refused"
    assert found.notes == ["What is stored of the model is damaged: its observations become dead letters."]


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (None, "No worker has told of it. It publishes every 1 000 observations."),
        (7, "It has taken 7 observations so far. It publishes every 1 000 observations."),
        (1500, "It has taken 1 500 observations so far. It publishes every 1 000 observations. `attributary check`"),
    ],
)
def test_a_model_without_an_importance_says_how_far_it_is(n: int | None, said: str) -> None:
    told = [] if n is None else [status("bank", NOW, "learning", n_observations=n)]
    with store_of(told) as store:
        found = model_view(store, config_of({"bank": {"publish": {"every": 1000}}}), "bank", now_ms=NOW)
    assert [said in note for note in found.notes] == [True]


def test_a_model_that_fails_says_so_first() -> None:
    told = status("bank", NOW, "learning", n_observations=0, observations_per_second=0.0)
    records = [told, *dead_letters("bank", NOW, "model_failed", 30)]
    with store_of(records) as store:
        found = model_view(store, CONFIG, "bank", now_ms=NOW)
    assert found.row.is_failing
    assert found.notes[0] == "The model fails on what comes: of late its observations have become dead letters."


def test_labels_that_come_later_are_counted() -> None:
    fields = {"n_waiting": 12, "n_expired": 3, "label_delay_median_s": 86_400.5, "present_loss": 0.29}
    with store_of(importance("bank", NOW, 100, {"a": 1.0}, **fields)) as store:
        found = model_view(store, CONFIG, "bank", now_ms=NOW)
    assert found.label_delay_median_s == 86_400.5
    assert (found.row.n_waiting, found.row.n_expired, found.row.present_loss) == (12, 3, 0.29)


def test_dead_letters_are_counted_by_reason_the_most_frequent_first() -> None:
    letters = [
        *dead_letters("bank", NOW, "wrong_type", 2),
        *dead_letters("bank", NOW + 3 * HOUR, "wrong_type", 1),
        *dead_letters("bank", NOW, "model_failed", 5, "predict"),
        *dead_letters("ghost", NOW, "unknown_model", 1),
    ]
    with store_of(letters) as store:
        found = counted(store, CONFIG, "bank")
        late = counted(store, CONFIG, "bank", start_ms=NOW + 2 * HOUR)
        ghost = counted(store, CONFIG, "ghost")
        with pytest.raises(NotFoundError):
            counted(store, CONFIG, "nobody")
    assert [(one.reason, one.stage, one.n) for one in found.reasons] == [
        ("model_failed", "predict", 5),
        ("wrong_type", "decode", 3),
    ]
    assert (found.n, found.reasons[1].first_ms, found.reasons[1].last_ms) == (8, NOW, NOW + 3 * HOUR)
    assert (late.n, ghost.n) == (1, 1)


def dependence(feature: str, observation: int, **fields: Any) -> Arrived:
    event = {
        "event": "dependence",
        "model_id": "bank",
        "model_version": "1",
        "explainer": "pdp",
        "feature": feature,
        "kind": "number",
        "label": None,
        "observation": observation,
        "n_observations": observation,
        "source": {"topic": "o", "partition": 0, "offset": observation},
        "values": [0.0, 1.0],
        "mean": [0.25, 0.75],
        "half_width": [0.01, None],
        **fields,
    }
    return arrived("importance", "bank", NOW + observation, event)


def test_the_latest_partial_dependence_of_each_feature_is_shown() -> None:
    records = [
        importance("bank", NOW, 100, {"age": 1.0}),
        dependence("age", 100, mean=[0.0, 0.0]),
        dependence("age", 200),
        dependence("sector", 150, kind="category", label="yes", values=["a", "b"], mean=[0.5, None]),
    ]
    with store_of(records) as store:
        found = dependences(store, CONFIG, "bank").dependences
        one = dependences(store, CONFIG, "bank", "sector").dependences
        named = model_view(store, CONFIG, "bank", now_ms=NOW).dependences
        assert dependences(store, config_of({"quiet": {}}), "quiet").dependences == []
    age, sector = found
    assert (age.feature, age.kind, age.label, age.observation, age.time_ms) == ("age", "number", None, 200, NOW + 200)
    assert (age.values, age.mean, age.half_width) == ([0.0, 1.0], [0.25, 0.75], [0.01, None])
    assert (sector.kind, sector.label, sector.values, sector.mean) == ("category", "yes", ["a", "b"], [0.5, None])
    assert one == [sector]
    assert named == ["age", "sector"]


def test_a_model_of_which_nothing_was_said_for_ten_minutes_is_silent() -> None:
    with store_of(status("bank", NOW - 11 * MINUTE), importance("bank", NOW - 11 * MINUTE, 1, {"a": 1.0})) as store:
        assert model_view(store, CONFIG, "bank", now_ms=NOW).row.state == "silent"
        assert model_view(store, CONFIG, "bank", now_ms=NOW - 2 * MINUTE).row.state == "explained"
