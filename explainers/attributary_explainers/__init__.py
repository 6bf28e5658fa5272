"""Incremental feature importance for models that learn on streams.

Knows models and observations; knows nothing of Kafka, files or clocks.
"""

from .base import IncrementalExplainer
from .batch import IntervalPFI, SlidingWindowSAGE, batch_sage, interval_pfi
from .change import ChangeExplainer
from .change_explanation import ChangeExplanation
from .copying import dump_model, freeze, load_model
from .detectors import DETECTOR_NAMES, make_detector
from .discrepancy import Distance, as_distance, expected_discrepancy
from .errors import ExplainerError, InvalidParameterError, ModelError, NoPredictionError, SnapshotError
from .exact import exact_sage, expected_pfi
from .losses import LOSS_NAMES, Loss, as_loss, most_probable
from .mdi import IncrementalMDI
from .models import is_classifier, is_usable, model_function, resolve_loss
from .pdp import IncrementalPDP
from .pfi import BatchImportance, IncrementalPFI, batch_pfi
from .ranking import ndcg, ranks, shares, shift
from .reservoirs import RESERVOIR_NAMES, GeometricReservoir, Reservoir, UniformReservoir, make_reservoir
from .sage import IncrementalSAGE
from .smoothing import SmoothedImportance, SmoothedMean, SmoothedPrediction

__all__ = [
    "DETECTOR_NAMES",
    "LOSS_NAMES",
    "RESERVOIR_NAMES",
    "BatchImportance",
    "ChangeExplainer",
    "ChangeExplanation",
    "Distance",
    "ExplainerError",
    "GeometricReservoir",
    "IncrementalExplainer",
    "IncrementalMDI",
    "IncrementalPDP",
    "IncrementalPFI",
    "IncrementalSAGE",
    "IntervalPFI",
    "InvalidParameterError",
    "Loss",
    "ModelError",
    "NoPredictionError",
    "Reservoir",
    "SlidingWindowSAGE",
    "SmoothedImportance",
    "SmoothedMean",
    "SmoothedPrediction",
    "SnapshotError",
    "UniformReservoir",
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
    "is_classifier",
    "is_usable",
    "load_model",
    "make_detector",
    "make_reservoir",
    "model_function",
    "most_probable",
    "ndcg",
    "ranks",
    "resolve_loss",
    "shares",
    "shift",
]
