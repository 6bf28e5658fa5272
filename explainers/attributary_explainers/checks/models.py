"""Checks that an explainer only asks the model, and takes any answer."""

from __future__ import annotations

import math
from typing import Any

from ..models.function import model_function
from ..pickling import dump_model
from .subject import Subject, all_finite, as_text, ask, expect, expect_equal, explain, learn


def model_unchanged(subject: Subject) -> None:
    """Explaining leaves the model's bytes as they were: it never learns.

    It has predicted all observations before, as some of River's transformers note what they are asked about.
    """
    for n_learnt in (0, None):
        explainer, model = subject.new(n_learnt)
        for x, _ in subject.stream:
            ask(model, x)
        before = dump_model(model)
        explain(explainer, subject.stream)
        expect(dump_model(model) == before, "the model's pickled bytes to stay as they are", "other bytes")


def model_not_learnt(subject: Subject) -> None:
    """A model that has not learnt yet is no error: observations count."""
    explainer, model = subject.new(0)
    third = len(subject.stream) // 3
    for x, result in explain(explainer, subject.stream[:third]):
        expect(all_finite(result), f"finite results after {dict(x)!r}", result)
    for x, y in subject.stream[:third]:
        learn(model, x, y)
    before = explainer.n_observations
    results = explain(explainer, subject.stream[third:])
    expect(explainer.n_observations > before, "observations to be explained once the model has learnt", "none was")
    expect(all_finite(results[-1][1]), "finite results once the model has learnt", results[-1][1])


def model_predicts_nothing(subject: Subject) -> None:
    """A prediction of None skips the observation, and results stay."""
    _broken(subject, "nothing")


def model_predicts_nan(subject: Subject) -> None:
    """A prediction of NaN skips the observation, and results stay."""
    _broken(subject, "nan")


def model_predicts_infinity(subject: Subject) -> None:
    """An infinite prediction skips the observation, and results stay."""
    _broken(subject, "infinite")


def model_raises(subject: Subject) -> None:
    """If the model raises, the observation counts and explaining goes on."""
    _broken(subject, "raises")


def _broken(subject: Subject, mode: str) -> None:
    # Each call fails, or only some do: then it is rows with replaced features that have no prediction.
    third = len(subject.stream) // 3
    for every in (1, 7):
        explainer, switch = subject.switched()
        switch.every = every
        result = explain(explainer, subject.stream[:third])[-1][1]
        for i, (x, y) in enumerate(subject.stream[third:]):
            switch.mode = mode if i % 10 == 5 else "works"
            before, n_skipped, n_calls = repr(result), explainer.n_skipped, switch.n_calls
            result = explain(explainer, [(x, y)])[0][1]
            expect(all_finite(result), f"finite results where the model's prediction is {mode!r}", result)
            if switch.mode == "works" or every > 1 or switch.n_calls == n_calls:
                continue
            expect(
                explainer.n_skipped > n_skipped,
                f"an observation for which the model's prediction is {mode!r} to be counted in n_skipped",
                f"n_skipped was and is {n_skipped}",
            )
            if subject.has_loss:
                expect(repr(result) == before, "a skipped observation to leave the result as it was", result)
        switch.mode, before_n = "works", explainer.n_observations
        result = explain(explainer, subject.stream[:third])[-1][1]
        expect(
            explainer.n_observations > before_n and all_finite(result),
            f"the explanation to go on after predictions that were {mode!r}",
            result,
        )


def prediction_given(subject: Subject) -> None:
    """A given `y_pred` works like the model's own, unchanged and not kept."""
    explainer, model = subject.new(0)
    function = model_function(model, explainer.loss.output)  # type: ignore[attr-defined]  # yielded where it has one
    trace = []
    for x, y in subject.stream:
        given: Any = function(dict(x))
        before = repr(given)
        result = explainer.explain_one(dict(x), y, y_pred=given)
        expect(repr(given) == before, f"the prediction handed over to stay {before}", given)
        trace.append(as_text(explainer, result))
        if isinstance(given, dict):
            given.update(dict.fromkeys(given, 1e9))  # it is the caller's, as x is
        learn(model, x, y)
    expect_equal(subject.said(), trace, "results to be the same where y_pred is handed over")


def targets_not_finite(subject: Subject) -> None:
    """A target that is NaN or infinite does not stay in the results."""
    explainer, _ = subject.new()
    values = (math.nan, math.inf, -math.inf)
    broken = ((x, values[i % 3] if i % 10 == 5 else y) for i, (x, y) in enumerate(subject.stream))
    for _, result in explain(explainer, broken):
        expect(all_finite(result), "finite results where some targets are not finite", result)
