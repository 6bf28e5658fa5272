"""Names of the topics, `<prefix>.<noun>.v1`, and the installed version."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "attributary"


def installed_version() -> str:
    """Return the version of the installed distribution.

    `0+unknown` where the sources are used without one."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+unknown"


VERSION = "v1"


@dataclass(frozen=True)
class Topics:
    """Names of the topics of an installation.

    Every key is the raw UTF-8 model id.

    Parameters
    ----------
    prefix
        First part of every name, for example `attributary`.
    read
        A topic that is not ours and is read in place of that of the observations.

    Examples
    --------
    >>> Topics("shop").observations
    'shop.observations.v1'
    """

    prefix: str
    read: str | None = None

    def _name(self, noun: str) -> str:
        return f"{self.prefix}.{noun}.{VERSION}"

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [
            self.observations,
            self.models,
            self.importances,
            self.incidents,
            self.status,
            self.sources,
            self.dead_letters,
        ]

    @property
    def observations(self) -> str:
        """Input topic: an observation with its label per record."""
        return self.read or self._name("observations")

    @property
    def models(self) -> str:
        """Input topic: the version of a model to explain from now on.

        Whoever may write here can replace models."""
        return self._name("models")

    @property
    def importances(self) -> str:
        """Output topic: the importance of every feature of a model.

        At intervals, and on material change."""
        return self._name("importances")

    @property
    def incidents(self) -> str:
        """Output topic: a story per change of a model, new at each revision."""
        return self._name("incidents")

    @property
    def status(self) -> str:
        """Output topic: how each model is doing, its last record only.

        It follows the clock, and is no event."""
        return self._name("status")

    @property
    def sources(self) -> str:
        """Internal topic without records: divides sources among mappers.

        Who has a partition of it maps the sources that belong there."""
        return self._name("sources")

    @property
    def dead_letters(self) -> str:
        """Output topic: unusable records, untouched, with reasons in headers."""
        return self._name("dead-letters")
