"""Our explainers, as a user has them: `Explainers` where there is such a thing, else each by itself."""

from __future__ import annotations

from typing import Any

import attributary_explainers
from attributary_explainers import GeometricReservoir, IncrementalPFI, IncrementalSAGE
from benchmarks.speed.kinds import Kind

ALPHA = 0.001


class Ours:
    """Explainers of one model, which make the prediction themselves."""

    def __init__(self, model: Any, loss: str, kind: Kind) -> None:
        self.explainers: dict[str, IncrementalPFI | IncrementalSAGE] = {}
        for copy in range(kind.copies):
            for make, n in ((IncrementalPFI, kind.pfi), (IncrementalSAGE, kind.sage)):
                if n:
                    self.explainers[f"{make.name}-{copy}"] = make(
                        model,
                        loss=loss,
                        n_samples=n,
                        alpha=ALPHA,
                        reservoir=GeometricReservoir(kind.reservoir),
                        seed=1 + copy,
                    )
        together = getattr(attributary_explainers, "Explainers", None)
        self._together = None if together is None else together(model, self.explainers)

    def step(self, x: dict[str, Any], y: Any) -> Any:
        """Explain one observation; the prediction for it, or None where the explainers do not hand it out."""
        if self._together is not None:
            self._together.explain_one(x, y)
            return self._together.y_pred
        for explainer in self.explainers.values():
            explainer.explain_one(x, y)
        return None

    @property
    def importance(self) -> list[dict[str, float]]:
        """Of each explainer."""
        return [dict(explainer.importance) for explainer in self.explainers.values()]
