"""The state of a model that events and metrics read, and its counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..change.explainer import ChangeExplainer
from ..incremental.explainers import Explainers
from ..incremental.removal import RemovalExplainer
from ..losses.losses import Loss
from ..models.learning import Learn
from ..quality.quality import Quality
from ..shifts.shift import ImportanceShift
from ..smoothing.means import SmoothedMean, SmoothedPrediction
from ..snapshots import Stored
from .incident_watch import IncidentWatch
from .joiner import Late
from .loss_watch import LossWatch
from .mismatch import Mismatch
from .publication import Publication
from .settings import Settings

INCIDENTS = (
    *((what, severity) for what in ("inputs", "worse", "version") for severity in ("warning", "critical")),
    *(("changed", severity) for severity in ("info", "warning")),
    *((what, "info") for what in ("harder", "relies_differently", "version")),
    ("level", "warning"),
    ("recovered", "critical"),
)
"""What can be confirmed of a model, and how bad it is then."""

RECOVERIES = ("recovered", "forgotten")
"""How often a model went back to its last good state, and how many observations it forgot by that."""

VERSION_OUTCOMES = ("explained", "unexplained", "refused")
"""What can become of a new version: it takes over, explained or not, or it is refused because it cannot."""


@dataclass
class ModelCounts(Stored):
    """Counts of events of a model id since its first observation.

    It goes on through every change of its model. Recoveries are how often the model went back to its last good state,
    and how many observations it forgot by that. Incidents are those that were confirmed, by what they were then and how
    bad. Versions are those that have taken over, by whether the change could be explained, which is known
    `change.window` observations later, and those that could not.
    """

    recoveries: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(RECOVERIES, 0)))
    incidents: Counter[tuple[str, str]] = field(default_factory=lambda: Counter(dict.fromkeys(INCIDENTS, 0)))
    versions: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(VERSION_OUTCOMES, 0)))


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
