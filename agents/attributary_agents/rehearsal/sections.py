"""Trial of `sources` and `labels` on a sample of their topics."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from attributary_topics import LABEL, RESPONSE, InvalidRecordError
from attributary_topics.times import UNITS, scale_of

from ..config.settings import Config
from ..config.sources import LabelsConfig, SourceConfig
from ..errors import AttributaryError
from ..expressions import RecordView, is_expression_of_names, parse, parse_text
from ..kafka.clients import client_log_muted
from ..kafka.observations import encode_value
from ..kafka.topics.origins import find_origin_topics, origin_topics
from ..sources.mapping import Mapping as RecordMapping
from ..sources.mapping import view_of
from ..sources.records import Mapped
from ..sources.samples import Sample, decode, read_lines, read_newest

N_SHOWN = 3
"""Records that are shown field by field."""

MOST_REHEARSED = 200
"""Rows of a model that are taken all the way; what records become is counted in all of the sample."""

_MOST_NAMES = 8

Section = SourceConfig | LabelsConfig


@dataclass
class Trial:
    """Outcome of a section on a sample.

    Attributes
    ----------
    key, where
        `sources.NAME` or `labels.NAME`, and the topics, or the file, that the records are from.
    n_mapped, n_passed_over
        Records that become observations or labels, and those that are passed over.
    dead_letters, examples
        Records that cannot be mapped, by reason, and what the first of each says.
    time
        How the event time is written, as its size or form tells; None where it is Kafka's timestamp.
    faults, cautions
        Expressions that find nothing in any record, and what is worth a look.
    reads
        The expression of each role, as it is configured.
    shown, mapped
        The first observations or labels, and all of them, in their order.
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
    reads: dict[str, str] = field(default_factory=dict)
    shown: list[Mapped] = field(default_factory=list)
    mapped: list[Mapped] = field(default_factory=list)


@dataclass
class LabelDelay:
    """How late the labels of a sample come.

    Attributes
    ----------
    n_joined, delay_s
        Observations of which the label is in the sample, too, and the median time from one to the other in seconds.
    n_waiting
        Observations of one model that wait at a time: the greatest rate of one times the delay.
    """

    n_joined: int
    delay_s: float | None = None
    n_waiting: int | None = None
    cautions: list[str] = field(default_factory=list)


def try_topics(config: Config, n: int) -> list[Trial]:
    """Try all sections on the newest `n` records of their topics.

    Raises
    ------
    AttributaryError
        A topic is not there, or the brokers or a schema registry cannot be reached.
    """
    partitions = find_origin_topics(config.kafka, origin_topics(config))

    async def trial(key: str, section: Section) -> Trial:
        records = await read_newest(config.kafka, {topic: partitions[topic] for topic in section.topic}, n)
        sample = await decode(", ".join(section.topic), records, section.format, config.kafka)
        return try_section(key.partition(".")[2], section, config, sample)

    with client_log_muted():
        return [asyncio.run(trial(key, section)) for key, section in _sections(config).items()]


def try_file(config: Config, name: str, path: Path, n: int) -> list[Trial]:
    """Try the section `name` on a file's first lines, values of records."""
    sections = _sections(config)
    keys = [key for key in sections if name in (key, key.partition(".")[2])]
    if len(keys) != 1:
        names = ", ".join(key.partition(".")[2] for key in sections)
        raise AttributaryError(f"--source: expected one of {names}, got {name!r}")
    section = sections[keys[0]]
    sample = asyncio.run(decode(str(path), read_lines(path, n), section.format, config.kafka))
    return [try_section(keys[0].partition(".")[2], section, config, sample)]


def _sections(config: Config) -> dict[str, Section]:
    sources = {f"sources.{name}": section for name, section in config.sources.items()}
    return {**sources, **{f"labels.{name}": section for name, section in config.labels.items()}}


