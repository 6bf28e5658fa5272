"""A small version of `make scale ARGS=state`: what it measures is there, and is put beside what another commit took."""

import json
from io import StringIO

import pytest
from benchmarks.scale import state as command
from benchmarks.scale.measure import AGES, CASES, Case, measure
from rich.console import Console


@pytest.fixture
def young(monkeypatch: pytest.MonkeyPatch) -> Case:
    case = Case(3, "young", "defaults")
    assert case in CASES
    monkeypatch.setattr(command, "CASES", (case,))
    monkeypatch.setitem(AGES, "young", 3)
    return case


def test_a_state_takes_memory_bytes_and_time() -> None:
    cost = measure(Case(3, "young", "change: null"), 2)
    assert min(vars(cost).values()) > 0.0
    assert cost.stored < cost.restored


def test_figures_are_written_and_shown_beside_those_of_another_commit(young, tmp_path, monkeypatch) -> None:
    said = StringIO()
    monkeypatch.setattr(command, "out", Console(file=said, width=200))
    before = tmp_path / "before.json"
    assert command.main(["--repeats", "2", "--write", str(before)]) == 0
    (cost,) = json.loads(before.read_text()).values()
    before.write_text(json.dumps({young.name: cost | {"stored": 2 * cost["stored"]}}))
    assert command.main(["--repeats", "2", "--beside", str(before)]) == 0
    assert "(x 0.50)" in said.getvalue()
