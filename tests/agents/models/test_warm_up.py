"""What is compiled before a worker joins its group, and what `attributary check` says of it."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.models import warm_up as module
from attributary_agents.models.warm_up import warm_up

TREE = {"class": "river.tree.HoeffdingTreeClassifier"}
NEAREST = {"class": "river.neighbors.KNNClassifier"}


def config(**models: dict[str, Any]) -> Any:
    return parse_config({"models": {name: {"model": model} for name, model in models.items()}})


def test_how_each_model_is_evaluated_is_said() -> None:
    other = {"class": "river.tree.SGTClassifier"}
    found = warm_up(config(tree=TREE, nearest=NEAREST, other=other))
    assert found["tree"] == "by its fast path"
    assert found["nearest"].startswith("row by row, ")
    assert "SWINN" in found["nearest"]
    assert found["other"] == "row by row, there is no fast path for this type"


def test_a_model_that_cannot_read_made_up_observations_does_not_stop_the_start() -> None:
    picky = parse_config({"models": {"picky": {"factory": "tests.agents.models.test_warm_up:picky"}}})
    assert warm_up(picky) == {"picky": "known with the first observation"}


def picky() -> Any:
    """Wants features of its own."""
    from river import compose, tree

    return compose.FuncTransformer(salary) | tree.HoeffdingTreeClassifier()


def salary(x: dict[Any, Any]) -> dict[Any, Any]:
    return {"salary": x["salary"]}


def test_models_of_one_kind_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(module, "_rehearse", lambda model_id, _: tried.append(model_id) or "tried")
    found = warm_up(config(**{f"tree-{i}": TREE for i in range(500)}, other=NEAREST))
    assert tried == ["tree-0", "other"]
    assert len(found) == 501
