"""No import of a package goes in a circle, of modules or of the folders at the top of a package."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp
import pytest


@pytest.mark.parametrize("package", ["attributary_agents", "attributary_topics", "attributary_explainers"])
def test_no_import_goes_in_a_circle(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None)
    modules = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(modules) > 10
    rooms: dict[str, set[str]] = {}
    for name, imported in modules.items():
        room = _room(name)
        rooms.setdefault(room, set()).update(other for other in map(_room, imported) if other != room)
    TopologicalSorter(modules).prepare()  # raises CycleError, which names the circle
    TopologicalSorter(rooms).prepare()


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])
