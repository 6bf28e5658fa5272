"""Deals partitions out to members of a group: even shares, and as few as possible move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def assign(partitions: int, members: Sequence[int], before: Mapping[int, int]) -> dict[int, int]:
    """Return the member that gets each partition.

    Parameters
    ----------
    before
        Who had them. A member keeps what it had, up to its share; shares differ by one at most.
    """
    least, more = divmod(partitions, len(members))
    had: dict[int, list[int]] = {member: [] for member in members}
    free: list[int] = []
    for partition in range(partitions):
        owner = before.get(partition)
        (free if owner is None or owner not in had else had[owner]).append(partition)
    # Who has most keeps one more, where shares cannot be equal.
    ordered = sorted(members, key=lambda member: -len(had[member]))
    shares = {member: least + (place < more) for place, member in enumerate(ordered)}
    found: dict[int, int] = {}
    for member in members:
        kept, given_up = had[member][: shares[member]], had[member][shares[member] :]
        found.update(dict.fromkeys(kept, member))
        free += given_up
    free.sort()
    for member in members:
        n = shares[member] - min(len(had[member]), shares[member])
        for _ in range(n):
            found[free.pop(0)] = member
    return dict(sorted(found.items()))
