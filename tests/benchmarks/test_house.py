"""What an explanation passes, on a made package with known answers; and mistakes on purpose, which are in the code."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from benchmarks.house.__main__ import main
from benchmarks.house.mutate import mutated
from benchmarks.house.mutations import MUTATIONS, Mutation
from benchmarks.house.walk import HERE, PACKAGES, Walk, recorded, summary


def test_a_walk_is_the_product_s_calls_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "__init__": "",
        "first": "from .second import twice\ndef go():\n    twice(); len('')\n    return here()\ndef here(): ...\n",
        "second": "import json\ndef twice():\n    once(); once(); json.dumps(1)\ndef once(): ...\n",
    }
    package = tmp_path / "walked_package"
    package.mkdir()
    for module, source in sources.items():
        (package / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    from walked_package.first import go  # type: ignore[import-not-found]

    go()
    before = sys.gettrace()
    walk = recorded(go, [package])
    assert sys.gettrace() is before
    first, second = "walked_package/first.py", "walked_package/second.py"
    lines = frozenset([(first, 3), (first, 4), (first, 5), (second, 3), (second, 4)])
    assert walk == Walk((first, second, second, second, first), lines)
    assert walk.of_package("walked_package") == (2, 5, 5)
    assert walk.of_package("walked") == (0, 0, 0)
    (line, *_) = summary("go", [walk, Walk((first,), frozenset([(first, 3)]))])
    assert line == "go: 1.5 files (1 to 2), 3 lines (1 to 5), 3 calls (1 to 5); median (range) of 2"


@pytest.mark.long
def test_one_explanation_and_one_record_are_walked(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["walk", "--warm-up", "30", "--observations", "20"]) == 0
    said = capfd.readouterr().out
    for name in ("IncrementalPFI.explain_one", "IncrementalSAGE.explain_one", "a record that publishes 2 events"):
        assert f"{name}: " in said
    assert "; median (range) of 2\n" in said  # every tenth record publishes
    record = said.partition("a record that publishes 2 events")[2]
    assert all(f"  {package}: " in record for package in PACKAGES)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{Path(mutation.file).stem}: {mutation.what}")
def test_each_mistake_is_one_in_the_code_as_it_is(mutation: Mutation) -> None:
    source = (HERE / mutation.file).read_text()
    ast.parse(mutated(source, mutation))
    assert all((HERE / test).is_file() for test in mutation.tests)
    with pytest.raises(SystemExit, match="once for 'the same', found it 2 times"):
        mutated(source + source, mutation._replace(what="the same"))
