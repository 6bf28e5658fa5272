"""What is explained, and how often a model is evaluated for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """Explainers of one model.

    Parameters
    ----------
    pfi, sage
        Draws per feature of iPFI and per coalition of iSAGE; 0: there is none.
    copies
        So many of each, with other seeds.
    reservoir
        Observations stored, in the geometric reservoir; None: ours has its default, the others 100.
    """

    name: str
    pfi: int = 0
    sage: int = 0
    copies: int = 1
    reservoir: int | None = None

    @property
    def stored(self) -> int:
        """Observations that those beside ours store."""
        return 100 if self.reservoir is None else self.reservoir

    @property
    def draws(self) -> int:
        """The larger number of draws."""
        return max(self.pfi, self.sage)

    def rows(self, d: int) -> int:
        """Rows that replace a feature at least, for an observation of d features: a model evaluates each."""
        return self.copies * (self.pfi * d + self.sage * (d - 1))


KINDS = (
    Kind("iPFI, M 1", pfi=1),
    Kind("iPFI, M 10", pfi=10),
    Kind("iSAGE, m 5", sage=5),
    Kind("iSAGE, m 10", sage=10),
    Kind("both, 10", pfi=10, sage=10),
)
