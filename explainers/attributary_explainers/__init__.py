"""Incremental feature importance for models that learn on streams.

Knows models and observations; knows nothing of Kafka, files or clocks.
"""

from .base import IncrementalExplainer
from .batch import batch_pfi, batch_sage
from .change import ChangeExplainer
from .change_explanation import ChangeExplanation, RejectedAlarm
from .conditional import EMPTY, ConditionalSampler
from .conditional_imputer import ConditionalImputer
from .copying import dump_model, freeze, load_model
from .detectors import DETECTOR_NAMES, DETECTORS_OF_ERRORS, make_detector
from .discrepancy import Distance, as_distance, expected_discrepancy
from .errors import (
    ConstantLossWarning,
    ExplainerError,
    FastPathFaultWarning,
    InvalidParameterError,
    ModelError,
    ModelFailureWarning,
    NaivePathWarning,
    NoPredictionError,
    SnapshotError,
)
from .exact import exact_sage, expected_pfi
from .history import ChangeMark, ImportanceHistory
from .importance_change import ImportanceChange
from .imputers import REMOVAL_NAMES, SAMPLING_NAMES, ConstantImputer, Draws, Imputer, MarginalImputer
from .losses import LOSS_NAMES, Loss, as_loss, most_probable
from .mdi import IncrementalMDI
from .missing import MISSING_NAMES, read_missing
from .model_batch import BatchModel, as_batch
from .model_cost import is_cheap
from .model_outputs import is_usable
from .model_sklearn import SklearnModel
from .models import is_classifier, model_function, model_kind, predict_rows, resolve_loss, show_row
from .pdp import IncrementalPDP
from .pfi import IncrementalPFI
from .ranking import ndcg, ranks, shares, shift
from .removal_explainer import SKIP_REASONS, RemovalExplainer
from .reservoirs import (
    RESERVOIR_NAMES,
    GeometricReservoir,
    Reservoir,
    SlidingWindowReservoir,
    UniformReservoir,
    make_reservoir,
)
from .sage import IncrementalSAGE
from .smoothed_importance import SmoothedImportance
from .smoothing import SmoothedMean, SmoothedPrediction
from .tables import BatchImportance
from .together import Explainers
from .typing import ModelFunction
from .window import IntervalPFI, SlidingWindowSAGE, interval_pfi

__all__ = [
    "DETECTORS_OF_ERRORS",
    "DETECTOR_NAMES",
    "EMPTY",
    "LOSS_NAMES",
    "MISSING_NAMES",
    "REMOVAL_NAMES",
    "RESERVOIR_NAMES",
    "SAMPLING_NAMES",
    "SKIP_REASONS",
    "BatchImportance",
    "BatchModel",
    "ChangeExplainer",
    "ChangeExplanation",
    "ChangeMark",
    "ConditionalImputer",
    "ConditionalSampler",
    "ConstantImputer",
    "ConstantLossWarning",
    "Distance",
    "Draws",
    "ExplainerError",
    "Explainers",
    "FastPathFaultWarning",
    "GeometricReservoir",
    "ImportanceChange",
    "ImportanceHistory",
    "Imputer",
    "IncrementalExplainer",
    "IncrementalMDI",
    "IncrementalPDP",
    "IncrementalPFI",
    "IncrementalSAGE",
    "IntervalPFI",
    "InvalidParameterError",
    "Loss",
    "MarginalImputer",
    "ModelError",
    "ModelFailureWarning",
    "ModelFunction",
    "NaivePathWarning",
    "NoPredictionError",
    "RejectedAlarm",
    "RemovalExplainer",
    "Reservoir",
    "SklearnModel",
    "SlidingWindowReservoir",
    "SlidingWindowSAGE",
    "SmoothedImportance",
    "SmoothedMean",
    "SmoothedPrediction",
    "SnapshotError",
    "UniformReservoir",
    "as_batch",
    "as_distance",
    "as_loss",
    "batch_pfi",
    "batch_sage",
    "dump_model",
    "exact_sage",
    "expected_discrepancy",
    "expected_pfi",
    "freeze",
    "interval_pfi",
    "is_cheap",
    "is_classifier",
    "is_usable",
    "load_model",
    "make_detector",
    "make_reservoir",
    "model_function",
    "model_kind",
    "most_probable",
    "ndcg",
    "predict_rows",
    "ranks",
    "read_missing",
    "resolve_loss",
    "shares",
    "shift",
    "show_row",
]
