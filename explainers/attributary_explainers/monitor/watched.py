"""The state of a model that events and metrics read."""

from __future__ import annotations

from typing import Any, Protocol

from ..change.explainer import ChangeExplainer
from ..incremental.explainers import Explainers
from ..incremental.removal import RemovalExplainer
from ..losses.losses import Loss
from ..models.learning import Learn
from ..quality.quality import Quality
from ..shifts.shift import ImportanceShift
from ..smoothing.means import SmoothedMean, SmoothedPrediction
from .counts import ModelCounts
from .incident_watch import IncidentWatch
from .joining.late import Late
from .joining.logged import Mismatch
from .loss_watch import LossWatch
from .publication import Publication
from .settings import Settings


class Watched(Protocol):
    """State of a watched model.

    `present_loss` is the loss of the model as it is now, where labels come later; None elsewhere.
    """

    model_id: str
    loss: Loss
    explainers: dict[str, RemovalExplainer]
    publications: dict[str, Publication]
    shifts: dict[str, ImportanceShift]
    loss_watch: LossWatch | None
    incident_watch: IncidentWatch | None
    change: ChangeExplainer | None
    model_loss: SmoothedMean
    baseline_loss: SmoothedMean
    marginal: SmoothedPrediction
    quality: Quality | None
    counts: ModelCounts
    n_observations: int
    n_failed: int
    n_missing: int
    n_other_categories: int
    last_observation_ms: int | None
    present_loss: SmoothedMean | None
    mismatch: Mismatch
    late: Late | None

    @property
    def model(self) -> Any:
        """The model of the present version."""

    @property
    def together(self) -> Explainers:
        """The explainers, evaluated in the batch of the prediction."""

    @property
    def learn(self) -> Learn:
        """Function that teaches the model an observation."""

    @property
    def settings(self) -> Settings:
        """Settings of the model's watch."""

    @property
    def version(self) -> str:
        """The name of the present version."""

    @property
    def explain_every(self) -> int:
        """Number of observations per explained observation."""

    @property
    def evaluations(self) -> dict[str, int]:
        """Observations evaluated by this process, by path: fast or naive."""

    @property
    def fidelity(self) -> float | None:
        """Share of the mean prediction's loss that a mirror explains."""
