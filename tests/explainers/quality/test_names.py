"""Names of metrics, and which of them fit a model."""

from __future__ import annotations

import re

import pytest
from river import metrics

from attributary_explainers import QUALITY_NAMES, InvalidParameterError, as_loss, known_metric, quality_metrics
from attributary_explainers.quality.names import ALIASES, METRICS


def test_names_are_river_s_in_snake_case() -> None:
    acronyms = {"F1", "MAE", "MAPE", "MCC", "MSE", "R2", "RMSE", "SMAPE"}
    for name, metric in METRICS.items():
        river = metric.make.__name__
        snake = river.lower() if river in acronyms else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", river).lower()
        assert name == {"rocauc": "roc_auc"}.get(snake, snake)
        assert issubclass(metric.make, metrics.base.Metric)
        assert metric.make().works_with_weights


def test_what_a_metric_reads_is_what_river_says() -> None:
    for name, metric in METRICS.items():
        made = metric.make()
        if metric.reads == "number":
            assert isinstance(made, metrics.base.RegressionMetric), name
            continue
        assert made.requires_labels == ("label" in metric.reads), name
        assert isinstance(made, metrics.base.BinaryMetric) == metric.reads.startswith("two"), name


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_names_of_metrics(alias: str) -> None:
    assert known_metric(alias) in QUALITY_NAMES
    assert known_metric(alias.upper()) == known_metric(alias)


@pytest.mark.parametrize(
    ("wrong", "right"), [("acuracy", "accuracy"), ("roc-auc", "roc_auc"), ("F1 macro", "macro_f1"), ("r_2", "r2")]
)
def test_an_unknown_name_is_told_the_nearest_and_all(wrong: str, right: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"got '{wrong}': did you mean '{right}'\?") as raised:
        known_metric(wrong)
    assert ", ".join(QUALITY_NAMES) in str(raised.value)


def test_a_name_like_none_has_no_guess() -> None:
    with pytest.raises(InvalidParameterError) as raised:
        known_metric("zzz")
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("brier", ("accuracy", "roc_auc")),
        ("cross_entropy", ("accuracy", "roc_auc")),
        ("zero_one", ("accuracy",)),
        ("expected_zero_one", ("accuracy",)),
        ("squared", ("mae", "r2")),
        ("absolute", ("mae", "r2")),
        ("score", ()),
    ],
)
def test_without_names_they_fit_what_the_loss_reads(loss: str, names: tuple[str, ...]) -> None:
    assert quality_metrics(None, as_loss(loss)) == names
    assert quality_metrics(names, as_loss(loss)) == names
    assert quality_metrics([], as_loss(loss)) == ()


@pytest.mark.parametrize(
    ("given", "published"),
    [
        ("Precision_at_1.0%", "precision_at_1%"),
        (" recall_at_0.90", "recall_at_0.9"),
        ("recall_at_100%", "recall_at_100%"),
    ],
)
def test_precision_and_recall_are_named_at_a_rate_or_at_a_threshold(given: str, published: str) -> None:
    assert known_metric(given) == known_metric(published) == published
    assert quality_metrics([given], as_loss("brier")) == (published,)
    with pytest.raises(InvalidParameterError, match="which needs probabilities"):
        quality_metrics([given], as_loss("zero_one"))


@pytest.mark.parametrize("wrong", ["precision_at_0%", "recall_at_0", "recall_at_900", "f1_at_1%", "recall_at_101%"])
def test_what_is_no_rate_and_no_threshold_is_refused_with_how_to_write_one(wrong: str) -> None:
    with pytest.raises(InvalidParameterError, match="and precision or recall as precision_at_1%"):
        known_metric(wrong)


@pytest.mark.parametrize(("wrong", "rate"), [("precision_at_1", "precision_at_1%"), ("recall_at_5.0", "recall_at_5%")])
def test_a_per_cent_sign_that_was_forgotten_is_said_with_both_ways_to_write_it(wrong: str, rate: str) -> None:
    metric = rate.split("_")[0]
    with pytest.raises(InvalidParameterError) as error:
        known_metric(wrong)
    assert str(error.value) == (
        f"quality must be {rate}, of so many per cent with the highest scores, or a probability below 1, as "
        f"{metric}_at_0.9, got {wrong!r}"
    )


def test_names_are_published_once_and_in_order() -> None:
    assert quality_metrics(["AUC", "f1_macro", "roc_auc", "macro_f1"], as_loss("brier")) == ("roc_auc", "macro_f1")


@pytest.mark.parametrize(
    ("loss", "name", "remedy"),
    [
        ("brier", "mae", r"of the metrics for a model that predicts classes \(accuracy, .*\), which mae is not"),
        ("squared", "f1", r"of the metrics for a model that predicts a number \(mae, .*\), which f1 is not"),
        ("zero_one", "roc_auc", r"needs probabilities, .* set loss to brier or cross_entropy, .*accuracy"),
        ("zero_one", "mae", r"predicts classes \(accuracy"),
        ("score", "roc_auc", r"empty for a model that predicts a score"),
    ],
)
def test_a_metric_that_does_not_fit_is_refused_with_the_remedy(loss: str, name: str, remedy: str) -> None:
    with pytest.raises(InvalidParameterError, match=remedy):
        quality_metrics([name], as_loss(loss))