def try_section(name: str, section: Section, config: Config, sample: Sample) -> Trial:
    """Map sampled records by a section, and return the findings."""
    mapping = RecordMapping(name, section, config)
    trial = Trial(mapping.at, sample.where, len(sample.records), reads=dict(_reads(section)))
    everything: list[RecordView] = []
    passed: list[RecordView] = []  # what `where` lets pass, or would
    for n, (record, decoded) in enumerate(zip(sample.records, sample.decoded, strict=True)):
        views = [view_of(record, one) for one in decoded]
        everything += views
        try:
            if n in sample.faults:
                raise sample.faults[n]
            mapped = mapping.map(record, decoded)
        except InvalidRecordError as error:
            trial.dead_letters[error.reason] = trial.dead_letters.get(error.reason, 0) + 1
            trial.examples.setdefault(error.reason, str(error))
        else:
            trial.n_mapped += bool(mapped)
            trial.n_passed_over += not mapped
            trial.mapped += mapped
            if not mapped:
                continue
        passed += views
    trial.shown = trial.mapped[:N_SHOWN]
    if everything:
        _check_expressions(trial, section, passed, everything)
        trial.time = None if section.time_read is None else _unit(section.time_read, passed)
    if section.time_read is None and any(one.time is not None for decoded in sample.decoded for one in decoded):
        trial.reads["time"] = "the format"
    if trial.n_records and not trial.n_mapped and not trial.faults:
        trial.faults.append(f"{trial.key}: none of {trial.n_records} records is mapped")
    return trial


def _reads(section: Section) -> Iterator[tuple[str, str]]:
    """Yield each role with its expression, in display order."""
    x, y_pred = (section.x, section.y_pred) if isinstance(section, SourceConfig) else (None, None)
    if isinstance(x, str):
        yield "x", x
    elif isinstance(x, dict) and isinstance(x.get("only"), list):
        yield from ((f"x.{name}", name) for name in x["only"])
    elif isinstance(x, dict) and not isinstance(x.get("all_but"), list):
        yield from ((f"x.{name}", str(text)) for name, text in x.items())
    roles = {"y": section.y, "id": section.id, "time": section.time_read, "y_pred": y_pred}
    yield from ((name, text) for name, text in roles.items() if text is not None)


def _check_expressions(
    trial: Trial, section: Section, passed: Sequence[RecordView], everything: Sequence[RecordView]
) -> None:
    """Note the expressions that find nothing in any record.

    Those of roles are tried on the records that `where` lets pass.
    """
    where, record = section.where_read, section.record_read
    if where is not None and not passed:
        if not _finds_nothing(trial, "where", where, everything):
            trial.cautions.append(f"where: {where!r} is true for none of {len(everything)} records")
        return
    if record is not None and _finds_nothing(trial, "record", record, passed):
        return
    inner = list(passed)
    if record is not None:
        inner = [view.of(value) for view in passed if isinstance(value := _value(record, view), dict)]
    x = section.x if isinstance(section, SourceConfig) and isinstance(section.x, dict) else {}
    for role, text in trial.reads.items():
        is_name = "only" in x and role.startswith("x.")
        _finds_nothing(trial, role, text, passed if role == "time" else inner, is_name=is_name)
    if isinstance(section, SourceConfig):
        left_out = x.get("all_but")
        for name in left_out if isinstance(left_out, list) else ():
            if not any(name in view.value for view in inner):
                trial.cautions.append(f"x.all_but: {name!r} is in none of {len(inner)} records")
        features = {name for one in trial.mapped for name in one.fields.get("x", ())}
        for name in section.cast:
            if trial.mapped and name not in features:
                trial.cautions.append(f"cast: no record has a feature {name!r}")
        for part in (part for model in section.model_texts or () for part in parse_text(model).parts):
            if not isinstance(part, str):
                _finds_nothing(trial, "model", part[0], inner)


def _value(text: str, view: RecordView) -> Any:
    try:
        return parse(text)(view)
    except ValueError:
        return None


def _finds_nothing(trial: Trial, role: str, text: str, views: Sequence[RecordView], *, is_name: bool = False) -> bool:
    """Note an expression, or a name, that no record has."""
    if not views or any(text in view.value if is_name else _value(text, view) is not None for view in views):
        return False
    is_path = not is_name and is_expression_of_names(text) and not text.startswith("$")
    inside = text.split(".")[:-1] if is_path else []
    while not (objects := [value for view in views if isinstance(value := _walk(view.value, inside), dict)]) and inside:
        inside.pop()
    names = list(dict.fromkeys(name for one in objects for name in one))
    they = f"{'.'.join(inside)} has" if inside else "they have"
    more = ", …" if len(names) > _MOST_NAMES else ""
    have = f"; {they} {', '.join(names[:_MOST_NAMES])}{more}" if names else ""
    trial.faults.append(f"{trial.key}.{role}: {text!r} is in none of {len(views)} records{have}")
    return True


