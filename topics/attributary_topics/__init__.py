"""Defines what goes over the wire: topic names, event types, validation and the codec.

Knows bytes and JSON; knows neither models nor Faust.
"""

from .cloudevents import event_headers, event_id
from .codec import decode_json, encode_json, find_not_finite
from .deadletters import DEAD_LETTER_HEADER_PREFIX, DeadLetter, fit_dead_letter
from .deployments import Deployment, decode_deployment
from .errors import REASONS, InvalidRecordError
from .events import (
    ChangeEvent,
    DetectorSpec,
    FeatureChange,
    FeatureImportance,
    ImportanceComparison,
    ImportanceEvent,
    Source,
)
from .names import Topics
from .observations import FEATURE_TYPES, Observation, decode_model_id, decode_observation

__all__ = [
    "DEAD_LETTER_HEADER_PREFIX",
    "FEATURE_TYPES",
    "REASONS",
    "ChangeEvent",
    "DeadLetter",
    "Deployment",
    "DetectorSpec",
    "FeatureChange",
    "FeatureImportance",
    "ImportanceComparison",
    "ImportanceEvent",
    "InvalidRecordError",
    "Observation",
    "Source",
    "Topics",
    "decode_deployment",
    "decode_json",
    "decode_model_id",
    "decode_observation",
    "encode_json",
    "event_headers",
    "event_id",
    "find_not_finite",
    "fit_dead_letter",
]
