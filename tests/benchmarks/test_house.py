"""The commands that measure the code, on tiny made checkouts with known answers; and what they must find in ours."""

from __future__ import annotations

import ast
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from benchmarks.house import speed, values
from benchmarks.house.__main__ import main
from benchmarks.house.checkout import HERE, PACKAGES, definer, package_folder
from benchmarks.house.count import Recorder, Walk, summary
from benchmarks.house.events import difference
from benchmarks.house.graph import House, houses
from benchmarks.house.imports import FUNCTION, MODULE, TYPING, import_graph
from benchmarks.house.lines import Size, folder_sizes, part_sizes, size_of
from benchmarks.house.mutate import mutated
from benchmarks.house.mutations import MUTATIONS, Mutation
from benchmarks.house.rooms import circles, floors, implied, room_graph

MADE = {
    "__init__": "from .top import serve\n",
    "top": "from __future__ import annotations\nimport json\nfrom .middle import do\nfrom .low import errors\n",
    "middle.__init__": "from .work import do as do\n",
    "middle.work": (
        "import typing\nfrom typing import TYPE_CHECKING\nfrom ..low.errors import Fault\n"
        "if TYPE_CHECKING:\n    from .. import top\n"
        "if typing.TYPE_CHECKING:\n    from ..top import serve\nelse:\n    from ..low.deep import well\n"
        "def do():\n    from ..low import deep\n    import_module('.other', __package__)\n"
    ),
    "middle.other": "class Fault: ...\n",
    "low.__init__": "",
    "low.errors": "class Fault: ...\n",
    "low.deep.__init__": "",
    "low.deep.well": "import made.low.errors\ndef dig(): ...\n",
}
WORK = "made.middle.work"


def written(folder: Path, modules: dict[str, str], name: str = "made") -> Path:
    package = folder / name
    for module, source in modules.items():
        path = package.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return package


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return written(tmp_path, MADE)


def test_each_kind_of_import_is_told_apart(made: Path) -> None:
    graphs = import_graph(made)
    assert graphs[MODULE] == {
        "made": {"made.top"},
        "made.top": {"made.middle", "made.low.errors"},
        "made.middle": {WORK},
        WORK: {"made.low.errors", "made.low.deep.well"},
        "made.middle.other": set(),
        "made.low": set(),
        "made.low.errors": set(),
        "made.low.deep": set(),
        "made.low.deep.well": {"made.low.errors"},
    }
    assert {name: needed for name, needed in graphs[TYPING].items() if needed} == {WORK: {"made.top"}}
    assert {name: needed for name, needed in graphs[FUNCTION].items() if needed} == {
        WORK: {"made.low.deep", "made.middle.other"}
    }


def test_rooms_floors_and_circles_of_a_made_package(made: Path) -> None:
    house = House.of(made)
    at_run_time = room_graph(house.kinds[MODULE])
    assert at_run_time == {"__init__": {"top"}, "top": {"middle", "low"}, "middle": {"low"}, "low": set()}
    assert floors(at_run_time) == {"low": 0, "middle": 1, "top": 2, "__init__": 3}
    assert implied(at_run_time) == {("top", "low")}
    assert circles(house.kinds[MODULE]) == []
    assert circles(house.files) == [["made.middle", "made.middle.work", "made.top"]]
    assert circles(house.rooms) == [["middle", "top"]]
    assert floors(house.rooms) == {"low": 0, "middle": 1, "top": 1, "__init__": 2}
    assert house.widths == {"made": 1, "made/middle": 2, "made/low": 1, "made/low/deep": 1}
    said = "\n".join(house.report())
    assert "made: 5 modules in 4 folders; widest made/middle: 2" in said
    assert "4 rooms on 3 floors, 5 arrows" in said
    assert "made.middle <-> made.middle.work <-> made.top" in said


def test_two_circles_that_touch_are_one_and_others_are_apart() -> None:
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert floors(graph) == {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0, "f": 2}


def test_the_picture_is_svg_with_every_room_and_arrow_and_the_same_every_time(made: Path) -> None:
    house = House.of(made)
    picture = house.picture()
    assert picture == House.of(made).picture()
    svg = ET.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in svg.iter(f"{space}text")]
    assert {"__init__", "top", "middle · 3", "low · 4"} <= set(texts)
    arrows = [path.get("class") for path in svg.iter(f"{space}path") if path.get("marker-end")]
    assert sorted(str(kind) for kind in arrows) == ["circle", "circle", "direct", "direct", "direct"]


