"""Rules that guess the roles of fields, by name first, then by values.

Never by correlation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from attributary_topics.times import UNITS, read_time, scale_of

from .fields import Field

TIME_NAMES = (
    "timestamp", "ts", "ts_ms", "time", "event_time", "created_at", "event_ts", "event_timestamp", "datetime", "date",
)  # fmt: skip
LABEL_NAMES = ("y", "label", "target", "actual", "outcome", "class", "y_true", "ground_truth")

_PREDICTION = re.compile(r"y_pred|prediction|predicted|score|proba.*|predicted_.*")
_ID = re.compile(r"(.*_)?(id|uuid|guid|key)")

_FIRST_MS, _LAST_MS = 946_684_800_000, 4_102_444_800_000
"""The years 2000 to 2099."""


@dataclass(frozen=True)
class Guess:
    """A field that is guessed to have a role, and why."""

    field: Field
    reason: str


def guess_time(fields: Iterable[Field]) -> Guess | None:
    """Return the event time: a date field by name, else with rising values."""
    dated = {id(one): times for one in fields if (times := dates(one)) is not None}
    known = [one for one in fields if id(one) in dated]
    for name in TIME_NAMES:
        for one in known:
            if one.last == name:
                rises = "rise" if one.rises(dated[id(one)]) else "do not rise"
                return Guess(one, f"its name; {unit_of(one)}; the values {rises} with the offset")
    for one in known:
        if one.rises(dated[id(one)]):
            return Guess(one, f"dates that rise with the offset; {unit_of(one)}")
    return None


def dates(one: Field) -> list[int | None] | None:
    """Return the values in milliseconds; None if not all dates in 2000-2099."""
    if not one.there or not one.kinds <= {"number", "text"} or len(one.kinds) > 1:
        return None
    found: list[int | None] = []
    for value in one.values:
        if value is None:
            found.append(None)
            continue
        try:
            time_ms = read_time(value)
        except ValueError:
            return None
        if not _FIRST_MS <= time_ms < _LAST_MS:
            return None
        found.append(time_ms)
    return found


def unit_of(one: Field) -> str:
    """Say how the times of a field are written, with the last as a date."""
    value = one.there[-1]
    at = datetime.fromtimestamp(read_time(value) / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    unit = "RFC 3339" if isinstance(value, str) else f"{UNITS[scale_of(value)]} since 1970"
    return f"{unit}, the last is {at}"


def guess_id(fields: Sequence[Field]) -> Guess | None:
    """Return the id: a field with such a name, and a unique value per record.

    The values are text or integers.
    """
    named = [one for one in fields if _ID.fullmatch(one.last) and is_id(one)]
    for one in sorted(named, key=lambda one: one.last not in ("id", "uuid")):
        return Guess(one, "its name; another value in every record")
    return None


def is_id(one: Field) -> bool:
    """Return whether all records have different texts or integers."""
    return one.is_unique and all(type(value) in (str, int) for value in one.there)


def guess_label(fields: Sequence[Field]) -> Guess | None:
    """Return the label by its name alone."""
    for name in LABEL_NAMES:
        for one in fields:
            if one.last == name and one.is_plain and one.there:
                return Guess(one, f"its name; {describe(one)}")
    return None


def guess_prediction(fields: Sequence[Field]) -> Guess | None:
    """Return the logged prediction by its name alone."""
    named = [one for one in fields if _PREDICTION.fullmatch(one.last) and one.is_plain and one.there]
    return Guess(named[0], f"its name; {describe(named[0])}") if named else None


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
        same = next((one for one in fields if [str(value) for value in one.values] == list(keys)), None)
        also = "" if same is None else f", which {same.shown} is, too"
        return "$key", f"the record's key{also}: {n_keys} values that repeat"
    for one in fields:
        repeats = one.is_plain and 2 <= one.n_distinct <= min(10_000, len(one.there) / 2)
        if repeats and _ID.fullmatch(one.last) and one.kinds <= {"text", "number"}:
            return one.expression, f"{one.n_distinct} values that repeat"
    return None


def no_feature(one: Field) -> str | None:
    """Return why a field cannot be a feature; None if it can.

    The name does not matter.
    """
    if not one.there:
        return "always null"
    if not one.is_plain:
        return f"an {'array' if 'array' in one.kinds else 'object' if 'object' in one.kinds else 'unknown type'}"
    if one.is_constant:
        return f"always {shown(one.there[0])}"
    if "text" in one.kinds and one.n_distinct > 0.95 * len(one.there) and len(one.there) > 20:
        return "text that differs in nearly every record"
    if one.is_unique and len(one.there) > 20 and all(type(value) is int for value in one.there):
        if _ID.fullmatch(one.last):
            return "an id that differs in every record"
        steps = Counter(after - before for before, after in zip(one.there, one.there[1:], strict=False))
        step, n = steps.most_common(1)[0]
        if n > 0.9 * len(one.there):  # partitions, and runs of records of which a sample is made, begin anew
            return f"it rises by {step} in every record: a row number"
    return None


def leak(one: Field, label: Field) -> str | None:
    """Return why a field alone reveals the label; None if it does not.

    It is equal to the label, or has an AUC or R² above 0.999.
    """
    pairs = [(x, y) for x, y in zip(one.values, label.values, strict=True) if x is not None and y is not None]
    if len(pairs) < 20 or len({repr(y) for _, y in pairs}) < 2:
        return None
    if all(x == y for x, y in pairs):
        return f"equal to {label.shown}"
    ys = [y for _, y in pairs]
    if label.kinds == {"number"} and len(set(ys)) > 2:
        found = max(_r2(pairs) if one.kinds == {"number"} else 0.0, _r2_of_groups(pairs))
        return f"alone it tells {label.shown} (R² {found:.4f})" if found > 0.999 else None
    auc = _auc(pairs) if one.kinds == {"number"} and len({repr(y) for y in ys}) == 2 else _share_told(pairs)
    return f"alone it tells {label.shown} (AUC {auc:.4f})" if auc > 0.999 else None


def _r2(pairs: Sequence[tuple[float, float]]) -> float:
    n = len(pairs)
    mean_x, mean_y = sum(x for x, _ in pairs) / n, sum(y for _, y in pairs) / n
    xx = sum((x - mean_x) ** 2 for x, _ in pairs)
    yy = sum((y - mean_y) ** 2 for _, y in pairs)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return xy * xy / (xx * yy) if xx > 0 and yy > 0 else 0.0


def _groups(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the labels by value; empty where values hardly repeat.

    Then each value would reveal its own label.
    """
    found: dict[Any, list[Any]] = {}
    for x, y in pairs:
        found.setdefault(x, []).append(y)
    return found if len(found) <= len(pairs) / 10 else {}


