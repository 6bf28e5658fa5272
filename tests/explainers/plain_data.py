"""What snapshots are allowed to be made of."""

from __future__ import annotations

from typing import Any

PLAIN = (str, int, float, bool, bytes, type(None))


def strangers(data: Any, path: str = "snapshot") -> list[str]:
    """Paths of everything that is not exactly a builtin: a subclass, as np.float64 is, does not count as one."""
    if type(data) is dict:
        items = list(data.items())
        return [s for k, v in items for s in (*strangers(k, f"key of {path}"), *strangers(v, f"{path}[{k!r}]"))]
    if type(data) in (list, tuple):
        return [s for i, v in enumerate(data) for s in strangers(v, f"{path}[{i}]")]
    return [] if type(data) in PLAIN else [f"{path}: {type(data).__name__}"]
