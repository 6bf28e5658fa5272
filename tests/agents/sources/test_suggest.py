"""`attributary sources suggest`: what is printed loads, maps every sampled record, and a model works with that.

The data sets are scikit-learn's and River's own, and made ones with what is awkward in real topics.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.data import elec2
from click.testing import CliRunner, Result
from river import datasets
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.rehearsal.rehearsal import rehearse
from attributary_agents.sources.mapping import Mapping
from attributary_topics import encode_json

from .made import mapped

NOW_S = 1_760_000_000
Rows = Sequence[dict[str, Any]]


def suggested(tmp_path: Path, rows: Rows, *args: str, labels: Rows | None = None) -> Result:
    """What the command says of these rows, the values of a topic `shop.rentals`, and of labels in `shop.counts`."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    late: list[str] = []
    if labels is not None:
        (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
        late = ["--labels", "shop.counts", "--labels-file", str(tmp_path / "labels.jsonl")]
    return CliRunner().invoke(cli, ["sources", "suggest", "shop.rentals", "--file", str(path), *late, *args])


def of_river(dataset: Any, label: str) -> list[dict[str, Any]]:
    return [{**x, label: y} for x, y in islice(dataset, 300)]


def of_sklearn(bunch: Any, label: str) -> list[dict[str, Any]]:
    names = [str(name) for name in bunch.feature_names]
    rows = [dict(zip(names, row.tolist(), strict=True)) for row in bunch.data]
    random.Random(1).shuffle(order := list(range(len(rows))))
    return [{**rows[n], label: bunch.target[n].item()} for n in order[:300]]


def bikes(n: int = 300) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{i}", "ts": (NOW_S + 60 * i) * 1000, "station": f"s{i % 12}", "temp": (i * 53 % 89) / 4,
            "season": ("spring", "summer")[i % 2], "version": 3, "note": None, "uuid2": f"{i * 7919:x}-{i}",
            "count": i * 37 % 101 + i % 3,
        }
        for i in range(n)
    ]  # fmt: skip


def odd_names() -> list[dict[str, Any]]:
    names = ["zip-code", "Größe in cm", "a.b", "$key", "x y", "日本", 'quo"te', "it's", "{brace}", "null", "yes", "1"]
    return [{name: (i * (k + 3) % 17) / 4 for k, name in enumerate(names)} | {"Label": i % 2 == 0} for i in range(100)]


def nested() -> list[dict[str, Any]]:
    return [
        {
            "meta": {"event-id": f"e{i}", "createdAt": f"2026-02-01T{i // 60:02}:{i % 60:02}:00Z"},
            "customer": {"age": 20 + i * 7 % 50, "address": {"zip": "1"}, "home town": "ab"[i % 2]},
            "basket": [1, 2], "total": i * 13 % 29 / 2, "outcome": ["lost", "won"][i * 7 % 50 > 25],
        }
        for i in range(200)
    ]  # fmt: skip


def debezium(*, with_schema: bool = False) -> list[dict[str, Any]]:
    rows = []
    for i in range(200):
        row = {"id": i * 3, "age": 20 + i * 7 % 50, "job": ("clerk", "smith")[i % 2], "target": i % 3}
        source = {"ts_ms": (NOW_S + i) * 1000, "table": "bank"}
        for op, before, after in (("c", None, row), ("u", row, {**row, "age": 1}), ("d", row, None)):
            value = {"op": op, "before": before, "after": after, "source": source, "ts_ms": NOW_S * 1000}
            rows.append({"schema": {"type": "struct"}, "payload": value} if with_schema else value)
    return rows


def mixed() -> list[dict[str, Any]]:
    return [
        {"zip": i if i % 2 else f"0{i}", "flag": i % 5 == 0, "n": None if i % 4 else 1.5, "y": i % 2} for i in range(80)
    ]


