"""Suggestion from the decoded records of a topic, and of its labels.

The labels are in a topic of their own, if there is such a topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from attributary_explainers.wording import did_you_mean, show_names

from ...errors import AttributaryError
from ..samples import Sample
from .fields import Field, fields_of
from .forms import Form
from .rules import (
    Guess,
    dates,
    describe,
    guess_id,
    guess_label,
    guess_model,
    guess_prediction,
    guess_time,
    is_id,
    leak,
    no_feature,
)


@dataclass
class Late:
    """Guesses about a topic with labels."""

    topic: str
    form: Form
    id: Guess | None
    y: Guess | None
    time: Guess | None
    ttl: str = "1d"
    ttl_reason: str = ""


@dataclass
class Suggestion:
    """Guesses about a topic.

    Attributes
    ----------
    features
        Fields that become features, in their order.
    left_out
        Other fields, each with the reason.
    leaks
        Fields that tell the label by themselves, each with what is said of it.
    casts
        Feature to what its values are turned into.
    """

    topic: str
    form: Form
    n_records: int
    time: Guess | None
    id: Guess | None
    y: Guess | None
    y_pred: Guess | None
    model: tuple[str, str] | None
    features: list[Field] = field(default_factory=list)
    left_out: list[tuple[Field, str]] = field(default_factory=list)
    leaks: list[tuple[Field, str]] = field(default_factory=list)
    casts: dict[str, str] = field(default_factory=dict)
    late: Late | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the suggestion is complete: a label is known, or not needed."""
        if self.late is not None:
            return self.late.y is not None and self.late.id is not None and self.id is not None
        return self.y is not None or self.form.is_inference

    @property
    def name(self) -> str:
        """The name of the section: the last part of the topic's."""
        return name_of(self.topic)

    @property
    def label(self) -> Field | None:
        """The field of the label, in the topic itself or in that of the labels."""
        guess = self.y if self.late is None else self.late.y
        return None if guess is None else guess.field

    @property
    def predicts_numbers(self) -> bool:
        """Whether the label looks like a number to predict, and not like a class."""
        label = self.label
        if label is None or label.kinds != {"number"}:
            return False
        whole = all(float(value).is_integer() for value in label.there)
        return not whole or label.n_distinct > 10


def name_of(topic: str) -> str:
    """Return a section name from a topic's last part, in valid characters."""
    last = re.sub(r"[^A-Za-z0-9_-]+", "-", re.split(r"[./\\]", re.sub(r"\.jsonl?(\.gz)?$", "", topic))[-1]).strip("-_")
    return last[:100] or "source"


def suggest(
    sample: Sample,
    form: Form,
    labels: Sample | None = None,
    label_form: Form | None = None,
    label: str | None = None,
) -> Suggestion:
    """Return the guesses about the sampled records.

    Parameters
    ----------
    form
        Format and envelope, from `forms.guess_form`: what the fields are read from.
    labels, label_form
        Of the topic with labels, where there is one.
    label
        Name of the field with the label, which then is not guessed.

    Raises
    ------
    AttributaryError
        No record has such a field.
    """
    fields, keys = _fields(sample, form)
    late = None if labels is None or label_form is None else _late(labels, label_form, fields, label)
    time = None if form.has_time else guess_time(fields)
    own_id = None if form.has_id else _id(fields, late)
    rest = [one for one in fields if all(guess is None or one is not guess.field for guess in (time, own_id))]
    y = None if late is not None or form.is_inference else _label(rest, label)
    rest = [one for one in rest if y is None or one is not y.field]
    y_pred = form.prediction or guess_prediction(rest)
    found = Suggestion(
        sample.where,
        form,
        len(sample.records),
        time,
        own_id,
        y,
        y_pred,
        form.model or guess_model(rest, keys),
        late=late,
    )
    _sort(found, [one for one in rest if y_pred is None or one is not y_pred.field])
    return found


def _fields(sample: Sample, form: Form) -> tuple[list[Field], list[str | None]]:
    """Return the fields of the roles' objects, and the keys of records.

    They are in the order of each partition.
    """
    order = sorted(
        range(len(sample.records)),
        key=lambda n: (sample.records[n].topic, sample.records[n].partition, sample.records[n].offset),
    )
    objects: list[dict[str, Any]] = []
    places: list[tuple[str, int]] = []
    keys: list[str | None] = []
    for n in order:
        record = sample.records[n]
        for one in form.objects(sample.decoded[n]):
            objects.append(one)
            places.append((record.topic, record.partition))
            keys.append(None if record.key is None else record.key.decode("utf-8", "replace"))
    return fields_of(objects, places), keys


