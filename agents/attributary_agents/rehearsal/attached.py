"""Trial of foreign topics' sections on sampled records.

It tells the result of each record, and which expressions find nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from attributary_topics import LABEL, RESPONSE, InvalidRecordError
from attributary_topics.times import UNITS, scale_of

from ..config.settings import Config
from ..config.sources import LabelsConfig, SourceConfig
from ..expressions import RecordView, is_expression_of_names, parse, parse_text
from ..sources.mapping import Mapping as RecordMapping
from ..sources.records import Mapped, OriginRecord
from ..sources.samples import Sample

N_SHOWN = 3
"""Records that are shown field by field."""

_MOST_NAMES = 8


@dataclass
class Tried:
    """Result of a section on sampled records.

    Attributes
    ----------
    key
        `sources.NAME` or `labels.NAME`.
    where
        The topics, or the file, that the records are from.
    n_mapped, n_passed_over
        Records that become observations or labels, and those that are passed over.
    dead_letters
        Records that cannot be mapped, by reason; `examples` has what the first of each says.
    time
        How the event time is written, as its size or form tells; None where it is Kafka's timestamp.
    faults
        Expressions that find nothing in any record.
    cautions
        What is worth a look.
    shown
        The first observations or labels.
    reads
        The expression of each field, as it is configured.
    found
        All that the records become, in their order, with the index of each's record.
    """

    key: str
    where: str
    n_records: int = 0
    n_mapped: int = 0
    n_passed_over: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    time: str | None = None
    faults: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    shown: list[Mapped] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)
    found: list[Mapped] = field(default_factory=list)

    @property
    def works(self) -> bool:
        """Whether all expressions find something, and some records are mapped.

        The latter is asked only where there are records.
        """
        return not self.faults and (self.n_mapped > 0 or not self.n_records)


def try_section(name: str, section: SourceConfig | LabelsConfig, config: Config, sample: Sample) -> Tried:
    """Map sampled records by a section, and return the findings."""
    mapping = RecordMapping(name, section, config)
    tried = Tried(mapping.at, sample.where, len(sample.records))
    views: list[RecordView] = []
    for n, (record, decoded) in enumerate(zip(sample.records, sample.decoded, strict=True)):
        try:
            if n in sample.faults:
                raise sample.faults[n]
            found = mapping.map(record, decoded)
        except InvalidRecordError as error:
            tried.dead_letters[error.reason] = tried.dead_letters.get(error.reason, 0) + 1
            tried.examples.setdefault(error.reason, str(error))
            views += [_view(record, one.value) for one in decoded]
            continue
        tried.n_mapped += bool(found)
        tried.n_passed_over += not found
        if found:
            views += [_view(record, one.value) for one in decoded]
        tried.found += found
    tried.shown = tried.found[:N_SHOWN]
    tried.reads = dict(_reads(section))
    everything = [
        _view(record, one.value)
        for record, decoded in zip(sample.records, sample.decoded, strict=True)
        for one in decoded
    ]
    if everything:
        _look_for_nothing(tried, section, views, everything)
        tried.time = _unit(section, views)
    if section.time_read is None and any(one.time is not None for decoded in sample.decoded for one in decoded):
        tried.reads["time"] = "the format"
    return tried


def _view(record: OriginRecord, value: Any) -> RecordView:
    return RecordView(
        value, record.topic, record.partition, record.offset, record.timestamp_ms, record.key, record.headers
    )


def _reads(section: SourceConfig | LabelsConfig) -> Iterator[tuple[str, str]]:
    """Yield each role with its expression, in display order."""
    if isinstance(section, SourceConfig) and isinstance(section.x, dict):
        only = section.x.get("only")
        if isinstance(only, list):
            yield from ((f"x.{name}", name) for name in only)
        elif not isinstance(section.x.get("all_but"), list):
            yield from ((f"x.{name}", str(text)) for name, text in section.x.items())
    elif isinstance(section, SourceConfig) and isinstance(section.x, str):
        yield "x", section.x
    roles = {"y": section.y, "id": section.id, "time": section.time_read}
    if isinstance(section, SourceConfig):
        roles["y_pred"] = section.y_pred
    yield from ((name, text) for name, text in roles.items() if text is not None)


def _look_for_nothing(
    tried: Tried, section: SourceConfig | LabelsConfig, views: Sequence[RecordView], everything: Sequence[RecordView]
) -> None:
    """Note the expressions that find nothing in any record.

    Expressions of roles are tried on the records that `where` lets pass.
    """
    where, record = section.where_read, section.record_read
    if where is not None and not views:
        if _finds_nothing(where, everything):
            _note(tried, "where", where, everything)
        else:
            tried.cautions.append(f"where: {where!r} is true for none of {len(everything)} records")
        return
    if record is not None and _finds_nothing(record, views):
        _note(tried, "record", record, views)
        return
    inner = list(views)
    if record is not None:
        inner = [view.of(value) for view in views if isinstance(value := _found(record, view), dict)]
    is_plain_names = isinstance(section, SourceConfig) and isinstance(section.x, dict) and "only" in section.x
    for role, text in tried.reads.items():
        of = views if role == "time" else inner
        if is_plain_names and role.startswith("x."):
            if of and not any(text in view.value for view in of):
                _say(tried, role, text, of, ())
        elif _finds_nothing(text, of):
            _note(tried, role, text, of)
    if isinstance(section, SourceConfig):
        _look_at_names(tried, section, inner)
        for model in section.model_texts or ():
            for part in parse_text(model).parts:
                if not isinstance(part, str) and _finds_nothing(part[0], inner):
                    _note(tried, "model", part[0], inner)


def _look_at_names(tried: Tried, section: SourceConfig, views: Sequence[RecordView]) -> None:
    left_out = section.x.get("all_but") if isinstance(section.x, dict) else None
    for name in left_out if isinstance(left_out, list) else ():
        if not any(name in view.value for view in views):
            tried.cautions.append(f"x.all_but: {name!r} is in none of {len(views)} records")
    features = {name for one in tried.found for name in one.fields.get("x", ())}
    for name in section.cast:
        if tried.found and name not in features:
            tried.cautions.append(f"cast: no record has a feature {name!r}")


def _found(text: str, view: RecordView) -> Any:
    try:
        return parse(text)(view)
    except ValueError:
        return None


def _finds_nothing(text: str, views: Sequence[RecordView]) -> bool:
    return bool(views) and all(_found(text, view) is None for view in views)


def _note(tried: Tried, role: str, text: str, views: Sequence[RecordView]) -> None:
    """Note that an expression finds nothing, with the names that are there."""
    path = tuple(text.split(".")) if is_expression_of_names(text) and not text.startswith("$") else ()
    _say(tried, role, text, views, path[:-1])


def _say(tried: Tried, role: str, text: str, views: Sequence[RecordView], inside: tuple[str, ...]) -> None:
    while inside and not any(isinstance(_walk(view.value, inside), dict) for view in views):
        inside = inside[:-1]
    objects = [found for view in views if isinstance(found := _walk(view.value, inside), dict)]
    names = list(dict.fromkeys(name for one in objects for name in one))
    more = ", …" if len(names) > _MOST_NAMES else ""
    they = f"{'.'.join(inside)} has" if inside else "they have"
    have = f"; {they} {', '.join(names[:_MOST_NAMES])}{more}" if names else ""
    tried.faults.append(f"{tried.key}.{role}: {text!r} is in none of {len(views)} records{have}")


def _walk(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _unit(section: SourceConfig | LabelsConfig, views: Sequence[RecordView]) -> str | None:
    text = section.time_read
    if text is None:
        return None
    values = [value for view in views if (value := _found(text, view)) is not None]
    kinds = Counter(
        "RFC 3339" if isinstance(value, str) else f"{UNITS[scale_of(value)]} since 1970"
        for value in values
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )
    return " and ".join(f"{n} in {unit}" if len(kinds) > 1 else unit for unit, n in kinds.most_common()) or None


def rows_of(tried: Mapping[str, Tried], config: Config) -> dict[str, list[dict[str, Any]]]:
    """Return the values for a rehearsal: labelled observations by entry.

    A label that is a record of its own is joined by its id; of a mirror the logged prediction is the label. What has no
    label in the sample is left out where the model needs one.
    """
    everything = [one for each in tried.values() for one in each.found]
    labels = {(one.model_id, one.fields["id"]): one.fields["y"] for one in everything if one.kind == LABEL}
    answers = {(one.model_id, one.fields["id"]): one.fields for one in everything if one.kind == RESPONSE}
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in everything:
        entry = config.finder.name_of(one.model_id)
        if entry is None or "x" not in one.fields:
            continue
        at = (one.model_id, one.fields.get("id"))
        fields = {**answers.get(at, {}), **one.fields}
        mode = config.models[entry].mode
        y = fields.get("y_pred") if mode == "mirror" else fields.get("y", labels.get(at))
        if isinstance(y, dict):  # probabilities: the most probable class
            y = max(y, key=y.__getitem__)
        if y is not None or not config.models[entry].has_labels:
            rows.setdefault(entry, []).append({"x": fields["x"]} | ({} if y is None else {"y": y}))
    return rows


@dataclass
class Waiting:
    """Delay of labels in the sample, and observations waiting meanwhile.

    Attributes
    ----------
    n_joined
        Observations of which the label is in the sample, too.
    delay_s
        Median time from observation to label in seconds; None where none is joined.
    n_waiting
        Observations of one model that wait at a time: the greatest rate of one times the delay.
    """

    n_joined: int
    delay_s: float | None = None
    n_waiting: int | None = None
    cautions: list[str] = field(default_factory=list)


def judge_waiting(name: str, config: Config, tried: Mapping[str, Tried]) -> Waiting:
    """Return a sample's label delays, judged by `ttl` and `max_waiting`."""
    section = config.labels[name]
    labels = {(one.model_id, one.fields["id"]): one.time_ms for one in tried[f"labels.{name}"].found}
    observed = [one for key, each in tried.items() if key.startswith("sources.") for one in each.found]
    delays = [labels[at] - one.time_ms for one in observed if (at := (one.model_id, one.fields.get("id"))) in labels]
    if not delays:
        said = "no observation and no label of the sample have an id in common: try a larger --sample"
        return Waiting(0, cautions=[said] if labels and observed else [])
    found = Waiting(len(delays), max(0.0, median(delays) / 1000))
    late = sum(delay > section.ttl * 1000 for delay in delays)
    if late:
        found.cautions.append(f"{late} of {len(delays)} labels come later than ttl, {section.ttl:g} s")
    rates = {model_id: rate for model_id, times in _times(observed).items() if (rate := _rate(times)) is not None}
    if rates:
        assert found.delay_s is not None
        fastest = max(rates, key=rates.__getitem__)
        found.n_waiting = round(rates[fastest] * found.delay_s)
        model = config.find(fastest)
        if model is not None and model.join is not None and found.n_waiting > model.join.max_waiting:
            found.cautions.append(
                f"about {found.n_waiting} observations of {fastest} wait at a time, and max_waiting is "
                f"{model.join.max_waiting}: the oldest expire"
            )
    return found


def _times(observed: Sequence[Mapped]) -> dict[str, list[int]]:
    times: dict[str, list[int]] = {}
    for one in observed:
        times.setdefault(one.model_id, []).append(one.time_ms)
    return times


def _rate(times: Sequence[int]) -> float | None:
    """Return observations a second; None where it cannot be told."""
    span_s = (max(times) - min(times)) / 1000
    return (len(times) - 1) / span_s if len(times) > 1 and span_s > 0 else None
