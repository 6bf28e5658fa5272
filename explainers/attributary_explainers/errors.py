"""The errors of this package, and its warnings."""

from __future__ import annotations

import sys
import warnings


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
        super().__init__(f"{parameter} must be {expected}, got {value!r}{hint}")


class ModelError(ExplainerError):
    """The model does not offer what the explainer needs, or predicted something unusable."""


class LabelError(ModelError):
    """A label or target is missing, or is not of the type that the model predicts; the message says what to do."""


class NoPredictionError(ModelError):
    """The model has no usable prediction yet: it has not learnt enough."""


class SnapshotError(ExplainerError):
    """A snapshot cannot be restored here; the message says what to do."""


class PrivateWarning(UserWarning):
    """Root of the warnings whose text may hold values of observations; `without_values` is the text without them."""

    without_values: str = ""


class BiasedImportanceWarning(UserWarning):
    """SAGE values are biased with this loss or number of draws, and nothing corrects that."""


class ConstantLossWarning(UserWarning):
    """The loss had one and the same value for every prediction: every importance is exactly 0."""


class ModelFailureWarning(PrivateWarning):
    """The model raised on an observation or on one with replaced features."""


class LocalReservoirWarning(UserWarning):
    """A feature's values move so slowly that what they are replaced by is like them: its importance may be off."""


class SlowFeatureWarning(UserWarning):
    """A feature's values stay alike for about as long as importance is averaged: it is that of the latest values."""


class UnknownLabelWarning(PrivateWarning):
    """No label that comes is a class that the model predicts: they differ in type, or in how they are written."""


class NaivePathWarning(UserWarning):
    """A model is evaluated row by row, because no fast path has been tested to equal it."""


class UntestedRiverWarning(UserWarning):
    """River is newer than the newest release that fast paths are tested with; they are compared more often."""


class FastPathFaultWarning(PrivateWarning):
    """A fast path gave another prediction than its model, and is not taken any more."""


class ObservationalDoubtWarning(UserWarning):
    """The observational importance of a feature is off: draws given the others miss a part of the dependence."""


def warn_caller(warning: Warning) -> None:
    """Warn at the line of the caller's from which this package was called, however deep in it the reason was found.

    A warning that points into the package would quote a line of ours, which tells nobody what to look at.
    """
    # Python 3.12 has skip_file_prefixes for this, 3.11 has not.
    frame, level = sys._getframe(), 1
    while _is_ours(frame.f_globals.get("__name__")) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] == __name__.partition(".")[0]
