"""Errors of this package.

A user can mend an AttributaryError: the command line prints one line and exits with 2.

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
    """Return a description of an exception that is not ours.

    It has the exception's text if `in_full`, and its place otherwise.
    """
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
    """New version that names something the configuration does not allow.

    That is a class, a function or a file.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, "not_allowed")


class NotBegunError(DeploymentError):
    """Process to build a new version that could not be started.

    Or that has not begun. That may pass.
    """


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
    """Files of a version that MLflow's registry does not have now.

    The registry answers, and the files cannot be had, or are not whole: they may come.
    """


class SchemaUnavailableError(AttributaryError):
    """Schema of a record that cannot be fetched now.

    The record's partition waits, and the schema is asked for again.
    """


class DeliveryError(Exception):
    """Delivery failure that would get worse by going on.

    A restarted worker resumes exactly.
    """


class FencedError(DeliveryError):
    """Transactions of a partition that are another owner's or expired.

    An open transaction is not published.
    """


class StateError(Exception):
    """Stored state that cannot be read back.

    The message says what to do.
    """


class DamagedStateError(StateError):
    """Stored state that is torn, incomplete or not ours.

    Its model is refused, and the worker goes on with the others.
    """

    reason = "damaged_state"
    """The reason of the dead letters of its model, one of `attributary_topics.REASONS`."""


class ForeignTypeError(DamagedStateError):
    """Stored bytes naming a class or function outside configured models.

    Nothing of it has run.
    """

    reason = "foreign_type"
