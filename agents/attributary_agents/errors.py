"""The errors of this package. A user can mend an AttributaryError: the command line prints one line and exits with 2.

AttributaryError
├── ConfigError      the configuration is wrong
├── DeploymentError  a new version of a model cannot be deployed
│   ├── NotAllowedError   it names what the configuration does not allow
│   ├── NotBegunError     nothing has tried to build it yet: it may pass
│   └── EndedWorkerError  workers ended while they handled the record
├── PreflightError   the brokers or topics are not as the configuration says
│   └── BrokersAwayError  no broker answers: it may come
├── UnsentError      observations are not all in their topic
├── SourceError      a file of observations cannot be read
├── StoreError       the store of the page cannot be used
├── SchemaUnavailableError  a schema cannot be fetched now: it may come
├── RegistryAwayError  MLflow's registry cannot be asked now: it may come
├── FilesAwayError   MLflow's registry answers, and the files of a version cannot be had: they may come
└── BrokerError      a broker for demo or tests cannot be started
DeliveryError        the broker skipped records or refused a write: the worker stops, a restart resumes
└── FencedError      the partition's transactions have another owner
StateError           a stored state cannot be read back
└── DamagedStateError  its bytes are not those that a worker has written
    └── ForeignTypeError  they name a class or function that no model as configured is made of
"""

from __future__ import annotations

from attributary_topics.errors import without_text

__all__ = ["without_text"]


def told(error: BaseException, in_full: bool = False) -> str:
    """Return what is said of an exception that is not ours: with its text, or with the place in place of the text."""
    return f"{type(error).__name__}: {error}" if in_full else without_text(error)


class AttributaryError(Exception):
    """An error that the user can mend; the message says how."""


class ConfigError(AttributaryError):
    """The configuration is wrong."""


class DeploymentError(AttributaryError):
    """A new version of a model cannot be deployed.

    Parameters
    ----------
    message
        Says what is wrong and what to do.
    reason
        One of `attributary_topics.REASONS`.
    """

    def __init__(self, message: str, reason: str = "unusable_model") -> None:
        super().__init__(message)
        self.reason = reason


class NotAllowedError(DeploymentError):
    """A new version names a class, function or file that the configuration does not allow."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "not_allowed")


class NotBegunError(DeploymentError):
    """The process that builds a new version could not be started, or has not begun: that may pass."""


class EndedWorkerError(DeploymentError):
    """Workers ended while they handled a record: it is not handled again."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "ended_worker")


class PreflightError(AttributaryError):
    """The brokers or topics are not as the configuration says."""


class BrokersAwayError(PreflightError):
    """No broker answers: it may not be there yet.

    Parameters
    ----------
    message
        Says what is wrong and what to do.
    causes
        What the system or the client says of each broker, with its address.
    answer
        Whether all of them answer, and only not what was asked.
    """

    def __init__(self, message: str, causes: str, *, answer: bool = False) -> None:
        super().__init__(message)
        self.causes = causes
        self.answer = answer


class UnsentError(AttributaryError):
    """Observations that were to be sent are not all in their topic.

    Parameters
    ----------
    message
        Says why.
    acknowledged
        Rows of the beginning that the brokers have acknowledged.
    unacknowledged
        Rows behind them that were sent: the topic may have them or not.
    """

    def __init__(self, message: str, acknowledged: int, unacknowledged: int) -> None:
        super().__init__(message)
        self.acknowledged = acknowledged
        self.unacknowledged = unacknowledged


class SourceError(AttributaryError):
    """A file of observations cannot be read."""


class StoreError(AttributaryError):
    """The store of `attributary serve` cannot be opened, or not be written."""


class RegistryAwayError(AttributaryError):
    """MLflow's registry cannot be asked now: it may come."""


class FilesAwayError(AttributaryError):
    """MLflow's registry answers, and the files of a version cannot be had now, or are not whole: they may come."""


class SchemaUnavailableError(AttributaryError):
    """The schema of a record cannot be fetched now: its partition waits, and the schema is asked for again."""


class DeliveryError(Exception):
    """Delivery went wrong, and going on would make it worse; a restarted worker resumes exactly."""


class FencedError(DeliveryError):
    """The partition's transactions belong to another owner now, or one has expired: what was open is not published."""


class StateError(Exception):
    """A stored state cannot be read back; the message says what to do."""


class DamagedStateError(StateError):
    """A stored state is torn, incomplete or not ours: its model is refused, the worker goes on with the others."""

    reason = "damaged_state"
    """The reason of the dead letters of its model, one of `attributary_topics.REASONS`."""


class ForeignTypeError(DamagedStateError):
    """Stored bytes name a class or function that no model as configured is made of; nothing of it has run."""

    reason = "foreign_type"