def test_arrows_point_down_where_there_is_no_circle(tmp_path: Path) -> None:
    sources = {"__init__": "", "a": "from . import b\nfrom . import c", "b": "from . import c", "c": ""}
    svg = ET.fromstring(House.of(written(tmp_path, sources)).picture())
    starts_and_ends = []
    for path in svg.iter("{http://www.w3.org/2000/svg}path"):
        if path.get("marker-end"):
            points = str(path.get("d")).removeprefix("M").replace("C", " ").split(" ")
            starts_and_ends.append((float(points[0].split(",")[1]), float(points[-1].split(",")[1])))
    assert len(starts_and_ends) == 3
    assert all(start < end for start, end in starts_and_ends)


def checkout(folder: Path, *, cli: str = "") -> Path:
    for package, home in PACKAGES.items():
        written(folder / home, {"__init__": "", "one": "from . import two", "two": "", "cli": cli}, package)
    return folder


def test_the_check_fails_until_the_picture_is_drawn_and_after_an_import_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = checkout(tmp_path)
    assert main(["graph", "--check", str(place)]) == 1
    assert "make graph" in capsys.readouterr().out
    assert main(["graph", str(place)]) == 0
    assert main(["graph", "--check", str(place)]) == 0
    (place / "agents" / "attributary_agents" / "two.py").write_text("from . import cli")
    assert main(["graph", "--check", str(place)]) == 1


def test_code_lines_are_those_without_comments_docstrings_and_empty_lines() -> None:
    source = (
        '"""Head\n\nof it."""\n\n# why\n'
        'x = """a\n\nb"""  # three lines of code\n\n\n'
        'def f():\n    "Doc."\n    return (\n        1\n    )\n'
    )
    assert size_of(source) == Size(files=1, code=7, all=15)


def test_lines_are_counted_by_folder_and_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = checkout(tmp_path / "old"), checkout(tmp_path / "new", cli="x = 1\ny = 2\n")
    written(new, {"test_it": "assert True\n"}, "tests")
    written(new, {"left_out": "assert True\n"}, "build")
    written(new, {"left_out": "assert True\n"}, ".venv")
    assert part_sizes(folder_sizes(new)) == {"product": Size(12, 9, 9), "tests": Size(1, 1, 1)}
    assert main(["lines", str(old), str(new)]) == 0
    product = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("product"))
    assert product.split() == ["product", "12", "3", "3", "|", "12", "9", "9", "|", "+0", "+6", "+6"]
    assert main(["lines", *[str(old)] * 3]) == 2


def test_a_walk_is_the_product_s_calls_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "__init__": "",
        "first": "from .second import twice\ndef go():\n    twice(); len('')\n    return here()\ndef here(): ...\n",
        "second": "import json\ndef twice():\n    once(); once(); json.dumps(1)\ndef once(): ...\n",
    }
    package = written(tmp_path, sources, "walked_package")
    monkeypatch.syspath_prepend(str(tmp_path))
    from walked_package.first import go  # type: ignore[import-not-found]

    go()
    before = sys.gettrace()
    walk = Recorder([str(package)]).walk(go)
    assert sys.gettrace() is before
    first, second = "walked_package/first.py", "walked_package/second.py"
    lines = frozenset([(first, 3), (first, 4), (first, 5), (second, 3), (second, 4)])
    assert walk == Walk((first, second, second, second, first), lines)
    assert (walk.n_files, walk.n_changes, walk.of_package("walked_package")) == (2, 3, (2, 5, 5))
    assert walk.of_package("walked") == (0, 0, 0)
    (line, *_) = summary("go", [walk, Walk((first,), frozenset([(first, 3)]))], ["walked_package"])
    assert line == (
        "go: 1.5 files (1 to 2), 3 lines (1 to 5), 3 calls (1 to 5), 2 changes of file (1 to 3); median (range) of 2"
    )


def test_what_defines_a_name_is_found_wherever_it_lies(made: Path) -> None:
    assert definer(made, "do") == WORK
    assert definer(made, "dig") == "made.low.deep.well"
    with pytest.raises(LookupError, match="expected one module of made to define Fault"):
        definer(made, "Fault")
    with pytest.raises(LookupError, match="found none"):
        definer(made, "serve")


@pytest.mark.long
def test_one_explanation_and_one_record_are_walked(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["walk", "--warm-up", "30", "--observations", "20"]) == 0
    said = capfd.readouterr().out
    for name in ("IncrementalPFI.explain_one", "IncrementalSAGE.explain_one", "a record that publishes 2 events"):
        assert f"{name}: " in said
    assert "; median (range) of 2\n" in said  # every tenth record publishes
    record = said.partition("a record that publishes 2 events")[2]
    assert all(f"  {package}: " in record for package in PACKAGES)


