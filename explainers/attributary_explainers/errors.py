"""The errors of this package, and its warnings."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class ExplainerError(Exception):
    """Root of every error that this package raises on purpose."""


class InvalidParameterError(ExplainerError, ValueError):
    """A parameter is out of its range.

    Parameters
    ----------
    parameter
        Name of the parameter, as the caller wrote it.
    expected
        The valid range, in words.
    value
        What was given.
    hint
        What stands behind it: what may have been meant.
    """

    def __init__(self, parameter: str, expected: str, value: object, hint: str = "") -> None:
        self.parameter = parameter
        self.expected = expected
        self.value = value
        self.hint = hint
        super().__init__(f"{parameter} must be {expected}, got {value!r}{hint}")

    def __reduce__(self) -> Any:
        # As a pool of processes sends it back.
        return type(self), (self.parameter, self.expected, self.value, self.hint)


class ModelError(ExplainerError):
    """A model lacks something an explainer needs, or predicts nothing usable."""


class LabelError(ModelError):
    """A label or target is missing, or of a type the model never predicts."""


class ProbabilityError(ModelError):
    """Raised for probabilities outside [0, 1], or that do not sum to 1."""

    @property
    def without_values(self) -> str:
        """The text, in which no value of an observation is."""
        return str(self)


class NoPredictionError(ModelError):
    """The model has no usable prediction yet: it has not learnt enough."""


class SnapshotError(ExplainerError):
    """A snapshot cannot be restored here; the message names the remedy."""


class PrivateWarning(UserWarning):
    """Warnings that may quote observations; `without_values` does not."""

    without_values: str = ""


class BiasedImportanceWarning(UserWarning):
    """SAGE values have an uncorrected bias with this loss or these draws."""


class ConstantLossWarning(UserWarning):
    """The loss was the same for every prediction: all importances are 0."""


class ModelFailureWarning(PrivateWarning):
    """The model raised on an observation, original or with replaced features."""


class LocalReservoirWarning(UserWarning):
    """A slow feature is replaced by like values: importance may be off."""


class SlowFeatureWarning(UserWarning):
    """A feature changes so slowly that importance is of its latest values."""


class UnknownLabelWarning(PrivateWarning):
    """No label is a class of the model: they differ in type or spelling."""


class NaivePathWarning(UserWarning):
    """A model is evaluated row by row: no fast path is tested for it."""


class UntestedRiverWarning(UserWarning):
    """River is newer than tested: fast paths are compared more often."""


class FastPathFaultWarning(PrivateWarning):
    """A fast path differed from its model, and is no longer taken."""


class HoldoutWarning(PrivateWarning):
    """The stream differs from a hold-out in features or in class shares."""


class ObservationalDoubtWarning(UserWarning):
    """An observational importance is off: draws miss part of the dependence."""


def warn_caller(warning: Warning) -> None:
    """Warn at the line outside this package that called into it.

    A warning that points into the package would quote one of our lines, which helps nobody.
    """
    # Python 3.12 has skip_file_prefixes for this, 3.11 has not.
    frame, level = sys._getframe(), 1
    while _is_ours(frame.f_globals.get("__name__")) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] == __name__.partition(".")[0]
