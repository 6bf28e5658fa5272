"""Incremental feature importance for models that learn on streams.

Knows models and observations; knows nothing of Kafka, files or clocks, but for `Monitor`, which knows the wire format.
"""

from typing import TYPE_CHECKING, Any

from .batch.exact import exact_sage, expected_pfi
from .batch.sampled import batch_pfi, batch_sage
from .batch.tables import BatchImportance
from .batch.window import IntervalPFI, SlidingWindowSAGE, interval_pfi
from .change.detectors import DETECTOR_NAMES, make_detector
from .change.discrepancy import Distance, expected_discrepancy
from .change.events import Alarm, ChangeEvent, ChangeExplanation, NotConfirmed
from .change.explainer import ChangeExplainer
from .change.importance import ImportanceChange
from .change.paper import PaperChangeExplainer
from .change.verdicts import Estimate, Losses, Onset
from .errors import (
    BiasedImportanceWarning,
    ConstantLossWarning,
    ExplainerError,
    FastPathFaultWarning,
    HoldoutWarning,
    InvalidParameterError,
    LabelError,
    LocalReservoirWarning,
    ModelError,
    ModelFailureWarning,
    NaivePathWarning,
    NoPredictionError,
    ObservationalDoubtWarning,
    PrivateWarning,
    ProbabilityError,
    SlowFeatureWarning,
    SnapshotError,
    UnknownLabelWarning,
    UntestedRiverWarning,
)
from .history import ChangeMark, ImportanceHistory
from .incidents.incident import Effect, Evidence, Incident, Involved, Since
from .incidents.reducer import Incidents
from .incremental.base import SKIP_REASONS, IncrementalExplainer
from .incremental.dependence.pdp import IncrementalPDP
from .incremental.explainers import Explainers
from .incremental.mdi import IncrementalMDI
from .incremental.pfi import IncrementalPFI
from .incremental.removal import RemovalExplainer
from .incremental.sage import IncrementalSAGE
from .inputs.events import InputBreak, InputBreakEnd, InputEvent, ValueSummary
from .inputs.monitor import InputMonitor
from .inputs.units import UnitChange
from .loss_shift.events import LevelMoved, LossEvent, LossShift, LossShiftEnd, LossShiftExplained, Moved, Suspect
from .loss_shift.guard import LossGuard, LossReach
from .loss_shift.monitor import LossMonitor
from .losses.losses import LOSS_NAMES, Loss, as_loss
from .losses.statement import loss_statement
from .missing import MISSING_NAMES, read_missing
from .models.batch import BatchModel, as_batch
from .models.function import is_classifier, model_function, model_kind, resolve_loss
from .models.sklearn import SklearnModel
from .models.trained import BoosterModel, OnnxModel, TorchModel, TrainedModel
from .notebook.rows import observations, rows
from .pickling import dump_model, freeze, load_model
from .predictions import is_usable
from .quality.names import QUALITY_NAMES, known_metric, quality_metrics
from .quality.quality import Quality
from .ranking import ndcg, ranks, shares, shift
from .removal.choice import ConstantImputer
from .removal.conditional import ConditionalImputer, ConditionalSampler
from .removal.imputer import REMOVAL_NAMES, SAMPLING_NAMES, Imputer, MarginalImputer
from .removal.observational import ShiftedImputer
from .removal.reservoirs import (
    RESERVOIR_NAMES,
    GeometricReservoir,
    LaggedReservoir,
    Reservoir,
    SlidingWindowReservoir,
    UniformReservoir,
    make_reservoir,
)
from .shifts.events import Level, Shift, ShiftEnd
from .shifts.shift import ImportanceShift
from .smoothing.importance import SmoothedImportance
from .smoothing.means import SmoothedMean, SmoothedPrediction
from .smoothing.shards import MergedImportance, ShardEstimate
from .typing import ModelFunction
from .version import installed_version

if TYPE_CHECKING:
    from .monitor.service.monitor import Monitor

__version__ = installed_version()


def __getattr__(name: str) -> Any:
    """Import `Monitor` on demand: it needs Prometheus and the wire format."""
    if name == "Monitor":
        from .monitor.service.monitor import Monitor

        return Monitor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DETECTOR_NAMES",
    "LOSS_NAMES",
    "MISSING_NAMES",
    "QUALITY_NAMES",
    "REMOVAL_NAMES",
    "RESERVOIR_NAMES",
    "SAMPLING_NAMES",
    "SKIP_REASONS",
    "Alarm",
    "BatchImportance",
    "BatchModel",
    "BiasedImportanceWarning",
    "BoosterModel",
    "ChangeEvent",
    "ChangeExplainer",
    "ChangeExplanation",
    "ChangeMark",
    "ConditionalImputer",
    "ConditionalSampler",
    "ConstantImputer",
    "ConstantLossWarning",
    "Distance",
    "Effect",
    "Estimate",
    "Evidence",
    "ExplainerError",
    "Explainers",
    "FastPathFaultWarning",
    "GeometricReservoir",
    "HoldoutWarning",
    "ImportanceChange",
    "ImportanceHistory",
    "ImportanceShift",
    "Imputer",
    "Incident",
    "Incidents",
    "IncrementalExplainer",
    "IncrementalMDI",
    "IncrementalPDP",
    "IncrementalPFI",
    "IncrementalSAGE",
    "InputBreak",
    "InputBreakEnd",
    "InputEvent",
    "InputMonitor",
    "IntervalPFI",
    "InvalidParameterError",
    "Involved",
    "LabelError",
    "LaggedReservoir",
    "Level",
    "LevelMoved",
    "LocalReservoirWarning",
    "Loss",
    "LossEvent",
    "LossGuard",
    "LossMonitor",
    "LossReach",
    "LossShift",
    "LossShiftEnd",
    "LossShiftExplained",
    "Losses",
    "MarginalImputer",
    "MergedImportance",
    "ModelError",
    "ModelFailureWarning",
    "ModelFunction",
    "Monitor",
    "Moved",
    "NaivePathWarning",
    "NoPredictionError",
    "NotConfirmed",
    "ObservationalDoubtWarning",
    "OnnxModel",
    "Onset",
    "PaperChangeExplainer",
    "PrivateWarning",
    "ProbabilityError",
    "Quality",
    "RemovalExplainer",
    "Reservoir",
    "ShardEstimate",
    "Shift",
    "ShiftEnd",
    "ShiftedImputer",
    "Since",
    "SklearnModel",
    "SlidingWindowReservoir",
    "SlidingWindowSAGE",
    "SlowFeatureWarning",
    "SmoothedImportance",
    "SmoothedMean",
    "SmoothedPrediction",
    "SnapshotError",
    "Suspect",
    "TorchModel",
    "TrainedModel",
    "UniformReservoir",
    "UnitChange",
    "UnknownLabelWarning",
    "UntestedRiverWarning",
    "ValueSummary",
    "as_batch",
    "as_loss",
    "batch_pfi",
    "batch_sage",
    "dump_model",
    "exact_sage",
    "expected_discrepancy",
    "expected_pfi",
    "freeze",
    "interval_pfi",
    "is_classifier",
    "is_usable",
    "known_metric",
    "load_model",
    "loss_statement",
    "make_detector",
    "make_reservoir",
    "model_function",
    "model_kind",
    "ndcg",
    "observations",
    "quality_metrics",
    "ranks",
    "read_missing",
    "resolve_loss",
    "rows",
    "shares",
    "shift",
]
