"""The events that docs/topics.md shows are those of a run, shortened.

`UPDATE_DOCS=1 pytest tests/project/test_topic_examples.py` writes them anew.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from river.datasets import synth
from support.doc_pages import same_text

from attributary_agents.config.reading import parse_config
from attributary_agents.files.source import Source
from attributary_agents.replay.replay import replay

pytestmark = pytest.mark.long
PAGE = Path(__file__).resolve().parents[2] / "docs" / "topics.md"
WIDTH = 116
_BLOCK = re.compile(r"^```json\n(\{\n(?:.*?)^\})\n```$", re.MULTILINE | re.DOTALL)

CURVES = {"pfi": {"n_samples": 2}, "pdp": {"features": ["salary"], "grid_size": 3}}

FOREST = {"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}


def _other_rule() -> Iterator[dict[str, Any]]:
    """Return credit data whose rule changes from one moment to the next."""
    first = synth.Agrawal(classification_function=1, seed=1).take(5000)
    second = synth.Agrawal(classification_function=2, seed=2).take(5000)
    return ({"x": x, "y": y} for x, y in chain(first, second))


def _events(folder: Path) -> list[dict[str, Any]]:
    config = parse_config({"models": {"credit": {"model": FOREST, "alpha": 0.002, "explainers": CURVES}}})
    replay(Source(folder / "credit.jsonl", "y", None, _other_rule, lambda: 0), "credit", config, folder)
    names = ("incidents.jsonl", "importances.jsonl")
    return [json.loads(line) for name in names for line in (folder / name).read_text().splitlines()]


def _kind(event: dict[str, Any]) -> str:
    return str(event.get("event", "importance"))


def _shortened(value: Any, name: str = "") -> Any:
    """Return an event with three digits, and the first of the features."""
    if isinstance(value, float):
        return float(f"{value:.3g}") if math.isfinite(value) else value
    if isinstance(value, list):
        return [_shortened(item) for item in value[: 3 if name in ("values", "mean", "half_width") else 1]]
    if isinstance(value, dict):
        items = list(value.items())[:1] if name == "features" else value.items()
        return {key: _shortened(item, key) for key, item in items}
    return value


def _text(value: Any, indent: int = 0) -> str:
    """Return JSON whose short items share lines."""
    if not isinstance(value, dict) or len(json.dumps(value, ensure_ascii=False)) + indent <= WIDTH - 20:
        return json.dumps(value, ensure_ascii=False)
    lines, line = [], ""
    for i, (key, item) in enumerate(value.items()):
        text = f"{json.dumps(key)}: {_text(item, indent + 2)}" + ("," if i < len(value) - 1 else "")
        if line and ("\n" in text or len(line) + len(text) + indent + 3 > WIDTH):
            lines.append(line)
            line = text
        else:
            line = f"{line} {text}" if line else text
        if "\n" in text:
            lines.append(line)
            line = ""
    lines += [line] if line else []
    pad = " " * (indent + 2)
    return "{\n" + "".join(f"{pad}{line}\n" for line in lines) + " " * indent + "}"


def test_the_events_on_the_page_are_those_of_a_run(tmp_path: Path) -> None:
    events = _events(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    shown = list(_BLOCK.finditer(page))
    assert len(shown) >= 3
    faults = []
    for block in reversed(shown):
        kind = _kind(json.loads(block[1]))
        candidates = [event for event in events if _kind(event) == kind]
        assert candidates, f"the run has no event of the kind {kind}"
        event = candidates[{"importance": 9, "incident": -1}.get(kind, 0)]
        found = _text(_shortened(event))
        if not same_text(found, block[1]):
            faults.append(f"the page shows\n{block[1]}\nand the run has\n{found}")
            page = page[: block.start(1)] + found + page[block.end(1) :]
    if os.environ.get("UPDATE_DOCS"):
        assert not os.environ.get("CI")
        PAGE.write_text(page, encoding="utf-8")
        return
    assert not faults, "\n\n".join(faults)
