"""Our explainers, as a user has them: together, with the prediction from the same batch."""

from __future__ import annotations

from typing import Any

from attributary_explainers import Explainers, GeometricReservoir, IncrementalPFI, IncrementalSAGE
from benchmarks.speed.kinds import Kind

ALPHA = 0.001


class Ours:
    """Explainers of one model, which make the prediction themselves."""

    def __init__(self, model: Any, loss: str, kind: Kind, removal: str = "interventional") -> None:
        self.explainers: dict[str, IncrementalPFI | IncrementalSAGE] = {}
        for copy in range(kind.copies):
            for make, n in ((IncrementalPFI, kind.pfi), (IncrementalSAGE, kind.sage)):
                if n:
                    self.explainers[f"{make.name}-{copy}"] = make(
                        model,
                        loss=loss,
                        n_samples=n,
                        alpha=ALPHA,
                        removal=removal,
                        reservoir=None if kind.reservoir is None else GeometricReservoir(kind.reservoir),
                        seed=1 + copy,
                    )
        self._together = Explainers(model, self.explainers)

    def step(self, x: dict[str, Any], y: Any) -> Any:
        """Explain one observation; the prediction for it."""
        y_pred = self._together.predict(x)
        self._together.explain(y)
        return y_pred

    def skip(self, x: dict[str, Any]) -> None:
        """Store one observation without explaining it."""
        self._together.skip(x)

    @property
    def importance(self) -> list[dict[str, float]]:
        """Of each explainer."""
        return [dict(explainer.importance) for explainer in self.explainers.values()]
