"""Two moments of a model, or two models, side by side."""

from __future__ import annotations

import math

import pytest

from attributary_agents.serve.views.compare import compare, read_moment
from attributary_agents.serve.views.words import NotFoundError
from attributary_explainers.ranking import ndcg, shift

from .stores import HOUR, NOW, Arrived, config_of, importance, store_of

CONFIG = config_of({"bank": {}, "bikes": {}})
BEFORE = {"salary": (0.5, 0.03), "age": (0.2, 0.04), "zip": (0.1, None), "gone": (0.05, 0.01)}
AFTER = {"salary": (0.1, 0.04), "age": (0.25, 0.03), "zip": (0.1, 0.01), "new": (0.07, 0.01)}


def two() -> list[Arrived]:
    return [
        importance("bank", NOW, 100, BEFORE, model_loss=0.3, baseline_loss=0.6),
        importance("bank", NOW + HOUR, 200, AFTER, model_loss=0.4, baseline_loss=0.7, model_version="2"),
    ]


def test_importances_are_subtracted_with_the_error_of_the_difference() -> None:
    with store_of(two()) as store:
        found = compare(store, CONFIG, read_moment("bank@#100"), read_moment("bank@now"))
    assert found.is_same_loss
    assert found.note is None
    assert (found.a.observation, found.a.model_version, found.a.model_loss) == (100, "1", 0.3)
    assert (found.b.observation, found.b.model_version, found.b.baseline_loss) == (200, "2", 0.7)
    assert (found.a.time_ms, found.b.time_ms) == (NOW, NOW + HOUR)
    # By how much they changed; a feature that one side does not know counts as 0 in the order alone.
    assert [one.feature for one in found.features] == ["salary", "new", "age", "gone", "zip"]
    salary, new, age, gone, zip_ = found.features
    assert (salary.a, salary.b, salary.a_rank, salary.b_rank) == (0.5, 0.1, 1, 2)
    assert salary.delta == pytest.approx(-0.4)
    assert salary.delta_half_width == pytest.approx(math.hypot(0.03, 0.04))
    assert salary.a_share == pytest.approx(0.5 / 0.85, abs=1e-5)
    assert salary.b_share == pytest.approx(0.1 / 0.52, abs=1e-5)
    assert (age.delta, age.a_rank, age.b_rank) == (pytest.approx(0.05), 2, 1)
    assert (zip_.delta, zip_.delta_half_width, zip_.b_half_width) == (0.0, None, 0.01)
    assert (new.a, new.a_share, new.a_rank, new.delta, new.b) == (None, None, None, None, 0.07)
    assert (gone.b, gone.b_share, gone.b_rank, gone.delta, gone.a) == (None, None, None, None, 0.05)
    plain = [{name: value for name, (value, _) in side.items()} for side in (BEFORE, AFTER)]
    assert found.shift == pytest.approx(shift(*plain), rel=1e-5)
    assert found.ndcg == pytest.approx(ndcg(*plain), rel=1e-5)


@pytest.mark.parametrize(
    ("moment", "observation"),
    [
        ("bank@now", 200),
        ("bank@#150", 100),
        ("bank@#200", 200),
        ("bank@#5", 100),  # all are later: the first
        ("bank@2026-09-21T14:13:20Z", 100),  # NOW
        ("bank@2026-09-21T15:13:19Z", 100),
        ("bank@2026-09-21T15:13:20", 200),
    ],
)
def test_a_side_is_the_last_event_up_to_its_moment(moment: str, observation: int) -> None:
    with store_of(two()) as store:
        found = compare(store, CONFIG, read_moment(moment), read_moment("bank@now"))
    assert found.a.observation == observation


