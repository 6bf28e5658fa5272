"""Suite of checks: lists them, selects the applicable, runs them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ConstantLossWarning, InvalidParameterError, ModelFailureWarning
from ..typing import Features
from ..validation import check_integer
from . import models, observations, state
from .subject import AnyClassifier, CheckFailure, Factory, Subject, ordinary_stream

__all__ = ["Check", "CheckFailure", "CheckReport", "CheckResult", "run_checks", "yield_checks"]

_ALWAYS = "is_any"
_CHECKS: tuple[tuple[Callable[[Subject], None], str], ...] = (
    (observations.before_any_data, _ALWAYS),
    (observations.input_unchanged, _ALWAYS),
    (observations.input_not_kept, _ALWAYS),
    (observations.results_not_shared, _ALWAYS),
    (observations.features_come_and_go, _ALWAYS),
    (observations.empty_observations, _ALWAYS),
    (observations.feature_order, _ALWAYS),
    (observations.types_change, _ALWAYS),
    (observations.missing_values, _ALWAYS),
    (observations.names_of_any_type, _ALWAYS),
    (observations.labels_of_any_type, "classifies"),
    (models.model_unchanged, _ALWAYS),
    (models.model_not_learnt, _ALWAYS),
    (models.model_predicts_nothing, "evaluates"),
    (models.model_predicts_nan, "evaluates"),
    (models.model_predicts_infinity, "evaluates"),
    (models.model_raises, "evaluates"),
    (models.prediction_given, "has_loss"),
    (models.targets_not_finite, "regresses"),
    (state.runs_repeat, _ALWAYS),
    (state.seeds_differ, "seeded"),
    (state.global_random_state, _ALWAYS),
    (state.snapshot_is_plain, _ALWAYS),
    (state.snapshot_continues, _ALWAYS),
    (state.restore_continues, _ALWAYS),
    (state.snapshot_shares_nothing, _ALWAYS),
    (state.other_snapshots_refused, _ALWAYS),
    (state.other_parameters_refused, _ALWAYS),
    (state.parameters_are_plain, _ALWAYS),
    (state.counts_add_up, _ALWAYS),
    (state.memory_is_bounded, _ALWAYS),
    (state.memory_is_bounded_by_names, _ALWAYS),
)


@dataclass(frozen=True)
class Check:
    """Promise of an explainer, checked by calling this object."""

    name: str
    """Names the check in reports, in test ids and in `without`."""
    promise: str
    """What is checked, in a sentence."""
    run: Callable[[], None]

    def __call__(self) -> None:
        """Run the check.

        Raises
        ------
        CheckFailure
            Says what was expected and what was seen; an exception of the explainer's is its cause.
        """
        try:
            with warnings.catch_warnings():
                # Models that fail and labels that mean nothing are what the checks are about.
                for category in (ModelFailureWarning, ConstantLossWarning, RuntimeWarning):
                    warnings.simplefilter("ignore", category)
                self.run()
        except CheckFailure as failure:
            raise CheckFailure(failure.expected, failure.seen, self.name) from failure.__cause__
        except Exception as error:
            raise CheckFailure(f"no exception ({self.promise})", repr(error), self.name) from error

    def __str__(self) -> str:
        return self.name


def yield_checks(
    make: Factory,
    *,
    model: Any = None,
    stream: Iterable[tuple[Features, Any]] | None = None,
    horizon: int = 2000,
    without: Mapping[str, str] | None = None,
) -> Iterator[Check]:
    """Yield the checks that apply to an explainer.

    A check that does not apply is not yielded: of the draws where the explainer's class takes no `seed`; of `y_pred`
    where it has no `loss`; of a model that fails where it never asks the model; of labels where the model is no
    classifier. To find out, explainers are made, and tried on some observations.

    Parameters
    ----------
    make
        Factory: `make(model, seed)` gives a new explainer of that model with each call. Give it the settings that make
        it small and quick to forget, as a reservoir of 10 and alpha = 0.05: see `horizon`.
    model
        What the factory is handed: every check copies it (it must be picklable), and lets the copy learn. None is a
        small classifier that takes any value and label. Give another where the explainer is for one kind of model.
    stream
        Observations `(x, y)` that the model can learn, 60 at least; those of the default have four features, one of
        them a category, and two labels. None of it is changed.
    horizon
        Valid range >= 100; observations within which state has stopped growing and what no longer comes is forgotten.
        The two checks of memory take three times as many. Larger takes longer, and allows longer memories.
    without
        Names of checks to leave out, each with the reason.

    Yields
    ------
    Check
        Call it; `str(check)` is its name.

    Raises
    ------
    InvalidParameterError
        The stream or the horizon is too short, or `without` names what is no check.

    Examples
    --------
    >>> from river import tree
    >>> from attributary_explainers import IncrementalMDI, IncrementalPFI
    >>> checks = list(yield_checks(lambda model, seed: IncrementalPFI(model, n_samples=1, seed=seed)))
    >>> [str(check) for check in checks if "seed" in check.name]
    ['seeds_differ']
    >>> undrawn = yield_checks(lambda model, seed: IncrementalMDI(model), model=tree.HoeffdingTreeClassifier())
    >>> [str(check) for check in undrawn if "seed" in check.name]
    []
    >>> checks[1].promise
    'Every property can be read before any data, and both counts are 0.'
    >>> checks[1]()
    """
    subject, without = _subject(make, model, stream, horizon), without or {}
    unknown = without.keys() - {check.__name__ for check, _ in _CHECKS}
    if unknown:
        raise InvalidParameterError("without", "names of checks", sorted(unknown))
    yield _check(observations.is_made, subject)
    applies = {when: _applies(subject, when) for when in dict.fromkeys(when for _, when in _CHECKS)}
    for check, when in _CHECKS:
        if applies[when] and check.__name__ not in without:
            yield _check(check, subject)


def _applies(subject: Subject, when: str) -> bool:
    try:
        return when == _ALWAYS or bool(getattr(subject, when))
    except Exception:  # noqa: BLE001 - an explainer that cannot even be tried: the check says so, with the exception
        return True


def _subject(make: Factory, model: Any, stream: Iterable[tuple[Features, Any]] | None, horizon: int) -> Subject:
    check_integer("horizon", horizon, minimum=100)
    observed = ordinary_stream() if stream is None else list(stream)
    if len(observed) < 60:
        raise InvalidParameterError("stream", "at least 60 observations", len(observed))
    return Subject(make, AnyClassifier() if model is None else model, observed, horizon)


def _check(check: Callable[[Subject], None], subject: Subject) -> Check:
    # A subject of its own: a check that changes something is found out by itself, not by the next one.
    own = replace(subject)
    return Check(check.__name__, (check.__doc__ or "").partition("\n")[0], lambda: check(own))


@dataclass(frozen=True)
class CheckResult:
    """Result of a check; `failure` is None where it passed."""

    name: str
    promise: str
    failure: CheckFailure | None


@dataclass(frozen=True)
class CheckReport:
    """The results of all checks of an explainer; as text, a line for each."""

    results: tuple[CheckResult, ...]
    left_out: Mapping[str, str]
    """Checks that the caller left out, each with the reason."""

    @property
    def failures(self) -> tuple[CheckFailure, ...]:
        """The checks that failed, in their order."""
        return tuple(result.failure for result in self.results if result.failure is not None)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def __str__(self) -> str:
        lines = [f"{'FAILED' if r.failure else 'passed'}  {r.name}: {r.failure or r.promise}" for r in self.results]
        lines += [f"left out  {name}: {reason}" for name, reason in self.left_out.items()]
        return "\n".join([*lines, f"{len(self.results) - len(self.failures)} of {len(self.results)} checks passed"])


def run_checks(
    make: Factory,
    *,
    model: Any = None,
    stream: Iterable[tuple[Features, Any]] | None = None,
    horizon: int = 2000,
    without: Mapping[str, str] | None = None,
) -> CheckReport:
    """Run the checks of `yield_checks`, with its parameters and errors.

    Returns
    -------
    CheckReport
        `.passed` and `.failures`; printed, a line for each check.

    Examples
    --------
    >>> from attributary_explainers import IncrementalPFI
    >>> from river.datasets import synth
    >>> def careless(model, seed):
    ...     return IncrementalPFI(model, n_samples=1)  # the seed is not passed on
    >>> slow = dict.fromkeys(("memory_is_bounded", "memory_is_bounded_by_names"), "takes long")
    >>> report = run_checks(careless, stream=synth.STAGGER(seed=1).take(60), without=slow)
    >>> report.passed
    False
    >>> "runs_repeat" in [failure.check for failure in report.failures]
    True
    """
    results = []
    for check in yield_checks(make, model=model, stream=stream, horizon=horizon, without=without):
        failure = None
        try:
            check()
        except CheckFailure as failed:
            failure = failed
        results.append(CheckResult(check.name, check.promise, failure))
    return CheckReport(tuple(results), dict(without or {}))
