"""CloudEvents 1.0 in binary mode.

Context attributes are Kafka headers, the value is the plain event.

The headers are few and fixed, and the id must follow from the source record, so no library is asked.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .events import Place, Source

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_id(model_id: str, source: Place, n: int | None = None) -> str:
    """Return the id of the n-th event of an observation.

    A replay of the observation gives the same id.

    Examples
    --------
    >>> event_id("credit", Source("attributary.observations.v1", 3, 17), 1)
    'credit:attributary.observations.v1:3:17:1'
    >>> from attributary_topics import Unsourced
    >>> event_id("credit", Unsourced("2", 500, 1_795_000_000_000), 0)
    'credit:2:500:1795000000000:0'
    """
    if isinstance(source, Source):
        place = f"{source.topic}:{source.partition}:{source.offset}"
    else:
        place = f"{source.version}:{source.observation}:{source.time_ms}"
    return f"{model_id}:{place}" + ("" if n is None else f":{n}")


def event_headers(
    event_type: str, model_id: str, source: Place, timestamp_ms: int, n: int | None = None
) -> list[tuple[str, bytes]]:
    """Return the headers of an event.

    Parameters
    ----------
    event_type
        Short name, `importance` or `change`; becomes `attributary.<type>.v1`.
    timestamp_ms
        Kafka's timestamp of the source record, milliseconds since the epoch: not the time of sending, which a
        replay would not repeat.
    n
        Number of the event among those of the same observation.
    """
    attributes: dict[str, str | None] = {
        "ce_specversion": "1.0",
        "ce_id": event_id(model_id, source, n),
        "ce_source": f"/attributary/{source.topic if isinstance(source, Source) else 'monitor'}",
        "ce_type": f"attributary.{event_type}.v1",
        "ce_subject": model_id,
        "ce_time": event_time(timestamp_ms),
        "content-type": "application/json",
    }
    return [(name, value.encode()) for name, value in attributes.items() if value is not None]


def event_time(timestamp_ms: int) -> str | None:
    """Return the `ce_time` of an observation's events; None for no date.

    It is Kafka's timestamp as text, in UTC."""
    # A producer may stamp its records with anything, microseconds for instance: a year that no date has is left out.
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
