"""Mapping of foreign records to ours, by the roles of their section.

Nothing here knows Kafka. What cannot be mapped is an InvalidRecordError whose field is the key of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attributary_explainers.wording import show_names
from attributary_topics import LABEL, OBSERVATION, REQUEST, RESPONSE, InvalidRecordError, decode_model_id, read_time

from ..config.attachment import labels_of, texts_of
from ..config.settings import Config
from ..config.sources import LabelsConfig, ShadowConfig, SourceConfig
from ..expressions import RecordView, Text, parse, parse_text, paths_read
from .features import Features, failed, features
from .formats.base import Decoded
from .records import Mapped, OriginRecord
from .values import a_prediction, an_id, as_plain, scalar, wrong

_MOST_KNOWN = 100_000
"""Model ids whose entry below `models` is remembered."""

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: other times have no date."""

_NEW = ("c", "r")
"""Operations of Debezium that bring a new row."""

_TIME = "a number of s, ms, µs or ns since 1970, or RFC 3339"

Read = Callable[[RecordView], Any]

_NAMES = ("x", "y", "y_pred")


@dataclass(frozen=True)
class _Entry:
    """Needs of an entry below `models`: label, id, logged prediction.

    Each says whether it must be in the records.
    """

    needs_label: bool
    needs_id: bool
    needs_prediction: bool


@dataclass(frozen=True)
class _Role:
    """A role: its key, its expression, and how its value is read and taken."""

    field: str
    text: str
    read: Read


@dataclass(frozen=True)
class _Roles:
    """Roles of a single model id that a section writes."""

    model: Text
    x: Features | None
    y: _Role | None
    y_pred: _Role | None