def _r2_of_groups(pairs: Sequence[tuple[Any, float]]) -> float:
    groups = _groups(pairs)
    mean = sum(y for _, y in pairs) / len(pairs)
    whole = sum((y - mean) ** 2 for _, y in pairs)
    within = sum((y - sum(ys) / len(ys)) ** 2 for ys in groups.values() for y in ys)
    return 1 - within / whole if groups and whole > 0 else 0.0


def _share_told(pairs: Sequence[tuple[Any, Any]]) -> float:
    """Return the share of labels that are the commonest of their value."""
    groups = _groups(pairs)
    return sum(max(ys.count(y) for y in set(ys)) for ys in groups.values()) / len(pairs) if groups else 0.0


def _auc(pairs: Sequence[tuple[float, Any]]) -> float:
    one = pairs[0][1]
    ranked = sorted(x for x, _ in pairs)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for rank, x in enumerate(ranked, 1):
        first.setdefault(x, rank)
        last[x] = rank
    ranks = [(first[x] + last[x]) / 2 for x, y in pairs if y == one]
    n, m = len(ranks), len(pairs) - len(ranks)
    auc = (sum(ranks) - n * (n + 1) / 2) / (n * m)
    return max(auc, 1 - auc)


def describe(one: Field) -> str:
    """Describe values in a few words: `number, 0 to 40`, `text, 3 values`."""
    kinds = " and ".join(sorted(one.kinds))
    n_null = len(one.values) - len(one.there)
    nulls = f", {n_null} of {len(one.values)} null" if n_null else ""
    if one.kinds == {"number"}:
        return f"number, {min(one.there):g} to {max(one.there):g}{nulls}"
    return f"{kinds}, {one.n_distinct} value{'' if one.n_distinct == 1 else 's'}{nulls}"


def shown(value: Any) -> str:
    """Return a value in a short line, for a comment."""
    text = repr(value)
    return text if len(text) <= 30 else text[:30] + "…"
