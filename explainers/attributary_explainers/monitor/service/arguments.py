"""Checks a monitor's arguments at once, and makes settings of them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from inspect import iscoroutinefunction, signature
from numbers import Integral
from typing import Any, Literal, TypeVar
from uuid import UUID

from attributary_topics import InvalidRecordError, Topics, decode_model_id
from attributary_topics.arrivals import MAX_ID_LENGTH
from attributary_topics.deployments import MAX_VERSION_LENGTH

from ...change.explainer import ChangeExplainer
from ...errors import InvalidParameterError
from ...models.function import model_kind
from ...notebook.rows import as_row
from ...typing import Features
from ...validation import check_choice
from ...wording import did_you_mean
from ..explainers import OF_RESERVOIR
from ..outbox import Publisher
from ..settings import EXPLAINERS, Holdout, Mode, PublishRule, Settings, parameters_of

_T = TypeVar("_T")

DEFAULT = Settings()
"""What is watched of a model of which nothing is said."""

Id = str | int | UUID
"""By which a prediction and its label find each other."""

_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: a time behind it is of microseconds or nanoseconds."""

_SHARED = ("model", "loss", "groups", "missing", "feature_share", "seed")
"""Parameters that explainers have from the model's settings."""

_OF_CHANGE = ("model", "groups", "own_labels", "version", "seed")
"""The same of the change explainer."""


def settings_of(
    model: Any,
    *,
    mode: Literal["labelled", "unlabelled", "anomaly"] | None,
    learn: bool,
    explainers: str | Mapping[str, Mapping[str, Any]] | Sequence[str],
    change: Mapping[str, Any] | None,
    watch_loss: bool,
    quality: Sequence[str] | None,
    publish: PublishRule | Mapping[str, Any],
    **others: Any,
) -> Settings:
    """Return the settings of a model of which `Monitor.add` was told this.

    InvalidParameterError: something is not known, out of its range, or does not go with the rest.
    """
    if mode is None:
        mode = "anomaly" if model_kind(model) == "anomaly_detector" else "labelled"
    checked: Mode = check_choice("mode", mode, ("labelled", "unlabelled", "anomaly"))  # type: ignore[assignment]
    if mode == "unlabelled" and learn:
        raise InvalidParameterError("learn", "False with mode='unlabelled': there is nothing to learn from", learn)
    if mode != "labelled":  # there is no loss to go by
        watch_loss, quality = False, ()
    return Settings(
        mode=checked,
        learn=learn,
        explainers=explainers_of(explainers),
        change=_change_of(mode, learn, change),
        watch_loss=watch_loss,
        quality=(quality,) if isinstance(quality, str) else quality,
        publish=made_of("publish", publish, PublishRule),
        **others,
    )


