"""Names the topics: `<prefix>.<noun>.v1`."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "v1"


@dataclass(frozen=True)
class Topics:
    """Names the topics of one installation. Every key is the raw UTF-8 model id.

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
        """Input topic: one observation with its label per record."""
        return self.read or self._name("observations")

    @property
    def models(self) -> str:
        """Input topic: the version of a model to explain from now on. Whoever may write here can replace models."""
        return self._name("models")

    @property
    def importances(self) -> str:
        """Output topic: the importance of every feature of a model, at intervals and on material change."""
        return self._name("importances")

    @property
    def incidents(self) -> str:
        """Output topic: one story per change of a model, told anew at each revision."""
        return self._name("incidents")

    @property
    def status(self) -> str:
        """Output topic: how each model is doing, its last record only; it follows the clock, and is no event."""
        return self._name("status")

    @property
    def sources(self) -> str:
        """Internal topic without records: who has a partition of it maps the sources that belong there."""
        return self._name("sources")

    @property
    def dead_letters(self) -> str:
        """Output topic: records that could not be used, untouched, with the reason in their headers."""
        return self._name("dead-letters")