REPLAY = """
import pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
rows = len(pathlib.Path(sys.argv[2]).read_text().splitlines()) - 1
(out / "importances.jsonl").write_text('{{"rows": %d, "pfi": [1, {value}]}}\\n' % rows)
(out / "incidents.jsonl").write_text("")
(out / "dead-letters.jsonl").write_text({dead_letters!r})
"""


def test_the_events_of_two_checkouts_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {
        name: checkout(tmp_path / name, cli=REPLAY.format(value=value, dead_letters=letters))
        for name, value, letters in (("one", 2.0, ""), ("same", 2.0, ""), ("other", 2.5, ""), ("lost", 2.0, "{}"))
    }
    some = ["--rows", "10", "--cases", "demo", "friedman-linear"]
    assert main(["events", str(places["one"]), "--against", str(places["same"]), *some]) == 0
    assert capsys.readouterr().out.count("equal, byte for byte") == 4
    assert main(["events", str(places["one"]), "--against", str(places["other"]), *some]) == 1
    said = capsys.readouterr().out
    assert "DIFFERENT: 1 of 1 events; the first is event 1" in said
    assert "event.pfi[1]: 2.5 -> 2.0 (by 0.2 of its size)" in said
    with pytest.raises(SystemExit, match="replay of demo"):
        main(["events", str(places["lost"]), *some])


def test_a_difference_names_the_field_and_how_much_it_is(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    events = [{"n": 1, "a": {"x": 1.0}}, {"n": 2, "a": {"x": 4.0}, "more": True}, {"n": 3, "a": {"x": 1.0}}]
    one.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert difference(one, one) == ""
    changed = [events[0], {"n": 2, "a": {"x": 3.0}}]
    other.write_text("".join(json.dumps(event) + "\n" for event in changed))
    said = difference(one, other)
    assert "DIFFERENT: 2 of 3 events; the first is event 2" in said
    assert "event.a.x: 4.0 -> 3.0 (by 0.25 of its size)" in said
    assert "event.more: True -> None\n" in said
    assert "largest difference of a number in all events: 0.25 of its size" in said
    other.write_text(one.read_text().replace(": ", ":"))
    assert "another way or order" in difference(one, other)


@pytest.mark.parametrize(
    ("kind", "label", "cells", "grid"),
    [("forest", "1", "xyz", ["x", "y", "z"]), ("tree", "0.25", "123", [1.0, 2.0, 3.0])],
)
def test_the_values_that_no_event_carries_are_written(
    tmp_path: Path, kind: str, label: str, cells: str, grid: list[object]
) -> None:
    stream, out = tmp_path / "stream.csv", tmp_path / "values.jsonl"
    stream.write_text("a,b,y\n" + "".join(f"{n / 100},{cells[n % 3]},{label if n % 2 else 0}\n" for n in range(510)))
    assert values.main([kind, str(stream), str(out)]) == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [event["observation"] for event in found] == [250, 500]
    assert all(set(event["pdp"]) == {"a", "b"} and "mdi" in event for event in found)
    assert sorted(found[1]["pdp"]["b"][0]) == grid


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_goes_in_a_circle(package: str) -> None:
    house = House.of(package_folder(HERE, package))
    assert sum(house.widths.values()) > 5
    assert circles(house.files) == []
    assert circles(house.rooms) == []


@pytest.mark.long
def test_the_committed_pictures_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert [house.name for house in houses(HERE)] == list(PACKAGES)
    assert main(["graph", "--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(("after", "code", "said"), [(1.0, 0, "0 of 1 rows are dearer"), (1.1, 1, "DEARER")])
def test_speed_tells_a_row_whose_lower_quartile_is_above_the_allowance(
    after: float, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = iter([1.0, 1.0, 1.1, 1.1, 0.9, 0.9])  # before and after of a turn meet the same noise
    factors = {Path("before"): 1.0, Path("after"): after}
    monkeypatch.setattr(
        speed, "measure", lambda checkout, args: {("tree", "iPFI"): 2.0 * factors[checkout] * next(noise)}
    )
    assert main(["speed", "after", "--against", "before"]) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{Path(mutation.file).stem}: {mutation.what}")
def test_each_mistake_is_one_in_the_code_as_it_is(mutation: Mutation) -> None:
    source = (HERE / mutation.file).read_text()
    ast.parse(mutated(source, mutation))
    assert all((HERE / test).is_file() for test in mutation.tests)
    with pytest.raises(SystemExit, match="once for 'the same', found it 2 times"):
        mutated(source + source, mutation._replace(what="the same"))