def explainers_of(given: str | Mapping[str, Mapping[str, Any]] | Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return parameters by explainer, or raise InvalidParameterError."""
    if not isinstance(given, (str, Mapping, Sequence)):
        raise InvalidParameterError("explainers", f"names of explainers: {', '.join(EXPLAINERS)}", given)
    names = [given] if isinstance(given, str) else given
    named = names if isinstance(names, Mapping) else {name: {} for name in names}
    for name, parameters in named.items():
        check_choice("explainers", name, tuple(EXPLAINERS))
        known = {*parameters_of(EXPLAINERS[name]), "reservoir", *OF_RESERVOIR} - {*_SHARED}
        _refuse_unknown(f"explainers.{name}", parameters, known, _SHARED[1:])
    return dict(named)


def holdout_of(rows: Iterable[tuple[Features, Any]] | None) -> Holdout | None:
    """Return the rows of a hold-out, with a name that says which they are."""
    if rows is None:
        return None
    known = [(dict(as_row(x)), y) for x, y in rows]
    return Holdout(known, f"{len(known)} rows, {zlib.crc32(repr(known).encode()):08x}")


def _change_of(mode: str, learn: bool, change: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the change parameters; without a loss, with no detector."""
    if change is not None:
        _refuse_unknown("change", change, {*signature(ChangeExplainer).parameters} - {*_OF_CHANGE}, _OF_CHANGE[1:])
    if change is None or mode == "labelled":
        return change
    if mode == "anomaly" and learn:
        if change is DEFAULT.change:
            return None
        raise InvalidParameterError("change", "None for an anomaly detector that learns: its score is no loss", change)
    if change.get("detector") is not None:
        raise InvalidParameterError("change", f"no `detector` with mode={mode!r}: it reads a loss", change)
    return {"detector": None, **change}


def made_of(parameter: str, given: Any, kind: type[_T]) -> _T:
    """Return the given value as an object of a dataclass.

    A mapping has its fields. InvalidParameterError: a key is not known, or a value out of its range.
    """
    if isinstance(given, kind):
        return given
    _refuse_unknown(parameter, given, [one.name for one in fields(kind)])  # type: ignore[arg-type]
    return kind(**given)


def _refuse_unknown(parameter: str, given: Any, known: Collection[str], elsewhere: Sequence[str] = ()) -> None:
    """Refuse anything but a mapping of known keys."""
    if not isinstance(given, Mapping):
        raise InvalidParameterError(parameter, "a mapping of parameters to their values", given)
    for key in given:
        if key in elsewhere:
            raise InvalidParameterError(parameter, f"without {key}: that is given to add itself, for all of it", given)
        if key not in known:
            raise InvalidParameterError(
                parameter, "made of " + ", ".join(sorted(known)), key, hint=did_you_mean(key, known)
            )


def model_id_of(given: Any) -> str:
    """Return a valid model id, or raise InvalidParameterError."""
    try:
        if isinstance(given, str):
            return decode_model_id(given.encode())
    except (InvalidRecordError, UnicodeEncodeError):
        pass
    raise InvalidParameterError("model_id", "a text that is not empty and has no control characters", given)


def version_of(given: Any) -> str:
    """Return the name of a version; InvalidParameterError where it is none."""
    if not isinstance(given, str) or not 0 < len(given) <= MAX_VERSION_LENGTH:
        raise InvalidParameterError("version", f"a text of 1 to {MAX_VERSION_LENGTH} characters", given)
    return given


def topics_of(prefix: Any) -> Topics:
    """Return the topics of a prefix, or raise InvalidParameterError."""
    if not isinstance(prefix, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", prefix):
        raise InvalidParameterError("topic_prefix", "a text of letters, digits, dots, underscores and hyphens", prefix)
    return Topics(prefix)


def id_of(given: Any) -> str:
    """Return the id by which a prediction and its label find each other.

    17, "17" and numpy's 17 are one. InvalidParameterError: it is none. A float is none: 17.0, as a frame with gaps
    makes of 17, would never find "17".
    """
    if isinstance(given, (str, UUID)) or _is_integer(given):
        text = str(given)
        if 0 < len(text) <= MAX_ID_LENGTH:
            return text
    raise InvalidParameterError("id", f"a text of 1 to {MAX_ID_LENGTH} characters, an integer or a UUID", given)


def is_row(given: Any) -> bool:
    """Return whether this is a row that `as_row` takes, and no id."""
    return isinstance(given, Mapping) or any(hasattr(given, name) for name in ("columns", "to_dict", "_asdict"))


def time_of(given: Any) -> int:
    """Return milliseconds since 1970, or raise InvalidParameterError."""
    if _is_integer(given) and 0 <= given <= _LAST_MS:
        return int(given)
    raise InvalidParameterError(
        "time_ms", "an integer, milliseconds since 1970; of a datetime, round(1000 * time.timestamp())", given
    )


def _is_integer(given: Any) -> bool:
    return not isinstance(given, bool) and isinstance(given, Integral)


def publisher_of(given: Any) -> Publisher | None:
    """Return the publisher; InvalidParameterError if async or not callable."""
    if given is None:
        return None
    if not callable(given):
        raise InvalidParameterError("publisher", "a function of topic, key, value and headers", given)
    if iscoroutinefunction(given) or iscoroutinefunction(type(given).__call__):
        raise InvalidParameterError(
            "publisher",
            "no coroutine function, which the monitor's thread cannot await; in a function of your own, give the "
            "coroutine to your loop: asyncio.run_coroutine_threadsafe(send(…), loop).result(30)",
            given,
        )
    return given  # type: ignore[no-any-return]