CASES: dict[str, Any] = {
    "phishing": lambda: of_river(datasets.Phishing(), "label"),
    "trump": lambda: of_river(datasets.TrumpApproval(), "target"),
    "elec2": lambda: [{**x, "class": y} for x, y in islice(elec2(), 300)],
    "iris": lambda: of_sklearn(load_iris(), "target"),
    "wine": lambda: of_sklearn(load_wine(), "class"),
    "cancer": lambda: of_sklearn(load_breast_cancer(), "outcome"),
    "diabetes": lambda: of_sklearn(load_diabetes(), "y"),
    "odd names": odd_names,
    "nested": nested,
    "debezium": debezium,
    "debezium with schema": lambda: debezium(with_schema=True),
    "mixed": mixed,
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_loads_and_maps_and_a_model_works_with_it(name: str, tmp_path: Path) -> None:
    rows = CASES[name]()
    done = suggested(tmp_path, rows)
    assert done.exit_code == 0, done.output
    config = parse_config(yaml.safe_load(done.stdout))
    (section,) = config.sources.values()
    mapping = Mapping("rentals", section, config)
    found = [one for n, row in enumerate(rows) for one in mapped(mapping, row, offset=n, timestamp_ms=NOW_S * 2000)]
    new = [row for row in rows if row.get("payload", row).get("op", "c") == "c"]
    assert len(found) == len(new), "every record that is no update is an observation"
    assert all(one.fields["x"] for one in found)
    rehearsal = rehearse(config, "rentals", [encode_json(one.fields) for one in found[:40]], "a test")
    assert rehearsal.works, (rehearsal.problem, rehearsal.dead_letters, rehearsal.examples)
    assert rehearsal.n_used == 40


def lines(done: Result) -> dict[str, str]:
    """What is printed, by the key at the beginning of each line; of lines of comment by their first words."""
    found = {}
    for line in done.stdout.splitlines():
        key, _, rest = line.strip().partition(": ")
        found[key] = " ".join(rest.split())
    return found


def test_each_line_has_its_reason(tmp_path: Path) -> None:
    rows = bikes()
    done = suggested(tmp_path, rows, "--y", "count")
    assert done.exit_code == 0, done.output
    found = lines(done)
    assert found["id"] == "id # its name; another value in every record"
    assert found["time"].startswith("ts # its name; ms since 1970, the last is 2025-10-09T13:")
    assert found["time"].endswith("; the values rise with the offset")
    assert found["y"] == "count # as said; number, 0 to 102"
    assert "# left out: version: always 3" in done.stdout
    assert "# left out: note: always null" in done.stdout
    assert "# left out: uuid2: text that differs in nearly every record" in done.stdout
    assert found["x"] == "{all_but: [version, note, uuid2]} # 3 features: station, temp, season"
    assert found["shop.rentals" if "shop.rentals" in found else "rentals"].startswith(
        "{model: {class: river.tree.Hoeff"
    )
    assert "leaf_prediction: mean" in done.stdout, "linear models in the leaves do not take text"
    assert 5 <= len([line for line in done.stdout.splitlines() if not line.strip().startswith("#")]) <= 10


def test_without_a_label_it_asks_for_one(tmp_path: Path) -> None:
    done = suggested(tmp_path, bikes())
    assert done.exit_code == 2
    assert lines(done)["y"] == (
        "??? # no field is called like a label: say which of station, temp, season, count (--y), or --labels TOPIC"
    )
    assert done.stderr == "attributary: write what is left to say in place of ???\n"
    wrong = suggested(tmp_path, bikes(), "--y", "cuont")
    assert str(wrong.exception) == "--y: 'cuont' is in none of the records: did you mean 'count'?"


def test_labels_of_another_topic(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "count"} for row in bikes()]
    late = [
        {"rental": row["id"], "at": row["ts"] + 3_600_000, "count": n % 7, "station": "s1"}
        for n, row in enumerate(rows[:200])
    ]
    done = suggested(tmp_path, rows, labels=late)
    assert done.exit_code == 0, done.output
    raw = yaml.safe_load(done.stdout)
    assert raw["labels"] == {
        "counts": {"topic": "shop.counts", "id": "rental", "time": "at", "y": "count", "ttl": "4h"}
    }
    assert raw["sources"]["rentals"]["id"] == "id"
    assert "# 200 of the labels have the same" in done.stdout
    assert "# the only field that observations lack; number, 0 to 6" in done.stdout
    assert "four times the longest of 200 delays in the sample, whose median is 60m" in done.stdout
    config = parse_config(raw)
    (label,) = mapped(Mapping("counts", config.labels["counts"], config), late[3], timestamp_ms=NOW_S * 2000)
    assert label.fields == {"y": 3, "id": "r3", "time": late[3]["at"]}


