"""Check of mapped records against the partition's `Origins`.

Reads where a record comes from; the `Origins` decide whether it is taken.
"""

from __future__ import annotations

from attributary_topics import ORIGIN_HEADER, InvalidRecordError, decode_origin, find_header, replayed_id

from ...state.taken.origins import MOST_PLACES, Origins
from ..records import Record


def takes(origins: Origins, record: Record) -> bool:
    """Return whether a record is taken, and note its origin.

    A record without the header of mapped records is always taken.

    A dead letter that somebody sends again on purpose has been judged when it came first.

    Raises
    ------
    InvalidRecordError
        The header cannot be read, or is of one origin partition too many.
    """
    if record.unread is not None:
        origins.note_gap()
        return True
    value = find_header(record.headers, ORIGIN_HEADER)
    if value is None or replayed_id(record.headers) is not None:
        return True
    try:
        return origins.takes(decode_origin(value)) == "accepted"
    except ValueError as error:
        expected = str(error).removeprefix("expected ")
    except OverflowError:
        expected = f"one of the {MOST_PLACES} origin partitions that have come first"
    raise InvalidRecordError("wrong_origin", ORIGIN_HEADER, expected, value)
