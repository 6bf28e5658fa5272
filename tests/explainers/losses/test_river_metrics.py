"""Metrics of River as losses: the mean of the losses of rows is the metric, by River's own class."""

from __future__ import annotations

import math
import pickle
import random

import pytest
from river import linear_model, metrics, stats

import attributary_explainers as ae


class Pinball(metrics.base.MeanMetric, metrics.base.RegressionMetric):
    """A metric of the user's own."""

    def _eval(self, y_true, y_pred):
        return max(0.9 * (y_true - y_pred), -0.1 * (y_true - y_pred))


class Wrong(metrics.base.MeanMetric, metrics.base.MultiClassMetric):
    """A metric of the user's own, of labels."""

    @property
    def bigger_is_better(self):
        return False

    def _eval(self, y_true, y_pred):
        return float(y_true != y_pred)


NUMBERS = [metrics.MAE, metrics.MSE, metrics.MAPE, metrics.SMAPE, Pinball]


@pytest.mark.parametrize("kind", NUMBERS)
def test_the_mean_over_rows_is_the_metric(kind):
    rng, metric, mean = random.Random(1), kind(), stats.Mean()
    loss = ae.as_loss(kind())
    assert loss.output == "number"
    for _ in range(200):
        y, prediction = rng.uniform(1.0, 9.0), rng.uniform(1.0, 9.0)
        metric.update(y, prediction)
        mean.update(loss(y, prediction))
    assert math.isclose(mean.get(), metric.get(), rel_tol=1e-12)


@pytest.mark.parametrize("kind", [metrics.LogLoss, metrics.CrossEntropy])
def test_the_mean_over_probabilities_is_the_metric(kind):
    rng, metric, mean = random.Random(1), kind(), stats.Mean()
    loss = ae.as_loss(kind())
    assert loss.name == "cross_entropy"
    for _ in range(200):
        y, p = rng.random() < 0.5, rng.uniform(0.01, 0.99)
        metric.update(y, {True: p, False: 1.0 - p})
        mean.update(loss(y, {True: p, False: 1.0 - p}))
    assert math.isclose(mean.get(), metric.get(), rel_tol=1e-9)


def test_a_metric_of_labels_reads_the_label():
    loss = ae.as_loss(Wrong())
    assert (loss.name, loss.output) == ("Wrong", "label")
    assert (loss("a", {"a": 1.0}), loss("a", {"b": 1.0})) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "remedy"),
    [
        (metrics.Accuracy(), "zero_one, which is 1 - accuracy"),
        (metrics.ROCAUC(), "brier or cross_entropy"),
        (metrics.F1(), "zero_one, brier or cross_entropy"),
        (metrics.RMSE(), "metrics.MSE"),
        (metrics.RMSLE(), "metrics.MSE|absolute or squared"),
        (metrics.R2(), "metrics.MSE"),
        (metrics.ConfusionMatrix(), "zero_one, brier"),
        (metrics.MacroF1(), "zero_one, brier"),
        (metrics.MAE, "an instance, as MAE\\(\\)"),
    ],
)
def test_what_is_no_loss_is_refused_with_the_remedy(metric, remedy):
    with pytest.raises(ae.InvalidParameterError, match=remedy):
        ae.IncrementalPFI(linear_model.LinearRegression(), loss=metric)


@pytest.mark.parametrize(("metric", "name"), [(metrics.MAE(), "absolute"), (metrics.MSE(), "squared")])
def test_an_explainer_by_a_metric_is_the_one_by_the_loss_of_that_name(metric, name):
    explainers = [ae.IncrementalPFI(lambda x: x["a"], loss=loss, seed=1) for loss in (metric, name)]
    for explainer in explainers:
        explainer.explain_many([{"a": a, "b": a % 3} for a in range(50)], range(50))
    assert explainers[0].importance == explainers[1].importance
    assert metric.get() == 0.0  # the metric is not changed


def test_an_explainer_by_a_metric_of_its_own_is_restored_and_pickled():
    pfi = ae.IncrementalPFI(linear_model.LinearRegression(), loss=metrics.MAPE(), seed=1)
    pfi.explain_many([{"a": a, "b": a % 3} for a in range(1, 50)], range(1, 50), learn=True)
    again = ae.IncrementalPFI.from_snapshot(pfi.snapshot(), pfi.model, loss=metrics.MAPE())
    pickled = pickle.loads(pickle.dumps(pfi))
    told = pfi.explain_one({"a": 3, "b": 1}, 4)
    assert again.explain_one({"a": 3, "b": 1}, 4) == told == pickled.explain_one({"a": 3, "b": 1}, 4)
