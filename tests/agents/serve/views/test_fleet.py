"""How the fleet is doing: the sentence, the order of attention, and each model's row, of hand-written events."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.serve.views.fleet import fleet, row

from .stores import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    Arrived,
    config_of,
    dead_letters,
    importance,
    incident,
    status,
    store_of,
)

SIX = ("bank", "bikes", "clicks", "fraud-a", "letters", "wide")


STUCK = {"observations_per_second": 0.0}


def steady(model_id: str, ago_ms: int = MINUTE, **fields: Any) -> list[Arrived]:
    """A model with one importance event and a status, of which nothing else is known."""
    return [
        importance(model_id, NOW - ago_ms, 1000, {"a": (0.3, 0.02), "b": (0.1, 0.01)}, **fields),
        status(model_id, NOW - ago_ms),
    ]


def told(*records: Any, models: tuple[str, ...] = SIX, window_ms: int | None = DAY, **settings: Any) -> str:
    known = config_of({model_id: settings.get(model_id, {}) for model_id in models})
    with store_of(*records) as store:
        return fleet(store, known, now_ms=NOW, window_ms=window_ms).sentence


def test_the_sentence_is_the_headline_of_what_is_open_and_bad() -> None:
    records = [steady(model_id) for model_id in SIX if model_id != "bikes"]
    late = steady("bikes", n_waiting=3120, n_expired=5, label_delay_median_s=60.0)
    assert told(*records, late, incident("bank", NOW - 12 * MINUTE, 5543)) == (
        "bank is worse, began 12 minutes ago · 1 waits for labels · 0 dead letters"
    )


def test_the_sentence_says_that_nothing_is_wrong() -> None:
    assert told(*map(steady, SIX)) == "Nothing is wrong: none of 6 models has an incident · 0 dead letters"


def test_the_sentence_of_one_model_has_its_name() -> None:
    assert told(steady("bank"), models=("bank",)) == "Nothing is wrong: bank has no incident · 0 dead letters"
    begun = incident("bank", None, 900)
    assert told(steady("bank"), begun, models=("bank",)) == ("bank is worse, began at observation 900 · 0 dead letters")


def test_the_sentence_before_there_is_anything() -> None:
    assert told(models=("bank",)) == "No model has published anything yet · 0 dead letters"


def test_the_sentence_names_the_worst_of_several_and_counts_what_else_there_is() -> None:
    records = [*map(steady, ("bank", "bikes", "wide")), steady("clicks", 3 * HOUR), status("letters", NOW, "learning")]
    found = [
        incident("bikes", NOW - 2 * HOUR, 500, what="inputs"),
        incident("bank", NOW - 5 * MINUTE, 900, severity="warning"),
        incident("wide", NOW - 4 * MINUTE, 990, life="suspected", severity="warning"),
    ]
    letters = dead_letters("bank", NOW - HOUR, "wrong_type", 3)
    assert told(*records, *found, letters) == (
        "2 of 5 models have an incident, first: bikes is inputs, began 2 hours ago · 1 incident is being confirmed · "
        "1 is silent · 1 is still learning · 1 configured model has not said anything yet · 3 dead letters"
    )


def test_models_that_changed_together_are_one_head() -> None:
    ids = [f"store-{i}" for i in range(8)]
    records = [*(steady(one) for one in ids), *(incident(one, NOW - MINUTE, 900, what="changed") for one in ids)]
    with store_of(*records) as store:
        found = fleet(store, config_of({"store-*": {}}), now_ms=NOW, window_ms=DAY)
    assert found.sentence.startswith("8 stores changed together: age, began 1 minute ago · ")
    (line,) = found.incidents
    assert (line.headline, line.feature, line.n, len(line.incidents)) == ("8 stores changed together", "age", 8, 8)


def test_a_refused_model_comes_before_everything_else() -> None:
    records = [steady("bank"), status("bikes", NOW, "refused", model_version=None, n_observations=None)]
    assert told(*records, incident("bank", NOW - MINUTE, 900), models=("bank", "bikes")) == (
        "1 of 2 models is refused, its stored state is damaged: bikes · bank is worse, began 1 minute ago · "
        "0 dead letters"
    )


def test_what_is_being_confirmed_is_no_head_and_what_is_over_is_none_at_all() -> None:
    said = "Nothing is wrong: none of 6 models has an incident"
    maybe = incident("bank", NOW - HOUR, 800, "a", life="suspected", severity="warning")
    assert told(*map(steady, SIX), maybe) == f"{said} · 1 incident is being confirmed · 0 dead letters"
    for life in ("withdrawn", "over"):
        assert told(*map(steady, SIX), maybe, incident("bank", NOW - HOUR, 800, "a", 2, life=life)) == (
            f"{said} · 0 dead letters"
        )
    harmless = incident("bank", NOW - HOUR, 800, "a", 2, severity="info")
    assert told(*map(steady, SIX), maybe, harmless) == f"{said} · 0 dead letters"


def test_an_incident_counts_for_as_long_as_it_is_open() -> None:
    old = incident("bank", NOW - 3 * DAY, 900)
    assert told(*map(steady, SIX), old) == "bank is worse, began 3 days ago · 0 dead letters"


def test_incidents_that_are_over_fill_the_list_up_and_those_that_are_open_are_all_in_it() -> None:
    over = [incident("bank", NOW - i * HOUR, 100 + i, life="over") for i in range(1, 30)]
    some = [incident(f"m{i}", NOW - i * HOUR, 100, what=f"w{i}") for i in range(4)]
    many = [incident(f"m{i}", NOW - i * HOUR, 100, what=f"w{i}") for i in range(14)]
    for is_open, lines in ((some, 10), (many, 14)):
        with store_of(steady("bank"), over, is_open) as store:
            found = fleet(store, config_of({"bank": {}}), now_ms=NOW)
        assert len(found.incidents) == lines
        assert [one.standing for one in found.incidents][: len(is_open)] == ["bad"] * len(is_open)
        assert found.n_incidents == len(is_open)


def test_nothing_is_not_called_right_where_no_worker_says_anything() -> None:
    assert told(*(steady(model_id, 3 * HOUR) for model_id in SIX)) == (
        "Nothing was heard of any model for 3 hours; none of 6 models has an incident · 0 dead letters"
    )


def test_models_are_in_the_order_of_attention() -> None:
    config = config_of(
        {
            **{name: {} for name in ("calm", "moving", "warned", "worse", "silent", "suspected")},
            **{name: {} for name in ("failing", "refused", "learning")},
            "mirror": {"mode": "mirror", "fidelity": 0.8},
        }
    )
    failures = [*dead_letters("failing", NOW - 20_000, "model_failed", 20, "predict"), status("failing", NOW, **STUCK)]
    store = store_of(
        steady("calm", shift=0.01),
        steady("moving", shift=0.3),
        steady("warned", shift=0.9),
        steady("worse"),
        steady("silent", HOUR),
        steady("suspected"),
        steady("failing"),
        steady("mirror", mode="mirror", fidelity=0.71),
        status("refused", NOW, "refused"),
        status("learning", NOW, "learning"),
        incident("warned", NOW - MINUTE, 700, severity="warning"),
        incident("worse", NOW - HOUR, 800),
        incident("suspected", NOW - MINUTE, 800, life="suspected", severity="warning"),
        incident("moving", NOW - MINUTE, 800, life="over"),
        failures,
    )
    with store:
        found = fleet(store, config, now_ms=NOW, window_ms=DAY)
    assert [(one.model_id, one.state) for one in found.models] == [
        ("failing", "explained"),
        ("refused", "refused"),
        ("worse", "incident"),
        ("warned", "incident"),
        ("suspected", "suspected"),
        ("mirror", "explained"),
        ("silent", "silent"),
        ("learning", "learning"),
        ("moving", "explained"),
        ("calm", "explained"),
    ]
    assert found.is_wrong
    assert (found.n_incidents, found.n_refused, found.n_models, found.n_dead_letters) == (2, 1, 10, 20)
    assert found.sentence == (
        "1 of 10 models is refused, its stored state is damaged: refused · 1 of 10 models fails on what comes: "
        "failing · 2 of 10 models have an incident, first: worse is worse, began 60 minutes ago · 1 incident is "
        "being confirmed · 1 mirror is not faithful · 1 is silent · 1 is still learning · 20 dead letters"
    )


@pytest.mark.parametrize(
    ("reason", "n", "ago_ms", "per_second", "is_failing"),
    [
        ("model_failed", 20, 20_000, 0.0, True),
        ("prediction_not_finite", 20, 20_000, None, True),
        ("model_failed", 20, 20_000, 3.0, False),  # it takes others
        ("model_failed", 19, 20_000, 0.0, False),
        ("model_failed", 20, HOUR, 0.0, False),  # explained since
        ("wrong_type", 20, 20_000, 0.0, False),  # the records' fault
    ],
)
def test_a_model_fails_where_of_late_there_are_nothing_but_its_failures(
    reason: str, n: int, ago_ms: int, per_second: float | None, is_failing: bool
) -> None:
    stuck = status("bank", NOW, observations_per_second=per_second)
    with store_of(steady("bank"), stuck, dead_letters("bank", NOW - ago_ms, reason, n)) as store:
        found = fleet(store, config_of({"bank": {}}), now_ms=NOW, window_ms=DAY)
    assert (found.models[0].is_failing, found.is_wrong) == (is_failing, is_failing)
    assert found.models[0].n_dead_letters == n


def test_a_row_has_the_numbers_of_the_latest_events() -> None:
    config = config_of(
        {"bikes": {}},
        sources={"rides": {"topic": "rides", "model": "bikes", "id": "id"}},
        labels={
            "counts": {"topic": "counts", "model": "bikes", "id": "id", "y": "y", "ttl": "1h", "max_waiting": 10_000}
        },
    )
    features = {"hour": (1.0e6, 2.0e5), "temp": (0.6e6, None), "wind": (None, None), **{f"f{i}": 0.0 for i in range(5)}}
    losses = {"loss": "squared", "loss_unit": "unit of the target, squared", "loss_largest": None}
    store = store_of(
        importance("bikes", NOW - 2 * HOUR, 500, {"hour": 1.0}, shift=None),
        importance("bikes", NOW - HOUR, 1000, {"hour": 1.0}, shift=0.25),
        importance(
            "bikes",
            NOW - MINUTE,
            1500,
            features,
            **losses,
            model_loss=38.25,
            baseline_loss=96.5,
            present_loss=37.0,
            shift=0.5,
            n_waiting=3000,
            n_expired=5,
            label_delay_median_s=61.5,
        ),
        status("bikes", NOW, n_observations=1510, n_waiting=3120, n_expired=6, n_refused=7),
        incident("bikes", NOW - 3 * HOUR, 300, "last", life="over"),
        incident("bikes", NOW - 2 * HOUR, 400, "chance", life="withdrawn"),
        dead_letters("bikes", NOW - HOUR, "wrong_type", 2),
        dead_letters("bikes", NOW - 2 * DAY, "wrong_type", 4),
    )
    with store:
        found = row(store, config, "bikes", now_ms=NOW, window_ms=DAY)
        alone = fleet(store, config, now_ms=NOW, window_ms=DAY).models
    assert alone == [found]
    assert (found.state, found.mode, found.version, found.template) == ("explained", "labelled", "1", None)
    assert (found.n_observations, found.observations_per_second) == (1510, 42.0)
    assert found.loss is not None
    assert found.loss.text == "squared loss: unit of the target, squared"
    assert (found.model_loss, found.baseline_loss, found.present_loss, found.shift) == (38.25, 96.5, 37.0, 0.5)
    assert found.shifts[-1] == 0.5
    assert (found.n_waiting, found.waiting_limit, found.n_expired, found.n_refused) == (3120, 10_000, 6, 7)
    assert found.n_dead_letters == 2
    assert found.incident is not None
    assert found.incident.id == "last"
    assert found.last_event_ms == NOW
    assert (found.explainer, found.n_features) == ("pfi", 8)
    first = found.top[0]
    assert (first.feature, first.importance, first.half_width, first.rank) == ("hour", 1.0e6, 2.0e5, 1)
    assert first.share == pytest.approx(0.625)
    assert len(found.top) == 5
    assert found.top[1].half_width is None


def test_the_first_configured_explainer_is_shown() -> None:
    both = {"sage": {"n_samples": 1}, "pfi": {"n_samples": 1}}
    records = [importance("bank", NOW, 100, {"a": value}, name) for name, value in (("pfi", 0.5), ("sage", 0.25))]
    with store_of(*records) as store:
        chosen = [
            fleet(store, config_of({"bank": {"explainers": explainers}}), now_ms=NOW).models[0].explainer
            for explainers in (both, dict(reversed(both.items())))
        ]
        unknown = fleet(store, config_of({"other": {}}), now_ms=NOW).models[0]
    assert chosen == ["sage", "pfi"]
    assert (unknown.model_id, unknown.explainer, unknown.mode) == ("bank", "pfi", "labelled")


def test_models_without_a_word_are_named_with_what_they_wait_for() -> None:
    config = config_of({"bank": {}, "quiet": {"publish": {"every": 50}}, "store-*": {}})
    with store_of(steady("bank")) as store:
        found = fleet(store, config, now_ms=NOW)
    assert [(one.model_id, one.every) for one in found.configured] == [("quiet", 50), ("store-*", 500)]
    assert found.sentence.endswith("1 configured model has not said anything yet · 0 dead letters")


def test_dead_letters_of_ids_that_nobody_knows_make_no_models_and_are_counted() -> None:
    letters = [*dead_letters("debit", NOW, "unknown_model", 3), *dead_letters("", NOW, "missing_model_id", 2)]
    with store_of(steady("bank"), letters) as store:
        found = fleet(store, config_of({"bank": {}}), now_ms=NOW, window_ms=DAY)
    assert [one.model_id for one in found.models] == ["bank"]
    assert found.n_dead_letters == 5


def test_of_a_template_those_are_listed_that_need_attention_and_a_search_finds_all() -> None:
    config = config_of({"bank": {}, "store-*": {}})
    ids = [f"store-{i}" for i in range(12)]
    records = [steady(model_id, shift=i / 100) for i, model_id in enumerate(ids)]
    with store_of(*records, steady("bank"), incident("store-3", NOW - MINUTE, 900)) as store:
        shown = fleet(store, config, now_ms=NOW, window_ms=DAY)
        found = fleet(store, config, now_ms=NOW, window_ms=DAY, query="STORE-1")
        glob = fleet(store, config, now_ms=NOW, window_ms=DAY, query="store-*", offset=10, limit=50)
        nothing = fleet(store, config, now_ms=NOW, window_ms=DAY, query="store-[!0]")
    assert [one.model_id for one in shown.models] == ["store-3", "store-11", "store-10", "store-9", "store-8", "bank"]
    assert (shown.n_found, shown.n_models, shown.n_incidents) == (6, 13, 1)
    assert shown.models[0].template == "store-*"
    assert [(one.template, one.n_models, one.n_incidents) for one in shown.templates] == [("store-*", 12, 1)]
    assert {one.model_id for one in found.models} == {"store-1", "store-10", "store-11"}
    assert (glob.n_found, glob.offset, [one.model_id for one in glob.models]) == (12, 10, ["store-1", "store-0"])
    assert (nothing.n_found, nothing.models, nothing.n_models) == (0, [], 13)


def test_a_model_of_a_template_may_rest() -> None:
    config = config_of({"store-*": {"idle": "2h"}})
    with store_of(steady("store-1", HOUR), steady("store-2", 3 * HOUR)) as store:
        found = fleet(store, config, now_ms=NOW)
    assert [(one.model_id, one.state) for one in found.models] == [("store-2", "silent"), ("store-1", "explained")]


@pytest.mark.parametrize(
    "model_id", ["a/b c%20d", "größe 模型 🚀", "<script>alert(1)</script>", "quote\"'", "x" * 249, "dots.-_"]
)
def test_ids_of_any_kind_have_a_row_and_stand_in_the_sentence_without_harm(model_id: str) -> None:
    with store_of(steady(model_id), incident(model_id, NOW - MINUTE, 900)) as store:
        found = fleet(store, config_of({"bank": {}}), now_ms=NOW, window_ms=DAY)
    assert [one.model_id for one in found.models] == [model_id]
    assert found.models[0].incident is not None
    assert len(found.sentence) < 250
    assert found.sentence.isprintable()


def test_a_page_of_ten_thousand_models_is_made_of_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the store grows with the rows of the page, not with the models."""
    config = config_of({"store-*": {}})
    with store_of(*(status(f"store-{i:04}", NOW - MINUTE, n_observations=i) for i in range(2000))) as store:
        asked: list[str] = []
        for name in ("incidents", "recent", "dead_letters", "n_incidents", "model", "window", "snapshot"):
            original = getattr(store, name)
            monkeypatch.setattr(
                store,
                name,
                lambda *args, _name=name, _original=original, **kw: asked.append(_name) or _original(*args, **kw),
            )
        found = fleet(store, config, now_ms=NOW, query="store", limit=10)
    assert (found.n_models, found.n_found, len(found.models)) == (2000, 2000, 10)
    assert len(asked) < 50
