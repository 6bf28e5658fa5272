"""The errors of this package.

ExplainerError
├── InvalidParameterError   a constructor argument is out of its range (also a ValueError)
├── ModelError              the model cannot be explained this way, or its prediction cannot be used
│   └── NoPredictionError   it has no usable prediction yet
└── SnapshotError           a snapshot is of another format version, class or set of parameters

UserWarning
├── BiasedImportanceWarning SAGE values are biased with this loss or number of draws
├── ConstantLossWarning     a loss has been the same for every prediction: it cannot show importance
├── ModelFailureWarning     the model raised while it was explained: counted, and said once
├── LocalReservoirWarning   a feature's values are much like those that replace them: its importance may be off
├── SlowFeatureWarning      a feature's values stay alike for too long: its importance is that of the latest ones
├── UnknownLabelWarning     no label that comes is a class that the model predicts
└── ObservationalDoubtWarning   draws given the other features miss a part of the dependence
"""

from __future__ import annotations


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
    """

    def __init__(self, parameter: str, expected: str, value: object) -> None:
        self.parameter = parameter
        self.expected = expected
        self.value = value
        super().__init__(f"{parameter} must be {expected}, got {value!r}")


class ModelError(ExplainerError):
    """The model does not offer what the explainer needs, or predicted something unusable."""


class NoPredictionError(ModelError):
    """The model has no usable prediction yet: it has not learnt enough."""


class SnapshotError(ExplainerError):
    """A snapshot cannot be restored here; the message says what to do."""


class BiasedImportanceWarning(UserWarning):
    """SAGE values are biased with this loss or number of draws, and nothing corrects that."""


class ConstantLossWarning(UserWarning):
    """The loss had one and the same value for every prediction: every importance is exactly 0."""


class ModelFailureWarning(UserWarning):
    """The model raised on an observation or on one with replaced features."""


class LocalReservoirWarning(UserWarning):
    """A feature's values move so slowly that what they are replaced by is like them: its importance may be off."""


class SlowFeatureWarning(UserWarning):
    """A feature's values stay alike for about as long as importance is averaged: it is that of the latest values."""


class UnknownLabelWarning(UserWarning):
    """No label that comes is a class that the model predicts: they differ in type, or in how they are written."""


class NaivePathWarning(UserWarning):
    """A model is evaluated row by row, because no fast path has been tested to equal it."""


class UntestedRiverWarning(UserWarning):
    """River is newer than the newest release that fast paths are tested with; they are compared more often."""


class FastPathFaultWarning(UserWarning):
    """A fast path gave another prediction than its model, and is not taken any more."""


class ObservationalDoubtWarning(UserWarning):
    """The observational importance of a feature is off: draws given the others miss a part of the dependence."""
