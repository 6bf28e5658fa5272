"""First offsets of partitions: the stored position, else by `max_age`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...kafka.readers import Place, TopicFollower
from ...kafka.topics.origins import OriginTopic


class MadeAnewError(Exception):
    """A topic was replaced, so the store's records of it are obsolete."""


@dataclass(frozen=True)
class Starts:
    """First offsets of partitions, and their ends at the time of the decision."""

    offsets: Mapping[Place, int]
    ends: Mapping[Place, int]


def check_ids(topics: Mapping[str, OriginTopic], known: Mapping[str, str]) -> None:
    """Raise MadeAnewError where a topic has another id than it had."""
    for name, topic in topics.items():
        if topic.id and known.get(name) not in (None, "", topic.id):
            raise MadeAnewError(f"topic {name} has been made anew")


async def find_starts(
    follower: TopicFollower,
    topics: Mapping[str, OriginTopic],
    positions: Mapping[Place, int],
    whole: str,
    since_ms: int,
) -> Starts:
    """Return the offsets from which to read, and the ends of partitions.

    Parameters
    ----------
    positions
        Where the store has read to.
    whole
        Topic that is read from its beginning, whatever its records' times are: it is compacted.
    since_ms
        Time from which on the others are read where the store has read nothing yet.

    Raises
    ------
    MadeAnewError
        A partition ends before where the store has read to.
    """
    places = [(topic.name, number) for topic in topics.values() for number in topic.partitions]
    if not places:
        return Starts({}, {})
    bounds = await follower.bounds(places)
    for place, (_, end) in bounds.items():
        if positions.get(place, 0) > end:
            raise MadeAnewError(f"{place[0]}[{place[1]}] ends at {end}, and was read to {positions[place]}")
    new = [place for place in places if place not in positions and place[0] != whole]
    found = await follower.offsets_at(new, since_ms) if new else {}
    offsets: dict[Place, int] = {}
    for place, (begin, end) in bounds.items():
        if place in positions:
            offsets[place] = max(positions[place], begin)
        elif place[0] == whole:
            offsets[place] = begin
        else:
            at = found[place]
            offsets[place] = end if at is None else max(at, begin)
    return Starts(offsets, {place: end for place, (_, end) in bounds.items()})