def test_one_event_with_itself() -> None:
    with store_of(two()) as store:
        found = compare(store, CONFIG, read_moment("bank"), read_moment("bank@now"))
    assert found.note == "Both sides are the same event."
    assert (found.shift, found.ndcg) == (0.0, 1.0)
    assert {one.delta for one in found.features} == {0.0}


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        (
            {"loss": "log_loss", "loss_unit": "nats"},
            "The losses differ (brier and log_loss): only shares and ranks are compared.",
        ),
        (
            {"removal": "observational"},
            "Features are removed in different ways (interventional and observational): only shares and ranks are "
            "compared.",
        ),
        (
            {"explainer": "sage", "loss": "log_loss", "loss_unit": "nats"},
            "The losses differ (brier and log_loss) and the explainers differ (pfi and sage): only shares "
            "and ranks are compared.",
        ),
    ],
)
def test_what_is_not_of_one_kind_is_compared_by_shares_and_ranks_alone(fields: dict[str, str], note: str) -> None:
    other = importance("bikes", NOW, 50, {"salary": (40.0, 1.0), "age": (60.0, 1.0)}, **fields)  # type: ignore[arg-type]
    with store_of(two(), other) as store:
        found = compare(store, CONFIG, read_moment("bank@now"), read_moment("bikes@now"))
    assert found.note == note
    assert found.is_same_loss == ("loss" not in fields)
    assert {(one.delta, one.delta_half_width) for one in found.features} == {(None, None)}
    by_name = {one.feature: one for one in found.features}
    assert (by_name["age"].b_share, by_name["age"].b_rank) == (0.6, 1)
    by_share = [abs((one.b_share or 0.0) - (one.a_share or 0.0)) for one in found.features]
    assert by_share == sorted(by_share, reverse=True)


def test_squared_losses_of_two_targets_are_doubted() -> None:
    fields = {"loss": "squared", "loss_unit": "unit of the target, squared", "loss_largest": None}
    records = [importance(model_id, NOW, 10, {"x": (1e12, 1e9)}, **fields) for model_id in ("bank", "bikes")]
    with store_of(records) as store:
        found = compare(store, CONFIG, read_moment("bank"), read_moment("bikes"))
    assert found.note is not None
    assert "only if both models predict the same target" in found.note
    assert found.features[0].delta == 0.0


def test_importances_of_predictions_are_told_from_those_of_being_right() -> None:
    with store_of(two(), importance("bikes", NOW, 10, {"age": 1.0}, mode="unlabelled")) as store:
        found = compare(store, CONFIG, read_moment("bank"), read_moment("bikes"))
    assert found.note == (
        "The importances of bank are of being right, those of bikes of its own predictions, and not of being right."
    )


def test_the_first_configured_explainer_that_both_have_is_compared() -> None:
    both = {"explainers": {"sage": {"n_samples": 1}, "pfi": {"n_samples": 1}}}
    config = config_of({"bank": both, "bikes": {}})
    records = [importance("bank", NOW, 10, {"a": 1.0}, name) for name in ("pfi", "sage")]
    with store_of(records, importance("bikes", NOW, 10, {"a": 1.0})) as store:
        one = compare(store, config, read_moment("bank"), read_moment("bank"))
        two_models = compare(store, config, read_moment("bank"), read_moment("bikes"))
        asked = compare(store, config, read_moment("bank"), read_moment("bank"), "pfi")
        with pytest.raises(NotFoundError, match="No explainer 'sage'"):
            compare(store, config, read_moment("bank"), read_moment("bikes"), "sage")
        with pytest.raises(NotFoundError, match=r"No model 'bnak'\. Did you mean 'bank'"):
            compare(store, config, read_moment("bank"), read_moment("bnak"))
    assert [found.a.explainer for found in (one, two_models, asked)] == ["sage", "pfi", "pfi"]


def test_nothing_that_is_known_gives_no_figure() -> None:
    records = [importance("bank", NOW + i, i, {"a": (None, None), "b": (float("nan"), None)}) for i in (1, 2)]
    with store_of(records) as store:
        found = compare(store, CONFIG, read_moment("bank@#1"), read_moment("bank@#2"))
    assert (found.shift, found.ndcg) == (None, None)
    assert {(one.a, one.delta, one.a_share, one.a_rank) for one in found.features} == {(None, None, None, None)}
