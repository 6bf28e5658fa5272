"""Topic names: `<prefix>.<noun>.v1`."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "v1"


@dataclass(frozen=True)
class Topics:
    """The topics of one deployment. Every key is the raw UTF-8 model id.

    Parameters
    ----------
    prefix
        First part of every name, for example `attributary`.

    Examples
    --------
    >>> Topics("shop").observations
    'shop.observations.v1'
    """

    prefix: str

    def _name(self, noun: str) -> str:
        return f"{self.prefix}.{noun}.{VERSION}"

    @property
    def observations(self) -> str:
        """In: one observation with its label per record."""
        return self._name("observations")

    @property
    def models(self) -> str:
        """In: which version of a model is to be explained from now on. Whoever may write here may replace models."""
        return self._name("models")

    @property
    def importances(self) -> str:
        """Out: the importance of every feature of a model, on an interval and on material change."""
        return self._name("importances")

    @property
    def changes(self) -> str:
        """Out: a model changed, by how much, and which features gained or lost."""
        return self._name("changes")

    @property
    def dead_letters(self) -> str:
        """Out: records that could not be used, untouched, with the reason in their headers."""
        return self._name("dead-letters")
