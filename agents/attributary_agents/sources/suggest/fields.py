"""Fields of sampled records, and the rules that guess their roles.

By name first, then by values; never by correlation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from statistics import StatisticsError, correlation
from typing import Any, NamedTuple

import numpy as np

from attributary_explainers.wording import printable
from attributary_topics.times import UNITS, read_time, scale_of

TIME_NAMES = (
    "timestamp", "ts", "ts_ms", "time", "event_time", "created_at", "event_ts", "event_timestamp", "datetime", "date",
)  # fmt: skip
LABEL_NAMES = ("y", "label", "target", "actual", "outcome", "class", "y_true", "ground_truth")

_PREDICTION = re.compile(r"y_pred|prediction|predicted|score|proba.*|predicted_.*")
_ID = re.compile(r"(.*_)?(id|uuid|guid|key)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_FIRST_MS, _LAST_MS = 946_684_800_000, 4_102_444_800_000
"""The years 2000 to 2099."""

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    ((int, float), "number"),
    (str, "text"),
    (dict, "object"),
    ((list, tuple), "array"),
)


@dataclass
class Field:
    """A field of the sampled records.

    Attributes
    ----------
    path
        Its names, from the object that the roles read.
    values
        Of each record; None where it has none.
    places
        Of each record its topic and partition, to see what rises with the offset.
    """

    path: tuple[str, ...]
    values: list[Any]
    places: Sequence[tuple[str, int]]

    @property
    def name(self) -> str:
        """The names, joined by dots: the feature's name."""
        return ".".join(self.path)

    @property
    def shown(self) -> str:
        """The name as it is printed."""
        return printable(self.name)

    @property
    def expression(self) -> str:
        """The expression that reads it."""
        return expression_of(self.path)

    @cached_property
    def last(self) -> str:
        """Last name in lower case with underscores, as rules compare it."""
        inner = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.path[-1])  # customerId
        return re.sub(r"[^a-z0-9]+", "_", inner.lower()).strip("_")

    @cached_property
    def there(self) -> list[Any]:
        """The values without null."""
        return [value for value in self.values if value is not None]

    @cached_property
    def kinds(self) -> set[str]:
        """Kinds of the values: boolean, number, text, object, array or other."""
        return {next((name for kind, name in _KINDS if isinstance(value, kind)), "other") for value in self.there}

    @property
    def is_plain(self) -> bool:
        """Whether all values can be a feature."""
        return not self.kinds & {"object", "array", "other"}

    @cached_property
    def n_distinct(self) -> int:
        """Number of distinct values; 0 unless all can be a feature."""
        return len({(type(value).__name__ == "bool", value) for value in self.there}) if self.is_plain else 0

    @cached_property
    def is_unique(self) -> bool:
        """Whether all records have a value, each a different value."""
        return len(self.there) == len(self.values) == self.n_distinct > 1

    @property
    def is_id(self) -> bool:
        """Whether all records have different texts or integers."""
        return self.is_unique and all(type(value) in (str, int) for value in self.there)

    @property
    def is_constant(self) -> bool:
        """Whether all records have the same value, or none has any."""
        return not self.there or (self.n_distinct == 1 and len(self.there) == len(self.values))

    @cached_property
    def times(self) -> list[int | None] | None:
        """The values in milliseconds; None if not all are dates in 2000-2099."""
        if not self.there or self.kinds not in ({"number"}, {"text"}):
            return None
        try:
            times = [None if value is None else read_time(value) for value in self.values]
        except ValueError:
            return None
        return times if all(time is None or _FIRST_MS <= time < _LAST_MS for time in times) else None

    @property
    def rises(self) -> bool:
        """Whether times nearly never fall in a partition, and are not all equal."""
        rising = steps = 0
        last: dict[tuple[str, int], int] = {}
        times = self.times or []
        for place, time in zip(self.places, times, strict=False):
            if time is not None:
                steps += place in last
                rising += place in last and time >= last[place]
                last[place] = time
        return steps > 0 and rising >= 0.98 * steps and len(set(times)) > 1

    @property
    def description(self) -> str:
        """Its values in a few words: `number, 0 to 40`, `text, 3 values`."""
        n_null = len(self.values) - len(self.there)
        nulls = f", {n_null} of {len(self.values)} null" if n_null else ""
        if self.kinds == {"number"}:
            return f"number, {min(self.there):g} to {max(self.there):g}{nulls}"
        n = f"{self.n_distinct} value{'' if self.n_distinct == 1 else 's'}"
        return f"{' and '.join(sorted(self.kinds))}, {n}{nulls}"


