"""`explain_many` is the loop that everyone writes: predict, explain, learn."""

from __future__ import annotations

import io
import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from river import tree
from sklearn.linear_model import LogisticRegression

import attributary_explainers as ae

from . import objects


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("name", objects.EXPLAINERS)
@pytest.mark.share(2, "name", "learn")
def test_it_is_the_loop(name, learn):
    pairs = objects.stream(100)
    looped, many = objects.EXPLAINERS[name](objects.model()), objects.EXPLAINERS[name](objects.model())
    if not learn:
        for explainer in (looped, many):
            for x, y in objects.stream(60, seed=9):
                explainer.model.learn_one(x, y)
    objects.feed(looped, pairs, learn=learn)
    assert many.explain_many(pairs, learn=learn, progress=False) is many
    assert repr(many.explain_one(*pairs[0])) == repr(looped.explain_one(*pairs[0]))


@pytest.mark.parametrize(
    "given",
    [
        lambda X, y: {"X": X, "y": y},
        lambda X, y: {"X": X.to_numpy(), "y": y.to_numpy(), "feature_names": list(X.columns)},
        lambda X, y: {"X": X.to_dict("records"), "y": y.tolist()},
        lambda X, y: {"X": zip(X.to_dict("records"), y.tolist(), strict=True)},
    ],
)
def test_it_takes_frames_arrays_and_iterables(given):
    pairs = objects.stream(80)
    X, y = pd.DataFrame([x for x, _ in pairs]), pd.Series([y for _, y in pairs])
    expected = ae.IncrementalPFI(objects.model(), seed=1).explain_many(pairs, learn=True)
    found = ae.IncrementalPFI(objects.model(), seed=1).explain_many(**given(X, y), learn=True)
    assert found.importance == expected.importance != {}


def test_a_model_that_cannot_learn_is_said_before_anything_is_explained():
    pfi = ae.IncrementalPFI(LogisticRegression().fit(np.eye(2), [0, 1]), seed=1)
    with pytest.raises(ae.InvalidParameterError, match="learn must be False for a LogisticRegression"):
        pfi.explain_many([({"a": 1.0, "b": 0.0}, 0)], learn=True)
    assert pfi.n_skipped == 0


def test_an_endless_stream_is_stopped_and_kept():
    def endless():
        for n, pair in enumerate(itertools.cycle(objects.stream(10))):
            if n == 50:
                raise KeyboardInterrupt
            yield pair

    pfi = ae.IncrementalPFI(tree.HoeffdingTreeClassifier(), seed=1)
    with pytest.raises(KeyboardInterrupt):
        pfi.explain_many(endless(), learn=True)
    assert pfi.n_observations + pfi.n_skipped == 50


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "shown"),
    [(Terminal, None, True), (io.StringIO, None, False), (Terminal, False, False), (io.StringIO, True, True)],
)
def test_a_bar_is_shown_where_someone_looks(monkeypatch, stream, progress, shown):
    out, err = stream(), stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    ae.IncrementalPFI(objects.model(), seed=1).explain_many(objects.stream(20), learn=True, progress=progress)
    assert ("IncrementalPFI" in err.getvalue()) is shown
    assert out.getvalue() == ""


@pytest.mark.parametrize("missing", ["absent", "skip", {"channel": "b"}])
def test_the_model_learns_what_it_was_asked_where_values_are_missing(missing):
    pd = pytest.importorskip("pandas")
    nan = float("nan")
    X = pd.DataFrame({"amount": [1.0, nan, 3.0] * 100, "channel": ["a", "b", nan] * 100})
    y = ["ok", "fraud", "ok"] * 100
    model = tree.HoeffdingTreeClassifier(grace_period=20)  # compares the categories that it meets
    pfi = ae.IncrementalPFI(model, missing=missing, seed=1).explain_many(X, y, learn=True, progress=False)
    assert pfi.n_observations > (90 if missing == "skip" else 280)
    assert model.summary["total_observed_weight"] == 300


def test_a_label_that_is_nan_is_none():
    pfi = ae.IncrementalPFI(objects.model(), seed=1)
    pfi.explain_many(objects.stream(20), learn=True, progress=False)
    before = pfi.n_observations
    with pytest.raises(ae.LabelError, match="it is NaN"):
        pfi.explain_one(next(iter(objects.stream(1)))[0], float("nan"))
    assert pfi.n_observations == before
