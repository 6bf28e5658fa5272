"""Defines what goes over the wire: topic names, event types, validation and the codec.

Knows bytes and JSON; knows neither models nor Faust.
"""

from .changes import (
    AlarmEvent,
    ChangeEvent,
    ChangeLosses,
    DetectorSpec,
    ExplanationEvent,
    FeatureChange,
    ImportanceComparison,
    ImportanceShiftEvent,
    ImportanceShiftReleasedEvent,
    LossDifference,
    LossEstimate,
    NotConfirmedEvent,
    RecoveredEvent,
    ShiftSize,
)
from .cloudevents import event_headers, event_id, event_time
from .codec import decode_json, encode_json, find_not_finite
from .deadletters import (
    DEAD_LETTER_HEADER_PREFIX,
    REPLAYED_HEADER,
    DeadLetter,
    decode_dead_letter,
    fit_dead_letter,
    replayed_id,
)
from .deployments import Deployment, decode_deployment
from .errors import REASONS, InvalidRecordError
from .events import FeatureImportance, ImportanceEvent, OnsetEstimate, QualityFigure, Source
from .loss_shifts import (
    FigureMoved,
    LevelMoved,
    LossShiftEvent,
    LossShiftExplainedEvent,
    LossShiftReleasedEvent,
    LossSuspect,
)
from .names import Topics
from .observations import FEATURE_TYPES, Observation, ObservationDecoder, decode_model_id, decode_observation
from .shards import FeatureEstimate, ShardImportance, decode_shard
from .status import STATES, ModelStatus, encode_status
from .version import installed_version

__version__ = installed_version()

__all__ = [
    "DEAD_LETTER_HEADER_PREFIX",
    "FEATURE_TYPES",
    "REASONS",
    "REPLAYED_HEADER",
    "STATES",
    "AlarmEvent",
    "ChangeEvent",
    "ChangeLosses",
    "DeadLetter",
    "Deployment",
    "DetectorSpec",
    "ExplanationEvent",
    "FeatureChange",
    "FeatureEstimate",
    "FeatureImportance",
    "FigureMoved",
    "ImportanceComparison",
    "ImportanceEvent",
    "ImportanceShiftEvent",
    "ImportanceShiftReleasedEvent",
    "InvalidRecordError",
    "LevelMoved",
    "LossDifference",
    "LossEstimate",
    "LossShiftEvent",
    "LossShiftExplainedEvent",
    "LossShiftReleasedEvent",
    "LossSuspect",
    "ModelStatus",
    "NotConfirmedEvent",
    "Observation",
    "ObservationDecoder",
    "OnsetEstimate",
    "QualityFigure",
    "RecoveredEvent",
    "ShardImportance",
    "ShiftSize",
    "Source",
    "Topics",
    "decode_dead_letter",
    "decode_deployment",
    "decode_json",
    "decode_model_id",
    "decode_observation",
    "decode_shard",
    "encode_json",
    "encode_status",
    "event_headers",
    "event_id",
    "event_time",
    "find_not_finite",
    "fit_dead_letter",
    "replayed_id",
]
