"""Defines what goes over the wire: topic names, event types, validation and the codec.

Knows bytes and JSON; knows neither models nor Faust.
"""

from .absent import optional_fields
from .arriving.arrivals import LateLabel, Needs, Response, decode_arrival, kind_of_record
from .arriving.origins import (
    LABEL,
    OBSERVATION,
    ORIGIN_HEADER,
    RECORD_HEADER,
    RECORD_KINDS,
    REQUEST,
    RESPONSE,
    Origin,
    OriginPlace,
    decode_origin,
    find_header,
)
from .changes import (
    ChangeDetails,
    ChangeLosses,
    DetectorSpec,
    FeatureChange,
    ImportanceComparison,
    LossDifference,
    LossEstimate,
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
from .estimates.dependences import DependenceEvent
from .estimates.shards import FeatureEstimate, ShardImportance, decode_shard
from .events import (
    FeatureImportance,
    ImportanceEvent,
    OnsetEstimate,
    Place,
    QualityFigure,
    Source,
    SourceOrigin,
    Unsourced,
    source_of,
)
from .incidents import (
    ADVICE,
    LIVES,
    SEVERITIES,
    WHATS,
    IncidentEffect,
    IncidentEvent,
    IncidentEvidence,
    IncidentFeature,
    IncidentOnset,
    MeanEstimate,
    ValueFigures,
)
from .names import Topics
from .observations import (
    FEATURE_TYPES,
    MAX_MODEL_ID_BYTES,
    Observation,
    ObservationDecoder,
    decode_model_id,
    decode_observation,
)
from .status import STATES, Awaited, ModelGuard, ModelStatus, Reach
from .times import read_time
from .version import installed_version

__version__ = installed_version()

__all__ = [
    "ADVICE",
    "DEAD_LETTER_HEADER_PREFIX",
    "FEATURE_TYPES",
    "LABEL",
    "LIVES",
    "MAX_MODEL_ID_BYTES",
    "OBSERVATION",
    "ORIGIN_HEADER",
    "REASONS",
    "RECORD_HEADER",
    "RECORD_KINDS",
    "REPLAYED_HEADER",
    "REQUEST",
    "RESPONSE",
    "SEVERITIES",
    "STATES",
    "WHATS",
    "Awaited",
    "ChangeDetails",
    "ChangeLosses",
    "DeadLetter",
    "DependenceEvent",
    "Deployment",
    "DetectorSpec",
    "FeatureChange",
    "FeatureEstimate",
    "FeatureImportance",
    "ImportanceComparison",
    "ImportanceEvent",
    "IncidentEffect",
    "IncidentEvent",
    "IncidentEvidence",
    "IncidentFeature",
    "IncidentOnset",
    "InvalidRecordError",
    "LateLabel",
    "LossDifference",
    "LossEstimate",
    "MeanEstimate",
    "ModelGuard",
    "ModelStatus",
    "Needs",
    "Observation",
    "ObservationDecoder",
    "OnsetEstimate",
    "Origin",
    "OriginPlace",
    "Place",
    "QualityFigure",
    "Reach",
    "Response",
    "ShardImportance",
    "Source",
    "SourceOrigin",
    "Topics",
    "Unsourced",
    "ValueFigures",
    "decode_arrival",
    "decode_dead_letter",
    "decode_deployment",
    "decode_json",
    "decode_model_id",
    "decode_observation",
    "decode_origin",
    "decode_shard",
    "encode_json",
    "event_headers",
    "event_id",
    "event_time",
    "find_header",
    "find_not_finite",
    "fit_dead_letter",
    "kind_of_record",
    "optional_fields",
    "read_time",
    "replayed_id",
    "source_of",
]
