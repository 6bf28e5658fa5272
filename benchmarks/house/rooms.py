"""Groups modules into rooms, and finds a graph's floors and circles."""

from __future__ import annotations

from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

from .imports import Graph

FACE = "__init__"
"""The room of a package's own `__init__`: the names that it offers."""


def room_of(module: str) -> str:
    """Return the room of a module: the sub-package it lies in, however deep, or itself at the top level."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else FACE


def room_graph(files: Graph) -> Graph:
    """Return which room needs which. A face that imports nothing and that nobody imports is no room."""
    rooms: Graph = {}
    for module, needed in files.items():
        rooms.setdefault(room_of(module), set()).update(room_of(other) for other in needed)
    for room, needed in rooms.items():
        needed.discard(room)
    if not rooms[FACE] and not any(FACE in needed for needed in rooms.values()):
        del rooms[FACE]
    return rooms


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node, each sorted, largest first."""
    beyond = {node: reachable(graph, node) for node in graph}
    found = {tuple(sorted(other for other in beyond[node] if node in beyond[other])) for node in graph}
    return sorted((list(circle) for circle in found if len(circle) > 1), key=lambda circle: (-len(circle), circle))


def reachable(graph: Graph, start: str) -> set[str]:
    """Return all nodes that a path of at least one arrow leads to."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def floors(graph: Graph) -> dict[str, int]:
    """Return each node's floor: 0 where it needs nothing, else one above the highest that it needs.

    The nodes of a circle share a floor.
    """
    one_of = {node: circle[0] for circle in circles(graph) for node in circle}
    merged: Graph = {}
    for node, needed in graph.items():
        first = one_of.get(node, node)
        merged.setdefault(first, set()).update({one_of.get(other, other) for other in needed} - {first})
    height: dict[str, int] = {}
    for node in TopologicalSorter(merged).static_order():
        height[node] = 1 + max((height[other] for other in merged[node]), default=-1)
    return {node: height[one_of.get(node, node)] for node in graph}


def implied(graph: Graph) -> set[tuple[str, str]]:
    """Return the arrows that say nothing new: the same node is also reached through another one.

    What is reached through a circle is not: there is no order among the nodes of a circle.
    """
    beyond = {node: reachable(graph, node) for node in graph}
    return {
        (node, needed)
        for node in graph
        for needed in graph[node]
        if any(
            needed in beyond[other] and other not in beyond[needed] and node not in beyond[other]
            for other in graph[node] - {needed}
        )
    }


def widths(package: Path) -> Counter[str]:
    """Return the number of modules in each folder; an `__init__` is not counted."""
    counted = Counter({package.name: 0})
    for path in package.rglob("*.py"):
        if path.name != "__init__.py":
            counted[path.parent.relative_to(package.parent).as_posix()] += 1
    return counted