class Guess(NamedTuple):
    """A field that is guessed to have a role, and why."""

    field: Field
    reason: str


def expression_of(path: Sequence[str]) -> str:
    """Return the expression that reads a path; unusual names are quoted.

    Examples
    --------
    >>> expression_of(["after", "zip-code"])
    'after."zip-code"'
    """
    return ".".join(name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in path)


def fields_of(objects: Sequence[dict[str, Any]], places: Sequence[tuple[str, int]]) -> list[Field]:
    """Return the fields of objects in order, flattened by a level."""
    paths = dict.fromkeys(path for each in objects for path in _paths(each))
    return [Field(path, [_at(each, path) for each in objects], places) for path in paths]


def _paths(value: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, inner in value.items():
        yield from [(name, key) for key in inner] if isinstance(inner, dict) else [(name,)]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def guess_time(fields: Sequence[Field]) -> Guess | None:
    """Return the event time: a date field by name, else with rising values."""
    dated = [field for field in fields if field.times is not None]
    for field in (field for name in TIME_NAMES for field in dated if field.last == name):
        rises = "rise" if field.rises else "do not rise"
        return Guess(field, f"its name; {_unit(field)}; the values {rises} with the offset")
    for field in dated:
        if field.rises:
            return Guess(field, f"dates that rise with the offset; {_unit(field)}")
    return None


def _unit(field: Field) -> str:
    """Say how the times of a field are written, with the last as a date."""
    value = field.there[-1]
    at = datetime.fromtimestamp(read_time(value) / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    unit = "RFC 3339" if isinstance(value, str) else f"{UNITS[scale_of(value)]} since 1970"
    return f"{unit}, the last is {at}"


def guess_id(fields: Sequence[Field]) -> Guess | None:
    """Return the id: a field with such a name, and a unique value per record."""
    named = [field for field in fields if _ID.fullmatch(field.last) and field.is_id]
    field = min(named, key=lambda field: field.last not in ("id", "uuid"), default=None)
    return None if field is None else Guess(field, "its name; another value in every record")


def guess_ids(ours: Sequence[Field], theirs: Sequence[Field]) -> tuple[Guess | None, Guess | None]:
    """Return the ids of observations and of labels, which share most values."""

    def n_shared(pair: tuple[Field, Field]) -> int:
        return len(set(pair[0].there) & set(pair[1].there))

    pairs = [(our, their) for our in ours if our.is_id for their in theirs if their.is_id]
    pair = max(pairs, key=lambda pair: n_shared(pair) + (pair[0].last == pair[1].last), default=None)
    if pair is None or not (n_shared(pair) or pair[0].last == pair[1].last):
        return guess_id(ours), guess_id(theirs)
    reason = f"{n} of the labels have the same" if (n := n_shared(pair)) else "its name is that of the labels' id"
    return Guess(pair[0], reason), Guess(pair[1], "shared with the observations; another value in every record")


def guess_label(fields: Sequence[Field]) -> Guess | None:
    """Return the label by its name alone."""
    named = (field for name in LABEL_NAMES for field in fields if field.last == name)
    return next((_named(field) for field in named if field.is_plain and field.there), None)


def guess_prediction(fields: Sequence[Field]) -> Guess | None:
    """Return the logged prediction by its name alone."""
    named = (field for field in fields if _PREDICTION.fullmatch(field.last))
    return next((_named(field) for field in named if field.is_plain and field.there), None)


def _named(field: Field) -> Guess:
    return Guess(field, f"its name; {field.description}")


def guess_model(fields: Sequence[Field], keys: Sequence[str | None]) -> tuple[str, str] | None:
    """Return an expression that may tell models apart, and the reason.

    It is the key, or an id that repeats.

    Parameters
    ----------
    keys
        The records' keys as text.
    """
    n_keys = len({key for key in keys if key})
    if all(keys) and 2 <= n_keys <= min(10_000, len(keys) / 2):
        same = next((field for field in fields if list(map(str, field.values)) == list(keys)), None)
        also = "" if same is None else f", which {same.shown} is, too"
        return "$key", f"the record's key{also}: {n_keys} values that repeat"
    for field in fields:
        repeats = 2 <= field.n_distinct <= min(10_000, len(field.there) / 2)
        if repeats and _ID.fullmatch(field.last) and field.kinds <= {"text", "number"}:
            return field.expression, f"{field.n_distinct} values that repeat"
    return None


def no_feature(field: Field) -> str | None:
    """Return why a field cannot be a feature; None if it can."""
    if not field.there:
        return "always null"
    if not field.is_plain:
        return f"an {'array' if 'array' in field.kinds else 'object' if 'object' in field.kinds else 'unknown type'}"
    if field.is_constant:
        text = repr(field.there[0])
        return f"always {text if len(text) <= 30 else text[:30] + '…'}"
    if len(field.there) <= 20:
        return None
    if "text" in field.kinds and field.n_distinct > 0.95 * len(field.there):
        return "text that differs in nearly every record"
    if field.is_unique and all(type(value) is int for value in field.there):
        if _ID.fullmatch(field.last):
            return "an id that differs in every record"
        steps = Counter(after - before for before, after in zip(field.there, field.there[1:], strict=False))
        step, n = steps.most_common(1)[0]
        if n > 0.9 * len(field.there):  # partitions, and runs of records of which a sample is made, begin anew
            return f"it rises by {step} in every record: a row number"
    return None


def leak(field: Field, label: Field) -> str | None:
    """Return why a field alone reveals the label; None if it does not.

    It is equal to the label, or has an AUC or R² above 0.999.
    """
    pairs = [(x, y) for x, y in zip(field.values, label.values, strict=True) if x is not None and y is not None]
    n_labels = len({repr(y) for _, y in pairs})
    if len(pairs) < 20 or n_labels < 2:
        return None
    if all(x == y for x, y in pairs):
        return f"equal to {label.shown}"
    is_number = field.kinds == {"number"}
    groups: dict[Any, list[Any]] = {}
    for x, y in pairs:
        groups.setdefault(x, []).append(y)
    if len(groups) > len(pairs) / 10:  # values that hardly repeat: each would reveal its own label
        groups = {}
    if label.kinds == {"number"} and n_labels > 2:
        measure, figure = "R²", max(_r2(pairs) if is_number else 0.0, _r2_of_groups(groups))
    elif is_number and n_labels == 2:
        measure, figure = "AUC", _auc(pairs)
    else:
        most = sum(Counter(ys).most_common(1)[0][1] for ys in groups.values())
        measure, figure = "AUC", most / len(pairs)
    return f"alone it tells {label.shown} ({measure} {figure:.4f})" if figure > 0.999 else None


def _r2(pairs: Sequence[tuple[float, float]]) -> float:
    try:
        return correlation(*zip(*pairs, strict=True)) ** 2
    except StatisticsError:  # a field that is constant where the label is there
        return 0.0


def _r2_of_groups(groups: dict[Any, list[float]]) -> float:
    whole = np.var([y for ys in groups.values() for y in ys]) if groups else 0.0
    n = sum(map(len, groups.values()))
    return float(1 - sum(len(ys) * np.var(ys) for ys in groups.values()) / (n * whole)) if whole > 0 else 0.0


def _auc(pairs: Sequence[tuple[float, Any]]) -> float:
    first = [x for x, y in pairs if y == pairs[0][1]]
    others = np.sort([x for x, y in pairs if y != pairs[0][1]])
    ranks = np.searchsorted(others, first, "left") + np.searchsorted(others, first, "right")
    auc = float(np.mean(ranks)) / 2 / len(others)
    return max(auc, 1 - auc)