@pytest.mark.parametrize(
    ("leak", "said"),
    [
        (lambda i, y: y, "equal to target"),
        (lambda i, y: 3 * y + 1, "alone it tells target (R² 1.0000)"),
        (lambda i, y: f"g{y // 20}", "alone it tells target"),
        (lambda i, y: math.sin(i), None),
    ],
)
def test_a_leak_is_warned_of_and_is_no_feature(leak: Any, said: str | None, tmp_path: Path) -> None:
    rows = [{"a": i % 7, "leaky": leak(i, y), "target": y} for i in range(200) for y in [i * 37 % 101]]
    done = suggested(tmp_path, rows)
    assert done.exit_code == 0, done.output
    is_told = said is not None and said != "alone it tells target"
    assert (f"CAUTION leaky: {said}" in done.stdout) is is_told
    x = yaml.safe_load(done.stdout)["sources"]["rentals"].get("x")
    assert x == ({"all_but": ["leaky"]} if is_told else None)


def test_a_leak_of_a_class(tmp_path: Path) -> None:
    rows = [
        {
            "a": i % 7,
            "paid": i % 3 == 0,
            "amount": 100 if i % 3 == 0 else 1,
            "noise": i % 5,
            "label": ["no", "yes"][i % 3 == 0],
        }
        for i in range(200)
    ]
    done = suggested(tmp_path, rows)
    assert yaml.safe_load(done.stdout)["sources"]["rentals"]["x"] == {"all_but": ["paid", "amount"]}
    assert "CAUTION amount: alone it tells label (AUC 1.0000)" in done.stdout


def test_what_goes_along_with_the_label_is_never_taken_for_it(tmp_path: Path) -> None:
    rows = [{"a": i % 7, "b": i % 7 * 2} for i in range(50)]
    assert suggested(tmp_path, rows).exit_code == 2


def test_json_has_configuration_and_reasons(tmp_path: Path) -> None:
    done = suggested(tmp_path, bikes(), "--y", "count", "--json")
    said = json.loads(done.stdout)
    assert said["complete"] is True
    assert said["configuration"]["sources"]["rentals"]["y"] == "count"
    assert {"line": "id: id", "reason": "its name; another value in every record"} in said["reasons"]
    parse_config(said["configuration"])


def test_beside_a_configuration_the_sections_alone_are_printed(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    model = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}
    path.write_text(yaml.safe_dump({"models": {"a": model, "b": model}}))
    done = suggested(tmp_path, bikes(), "--y", "count", "-c", str(path))
    raw = yaml.safe_load(done.stdout)
    assert set(raw) == {"sources"}
    assert raw["sources"]["rentals"]["model"] == "a"
    assert "# or another of b" in done.stdout


def test_names_that_are_no_text_of_a_terminal_are_escaped(tmp_path: Path) -> None:
    rows = [{"a\x1b[31m\n": 5, "b": i, "c\u202e": {"d\x07": i}, "y": i % 2} for i in range(30)]
    done = suggested(tmp_path, rows)
    assert not set(done.stdout) & {"\x1b", "\u202e", "\x07"}
    parse_config(yaml.safe_load(done.stdout))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "shop.rentals: there is no record to go by"),
        ("[1]\n", "shop.rentals: none of 1 records can be read as json; of the first: value: expected an object, got "
         "[1]"),
        ("\x00\x00\x00\x00\x07abcdef\n", "shop.rentals: values begin with byte 0 and schema id 7, so they are Avro or "
         "Protobuf: give --config with kafka.schema_registry.url"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    done = CliRunner().invoke(cli, ["sources", "suggest", "shop.rentals", "--file", str(path)])
    assert str(done.exception) == said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "give the name of a TOPIC, or --file with the values of records"),
        (["a", "--labels-file", "b"], "--labels-file goes with --file: of topics give --labels TOPIC"),
        (["a", "--file", "b", "--labels", "c"], "--labels with --file: give --labels-file, too"),
        (["a", "--file", "/no/such"], "cannot read /no/such: [Errno 2] No such file or directory: '/no/such'"),
    ],
)  # fmt: skip
def test_faults_of_the_command_line(args: list[str], said: str) -> None:
    assert str(CliRunner().invoke(cli, ["sources", "suggest", *args]).exception) == said