class Mapping:
    """Mapper of the records of a single section.

    Parameters
    ----------
    name
        Its name below `sources` or `labels`.
    section
        What the configuration says there.
    config
        The whole configuration: which models there are.
    """

    def __init__(self, name: str, section: SourceConfig | LabelsConfig, config: Config) -> None:
        self.name, self.section, self._config = name, section, config
        self.is_labels = isinstance(section, LabelsConfig)
        self.at = f"{'labels' if self.is_labels else 'sources'}.{name}"
        self._known: dict[str, _Entry] = {}
        self._where = parse(section.where) if section.where else None
        self._record = parse(section.record_read) if section.record_read else None
        self._time = parse(section.time_read) if section.time_read else None
        self._most_ahead_ms = round(section.max_ahead * 1000)
        self._id = _role(section.id, f"{self.at}.id", an_id)
        self._roles = [self._roles_of(text) for text in texts_of(section, config.models)]

    def map(self, record: OriginRecord, decoded: Sequence[Decoded]) -> list[Mapped]:
        """Return the records made of a record, by object and model, in order.

        Nothing is returned of a record that is passed over: it has no value, or `where` is not true. One that cannot be
        mapped for one of its models or rows is mapped for none.

        Raises
        ------
        InvalidRecordError
            It is a dead letter.
        """
        found: list[Mapped] = []
        for one in decoded:
            view = view_of(record, one)
            if self._is_passed_over(view):
                continue
            time_ms = self._time_of(record, view, one)
            inner = self._inner(view)
            for roles in self._roles:
                found.append(self._mapped(inner, one, roles, time_ms))
        return found

    def time_of(self, record: OriginRecord, decoded: Sequence[Decoded]) -> int | None:
        """Return the time to merge a record by, in ms; None if it has none.

        None where nothing can be made of the record.
        """
        if not decoded:
            return None
        try:
            return self._time_of(record, view_of(record, decoded[0]), decoded[0])
        except InvalidRecordError:
            return None

    def _is_passed_over(self, view: RecordView) -> bool:
        if self.section.unwrap:
            op = view.value.get("op")
            if op == "d" or (self._where is None and op not in _NEW):  # as `where_read` says, at a fifth of its time
                return True
        return self._where is not None and self._read(self._where, view, "where") is not True

    def _read(self, read: Read, view: RecordView, role: str) -> Any:
        try:
            return read(view)
        except ValueError as error:
            raise failed(f"{self.at}.{role}", error) from None

    def _inner(self, view: RecordView) -> RecordView:
        if self._record is None:
            return view
        found = self._read(self._record, view, "record")
        if type(found) is not dict:
            raise wrong("wrong_type", f"{self.at}.record", "an object", str(self.section.record_read), found)
        return view.of(found)

    def _time_of(self, record: OriginRecord, view: RecordView, one: Decoded) -> int:
        if self._time is not None:
            said, value = str(self.section.time_read), self._read(self._time, view, "time")
        elif one.time is not None:
            said, value = "the format", one.time
        else:
            return record.timestamp_ms
        field = f"{self.at}.time"
        try:
            time_ms = read_time(value if type(value) in (int, float, str) else as_plain(value))
        except ValueError:
            raise wrong("wrong_time", field, _TIME, said, value) from None
        if not _FIRST_MS <= time_ms <= _LAST_MS:
            raise wrong("wrong_time", field, "a time of the years 1 to 9999", said, value)
        if time_ms > record.timestamp_ms + self._most_ahead_ms and record.timestamp_ms >= 0:
            ahead_s = (time_ms - record.timestamp_ms) / 1000
            expected = f"at most max_ahead, {self.section.max_ahead:g} s, after Kafka's timestamp"
            message = f"{field}: expected {expected}, it is {ahead_s:.0f} s ahead: a clock is wrong"
            raise InvalidRecordError("wrong_time", field, expected, value, message)
        return time_ms

    def _mapped(self, view: RecordView, one: Decoded, roles: _Roles, time_ms: int) -> Mapped:
        model_id = self._model_id(roles, view)
        kind = LABEL if self.is_labels else _KINDS[one.kind]
        fields: dict[str, Any] = {}
        if roles.x is not None and kind != RESPONSE:
            fields["x"] = roles.x(view, one.x)
        if roles.y is not None and (value := roles.y.read(view)) is not None:
            fields["y"] = value
        if roles.y_pred is not None and kind != REQUEST and (value := roles.y_pred.read(view)) is not None:
            fields["y_pred"] = value
        if (value := one.id if self._id is None else self._id.read(view)) is not None:
            fields["id"] = value
        fields["time"] = time_ms
        self._check_whole(fields, kind, self._known[model_id], roles)
        return Mapped(model_id, kind, time_ms, fields)

    def _check_whole(self, fields: dict[str, Any], kind: str, entry: _Entry, roles: _Roles) -> None:
        if "y" not in fields and (kind == LABEL or (kind == OBSERVATION and entry.needs_label)):
            raise self._missing("missing_label", roles.y, "y", "the label or target")
        if "id" not in fields and (kind != OBSERVATION or entry.needs_id):
            raise self._missing("missing_id", self._id, "id", "an id, by which a label finds its observation")
        if "y_pred" not in fields and entry.needs_prediction and kind in (OBSERVATION, RESPONSE):
            raise self._missing("missing_prediction", roles.y_pred, "y_pred", "the prediction that the mirror learns")

    def _missing(self, reason: str, role: _Role | None, name: str, expected: str) -> InvalidRecordError:
        if role is not None:
            return wrong(reason, role.field, expected, role.text, None)
        field = f"{self.at}.{name}"
        return InvalidRecordError(reason, field, expected, None, f"{field}: expected {expected}, the record has none")

    def _model_id(self, roles: _Roles, view: RecordView) -> str:
        field = f"{self.at}.model"
        try:
            model_id = roles.model.of(view)
        except ValueError as error:
            message = f"{field}: {error}"
            raise InvalidRecordError("invalid_model_id", field, "text or an integer", None, message) from None
        if model_id not in self._known:
            try:
                decode_model_id(model_id.encode())
            except (InvalidRecordError, UnicodeEncodeError) as error:
                said = f"{field}: {roles.model.source!r} gave {gave_id(model_id)}, and {error}"
                raise InvalidRecordError("invalid_model_id", field, "a model id", model_id, said) from None
            entry = self._entry(model_id, field)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[model_id] = entry
        return model_id

    def _entry(self, model_id: str, field: str) -> _Entry:
        models = self._config.models
        name = self._config.finder.name_of(model_id)
        if name is None:
            message = f"{field}: no model {gave_id(model_id)} under models ({show_names(models)})"
            raise InvalidRecordError("unknown_model", field, "a configured model", model_id, message)
        mode = models[name].mode
        late = any(True for _ in labels_of(name, self._config.labels, models))
        return _Entry(mode == "labelled" and not late, late, mode == "mirror")

    def _roles_of(self, text: str) -> _Roles:
        section = self.section
        if isinstance(section, LabelsConfig):
            return _Roles(parse_text(text), None, _role(section.y, f"{self.at}.y", scalar), None)
        own = section.model[text] if isinstance(section.model, dict) else ShadowConfig()

        def field(role: str) -> str:
            return f"{self.at}.{role}" if getattr(own, role) is None else f"{self.at}.model.{text}.{role}"

        x, y, y_pred = (mine if (mine := getattr(own, name)) is not None else getattr(section, name) for name in _NAMES)
        return _Roles(
            parse_text(text),
            features(x, section.cast, self._other_paths(section), field("x")),
            _role(y, field("y"), scalar),
            _role(y_pred, field("y_pred"), a_prediction),
        )

    def _other_paths(self, section: SourceConfig) -> set[tuple[str, ...]]:
        """Return the paths of roles other than that of a feature.

        They start at the object that the roles read.
        """
        # The label of one model is no feature of another.
        said = [section.id, section.y, section.y_pred]
        for own in section.model.values() if isinstance(section.model, dict) else ():
            said += [own.y, own.y_pred]
        for model in section.model_texts or ():
            said += [part[0] for part in parse_text(model).parts if not isinstance(part, str)]
        found = {path for text in said if text for path in paths_read(text)}
        at = set[tuple[str, ...]]() if section.record_read is None else paths_read(section.record_read)
        if len(at) > 1:
            return found
        inside = next(iter(at), ())
        whole = [path for text in (section.time_read, section.where) if text for path in paths_read(text)]
        n = len(inside)
        return found | {path[n:] for path in whole if path[:n] == inside and len(path) > n}


def _role(text: str | None, field: str, take: Callable[[Any, str, str], Any]) -> _Role | None:
    if text is None:
        return None
    expression = parse(text)

    def read(view: RecordView) -> Any:
        try:
            value = expression(view)
        except ValueError as error:
            raise failed(field, error) from None
        return take(value, field, text)

    return _Role(field, text, read)


def gave_id(model_id: str) -> str:
    """Return a model id as it is shown: not longer than a line."""
    return repr(model_id if len(model_id) <= 60 else model_id[:60] + "…")


_KINDS = {"observation": OBSERVATION, "request": REQUEST, "response": RESPONSE}


def view_of(record: OriginRecord, one: Decoded) -> RecordView:
    """Return an object of a record as expressions see it."""
    return RecordView(
        one.value, record.topic, record.partition, record.offset, record.timestamp_ms, record.key, record.headers
    )