def _walk(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _unit(text: str, views: Sequence[RecordView]) -> str | None:
    values = [value for view in views if (value := _value(text, view)) is not None]
    units = Counter(
        "RFC 3339" if isinstance(value, str) else f"{UNITS[scale_of(value)]} since 1970"
        for value in values
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )
    return " and ".join(f"{n} in {unit}" if len(units) > 1 else unit for unit, n in units.most_common()) or None


def values_of(trials: Sequence[Trial], config: Config) -> dict[str, list[bytes]]:
    """Return the last labelled observations by entry, as records of our topic.

    A label that is a record of its own is joined by its id; of a mirror the logged prediction is the label. What has no
    label in the sample is left out where the model needs one.
    """
    everything = [one for trial in trials for one in trial.mapped]
    labels = {(one.model_id, one.fields["id"]): one.fields["y"] for one in everything if one.kind == LABEL}
    responses = {(one.model_id, one.fields["id"]): one.fields for one in everything if one.kind == RESPONSE}
    rows: dict[str, list[dict[str, Any]]] = {}
    for one in everything:
        entry = config.finder.name_of(one.model_id)
        if entry is None or "x" not in one.fields:
            continue
        at = (one.model_id, one.fields.get("id"))
        fields, model = {**responses.get(at, {}), **one.fields}, config.models[entry]
        y = fields.get("y_pred") if model.mode == "mirror" else fields.get("y", labels.get(at))
        if isinstance(y, dict):  # probabilities: the most probable class
            y = max(y, key=y.__getitem__)
        if y is not None or not model.has_labels:
            rows.setdefault(entry, []).append({"x": fields["x"]} | ({} if y is None else {"y": y}))
    return {entry: [encode_value(row) for row in of[-MOST_REHEARSED:]] for entry, of in rows.items()}


def label_delays(config: Config, trials: Sequence[Trial]) -> dict[str, LabelDelay]:
    """Return how late labels are, judged by `ttl` and `max_waiting`."""
    mapped = {trial.key: trial.mapped for trial in trials}
    observations = [one for key, records in mapped.items() if key.startswith("sources.") for one in records]
    return {
        name: _label_delay(section, config, observations, mapped[f"labels.{name}"])
        for name, section in config.labels.items()
        if f"labels.{name}" in mapped and any(key.startswith("sources.") for key in mapped)
    }


def _label_delay(
    section: LabelsConfig, config: Config, observations: Sequence[Mapped], labels: Sequence[Mapped]
) -> LabelDelay:
    at = {(one.model_id, one.fields["id"]): one.time_ms for one in labels}
    delays = [at[key] - one.time_ms for one in observations if (key := (one.model_id, one.fields.get("id"))) in at]
    if not delays:
        said = "no observation and no label of the sample have an id in common: try a larger --sample"
        return LabelDelay(0, cautions=[said] if labels and observations else [])
    delay = LabelDelay(len(delays), delay_s := max(0.0, median(delays) / 1000))
    if late := sum(each > section.ttl * 1000 for each in delays):
        delay.cautions.append(f"{late} of {len(delays)} labels come later than ttl, {section.ttl:g} s")
    times: dict[str, list[int]] = {}
    for one in observations:
        times.setdefault(one.model_id, []).append(one.time_ms)
    rates = {name: 1000 * (len(of) - 1) / span for name, of in times.items() if (span := max(of) - min(of)) > 0}
    if rates:
        fastest = max(rates, key=rates.__getitem__)
        delay.n_waiting = round(rates[fastest] * delay_s)
        model = config.find(fastest)
        if model is not None and model.join is not None and delay.n_waiting > model.join.max_waiting:
            delay.cautions.append(
                f"about {delay.n_waiting} observations of {fastest} wait at a time, and max_waiting is "
                f"{model.join.max_waiting}: the oldest expire"
            )
    return delay
