"""Error of this package, and the reasons for which it is raised."""

from __future__ import annotations

import traceback
from pathlib import Path

REASONS: dict[str, str] = {
    "empty_value": "the record has no value",
    "too_large": "the value is longer, or holds more features or text, than configured",
    "missing_model_id": "the record has no key",
    "invalid_model_id": "the key, or what a source makes of a record as the model id, is no text, too long, or holds "
    "control characters",
    "wrong_origin": "the header that says where a mapped record comes from cannot be read",
    "unknown_model": "no model of that id is configured",
    "too_many_models": "the model id is new, and its template has as many models as max_models allows",
    "model_on_two_partitions": "the model id's records arrive on more than one partition",
    "invalid_json": "the value is not JSON",
    "not_framed": "the value does not begin with the id of a schema, as clients of a schema registry write it",
    "unknown_schema": "the schema registry has no schema of that id",
    "wrong_schema": "the schema is of another kind than the source's format, or nothing can be read by it",
    "invalid_avro": "the value is not what its Avro schema says",
    "invalid_protobuf": "the value is not a message of its Protobuf schema",
    "not_cloudevent": "the record is no CloudEvent with an object as its data",
    "not_inference": "the record is no request and no response of the Open Inference Protocol",
    "wrong_tensor": "a tensor has another shape, type or number of values than it says, or than those beside it",
    "wrong_type": "a field has another type than expected",
    "undeclared_feature": "a feature is not declared: declare it below features, or do not send it",
    "not_finite": "a number is infinite",
    "out_of_bounds": "a number is outside the bounds that the configuration gives its feature, or the label",
    "out_of_range": "a number is far beyond all that its feature, or the target, has had so far",
    "too_many_labels": "more distinct labels than configured",
    "missing_feature": "the observation has no feature with a value",
    "missing_label": "the observation has no label or target",
    "missing_id": "the record has no id, by which an observation and its label are joined",
    "missing_prediction": "the record has no logged prediction, which a mirror learns",
    "wrong_time": "the event time is none, or far ahead of Kafka's timestamp of the record",
    "wrong_label": "the label or target is not of the type that the model predicts",
    "model_failed": "the model raised an exception on this observation, or predicted what are no probabilities",
    "prediction_not_finite": "the model predicts NaN, infinity or a number so large that its loss is useless",
    "ended_worker": "the worker ended twice while it handled this record",
    "duplicate_id": "an observation of the same id has come before",
    "wrong_prediction": "the logged prediction is of another kind than the model's",
    "unexpected_label": "a label in the observation, where labels come by themselves or never",
    "unexpected_record": "the record is no observation, and the configuration has nothing of its kind for the model",
    "batch_too_large": "the record's batch is larger, when it is unpacked, than configured",
    "unreadable_batch": "the record's batch is damaged, so that its records cannot be read",
    "damaged_state": "what is stored of the model is not what a worker has written",
    "foreign_type": "what is stored of the model holds a class or function that stored models may not hold",
    "not_allowed": "the configuration does not allow the class, function or file that a new version names",
    "wrong_artefact": "the file of a new version is missing, or its hash is another one",
    "unusable_model": "a new version cannot be made, loaded, explained as configured, or saved",
}
"""Why a record can end in the dead-letter topic: value of the header and of the metric's label `reason`."""


class InvalidRecordError(Exception):
    """Error of a record that cannot be used.

    It names the field, its value and what was expected.

    Parameters
    ----------
    reason
        One of `REASONS`.
    field
        Path of the field: `key`, `value`, `x.age`, `y`.
    expected
        What would have been right, in words.
    value
        What was there; cut to a readable length in the message.
    message
        Text in place of the one that is made of these.
    """

    def __init__(self, reason: str, field: str, expected: str, value: object, message: str | None = None) -> None:
        self.reason = reason
        self.field = field
        self.expected = expected
        self.value = value
        super().__init__(message or f"{field}: expected {expected}, got {shorten(value)}")


def shorten(value: object, length: int = 80) -> str:
    """Return the `repr` of a value, shortened with a mark where it is long."""
    # The repr of a hostile value can be as large as the value: cut bytes and text before, not after.
    if isinstance(value, (bytes, str)) and len(value) > length:
        return f"{value[:length]!r}… ({len(value)} in all)"
    try:
        text = repr(value)
    except RecursionError:  # JSON may be nested deeper than Python's repr goes
        return f"a deeply nested {type(value).__name__}"
    return text if len(text) <= length else text[:length] + "…"


def without_text(error: BaseException) -> str:
    """Return the type of an exception and the place where it was raised.

    Its text is left out, because it may hold values of a record.

    Of one that has a text `without_values`, it is that.
    """
    if said := getattr(error, "without_values", ""):
        return str(said)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