def _sort(found: Suggestion, fields: list[Field]) -> None:
    """Say of each field without another role whether it becomes a feature."""
    nested = {one.path[0] for one in fields if len(one.path) > 1}
    for one in fields:
        if one.path[0] in nested and len(one.path) == 1 and one.kinds <= {"object"}:
            continue  # its own fields stand for it
        if reason := no_feature(one):
            found.left_out.append((one, reason))
        elif found.y is not None and (said := leak(one, found.y.field)):
            found.leaks.append((one, said))
        else:
            found.features.append(one)
            if len(one.kinds) > 1:
                found.casts[one.name] = "text"


def _id(fields: Sequence[Field], late: Late | None) -> Guess | None:
    """Return the id field, by values shared with labels where there are any."""
    if late is not None and late.id is not None:
        theirs = set(late.id.field.there)
        candidates = [one for one in fields if is_id(one)]
        shared = [one for one in candidates if theirs & set(one.there)]
        named = [one for one in shared or candidates if one.last == late.id.field.last]
        for one in [*named, *shared]:
            n = len(theirs & set(one.there))
            return Guess(one, f"{n} of the labels have the same" if n else "its name is that of the labels' id")
    return guess_id(fields)


def _label(fields: Sequence[Field], said: str | None) -> Guess | None:
    if said is None:
        return guess_label(fields)
    found = next((one for one in fields if said in (one.name, one.expression)), None)
    if found is None:
        names = [one.name for one in fields]
        near = did_you_mean(said, names) or f"; they have {show_names(names)}"
        raise AttributaryError(f"--y: {said!r} is in none of the records{near}")
    return Guess(found, f"as said; {describe(found)}")


def _late(labels: Sample, form: Form, ours: Sequence[Field], label: str | None) -> Late:
    fields, _ = _fields(labels, form)
    own_id = _shared_id(fields, ours) or guess_id(fields)
    time = None if form.has_time else guess_time(fields)
    rest = [one for one in fields if all(guess is None or one is not guess.field for guess in (time, own_id))]
    y = _label(rest, label)
    if y is None:
        names = {one.name for one in ours}
        only = [one for one in rest if one.is_plain and one.there and not one.is_constant and one.name not in names]
        if len(only) == 1:
            y = Guess(only[0], f"the only field that observations lack; {describe(only[0])}")
    late = Late(labels.where, form, own_id, y, time)
    late.ttl, late.ttl_reason = _ttl(own_id, time, ours)
    return late


def _shared_id(fields: Sequence[Field], ours: Sequence[Field]) -> Guess | None:
    best, most = None, 0
    for one in fields:
        if not is_id(one):
            continue
        for other in ours:
            if is_id(other) and (n := len(set(one.there) & set(other.there)) + (one.last == other.last)) > most:
                best, most = one, n
    return None if best is None else Guess(best, "shared with the observations; another value in every record")


def _ttl(own_id: Guess | None, time: Guess | None, ours: Sequence[Field]) -> tuple[str, str]:
    """Return how long to wait for labels, with the reason.

    Four times as long as they take in the sample, where that is seen.
    """
    at = guess_time(ours)
    if own_id is not None and time is not None and at is not None:
        mine, theirs = dates(at.field) or [], dates(time.field) or []
        theirs_by_id = dict(zip(own_id.field.values, theirs, strict=True))
        other = next((one for one in ours if is_id(one) and set(one.there) & theirs_by_id.keys()), None)
        if other is not None:
            delays = [
                theirs_by_id[key] - t
                for key, t in zip(other.values, mine, strict=True)
                if theirs_by_id.get(key) is not None and t is not None
            ]
            if delays and max(delays) > 0:
                return _duration(4 * max(delays) / 1000), (
                    f"four times the longest of {len(delays)} delays in the sample, whose median is "
                    f"{_duration(max(1.0, median(delays) / 1000))}"
                )
    return "1d", "a guess: how late labels come is not seen in the sample"


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{round(seconds / size)}{unit}"
    return f"{max(1, round(seconds))}s"
