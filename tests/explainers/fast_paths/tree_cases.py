"""Streams with drift for trees, and what of a tree a test may want to know."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

Row = dict[Any, Any]


def drifting(
    n: int,
    labels: Sequence[Any] = (False, True),
    *,
    numbers: int = 4,
    categories: int = 0,
    seed: int = 1,
    noise: float = 0.1,
) -> list[tuple[Row, Any]]:
    """Observations whose rule changes twice; with categories, two features of strings, of which new ones turn up."""
    rng = random.Random(seed)
    found = []
    for i in range(n):
        phase = 3 * i // n
        x: Row = {f"n{j}": rng.gauss(0, 1) if j % 2 else rng.random() * 10 for j in range(numbers)}
        score = 0.0
        if numbers:
            score = x[f"n{phase % numbers}"] + 2 * x[f"n{(phase + 1) % numbers}"]
        if categories:
            known = 2 + (categories - 2) * i // n
            x["colour"] = f"c{rng.randrange(known)}"
            x["shape"] = rng.choice("abc")
            score += int(x["colour"][1:]) * 1.5 + (3 if x["shape"] == "abc"[phase] else 0)
        label = labels[int(abs(score)) % len(labels)]
        found.append((x, rng.choice(labels) if rng.random() < noise else label))
    return found


def growing_numbers(n: int, *, features: int = 5, categories: int = 0, seed: int = 1) -> list[tuple[Row, float]]:
    """Observations of a number, whose rule changes once."""
    rng = random.Random(seed)
    found = []
    for i in range(n):
        x: Row = {f"n{j}": rng.random() for j in range(features)}
        v = list(x.values())
        y = 10 * math.sin(math.pi * v[0] * v[1]) + 20 * (v[2] - 0.5) ** 2 + (5 * v[3] if i < n // 2 else -9 * v[3])
        if categories:
            known = 2 + (categories - 2) * i // n
            x["colour"] = f"c{rng.randrange(known)}"
            y += 4 * int(x["colour"][1:])
        found.append((x, y + rng.gauss(0, 0.5)))
    return found


def branches(tree: Any) -> Iterator[Any]:
    """All branches of a tree, those of alternate trees not included."""
    todo = [tree._root]
    while todo:
        node = todo.pop()
        if hasattr(node, "children"):
            yield node
            todo += node.children


def leaves(tree: Any) -> Iterator[Any]:
    """All leaves of a tree, alternate ones not included."""
    if not hasattr(tree._root, "children"):
        yield tree._root
    for branch in branches(tree):
        yield from (child for child in branch.children if not hasattr(child, "children"))
