"""`attributary check --sample` of sources: what sampled records become, what finds nothing, how long labels take."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.rehearsal.report import trial_lines
from attributary_agents.rehearsal.sections import Trial, label_delays, try_section, values_of
from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.records import Mapped, OriginRecord
from attributary_agents.sources.samples import Sample

MODEL = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}
NOW_S = 1_760_000_000
ROWS = [
    {"id": i, "ts": NOW_S + i, "count": i % 9, "temp": i % 30 / 2, "nested": {"a": i, "b": 1}, "ok": i % 2 == 0}
    for i in range(60)
]


NAMES = "id, ts, count, temp, nested, ok"
ALONE = "--source goes with --sample FILE, whose lines are values of its records"
NO_FILE = "cannot read /no/such: [Errno 2] No such file or directory: '/no/such'"


def checked(tmp_path: Path, source: dict[str, Any], rows: Any = ROWS, *args: str, **sections: Any) -> Result:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw = {"sources": {"rentals": {"topic": "rentals", **source}}, "models": {"bikes": MODEL}, **sections}
    (tmp_path / "attributary.yaml").write_text(yaml.safe_dump(raw, sort_keys=False))
    sample = ["--sample", str(tmp_path / "rows.jsonl"), "--source", "rentals"]
    return CliRunner().invoke(cli, ["check", "-c", str(tmp_path / "attributary.yaml"), "--offline", *sample, *args])


def test_field_by_field_what_each_record_becomes(tmp_path: Path) -> None:
    source = {"y": "count", "id": "id", "time": "ts", "x": {"warm": "temp > `5`", "b": "nested.b"}, "where": "ok"}
    done = checked(tmp_path, source)
    assert done.exit_code == 0, done.output
    table = [line.split("  ") for line in done.stdout.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in table]
    file = tmp_path / "rows.jsonl"
    assert cells[0] == [f"sources.rentals: 60 records of {file}: 30 mapped, 30 passed over, 0 dead letters"]
    assert cells[1:7] == [
        ["read from", "record 1", "record 2", "record 3"],
        ["model", "bikes", "bikes", "bikes"],
        ["id", "id", "0", "2", "4"],
        ["time", "ts", *(f"2025-10-09T08:53:2{n}.000Z" for n in (0, 2, 4))],
        ["y", "count", "0", "2", "4"],
        ["x.warm", "temp > `5`", "False", "False", "False"],
    ]
    assert ["time", "s since 1970"] in cells
    assert "bikes: works: 30 of 30 rows used (mapped records)" in done.stdout


def test_a_mirror_works_with_the_predictions_that_were_logged(tmp_path: Path) -> None:
    models = {"bikes": {**MODEL, "mode": "mirror"}}
    done = checked(tmp_path, {"y_pred": "count", "x": {"only": ["temp"]}}, models=models)
    assert done.exit_code == 0, done.output
    assert "bikes: works: 60 of 60 rows used (mapped records)" in done.stdout
    assert "state" in done.stdout.partition("bikes: works")[2]


def twice(x: dict[str, float]) -> float:
    return 2.0 * x["temp"]


def made() -> Callable[[dict[str, float]], float]:
    return twice


def test_a_model_works_without_labels(tmp_path: Path) -> None:
    models = {"bikes": {"factory": f"{__name__}:made", "mode": "unlabelled", "loss": "squared"}}
    done = checked(tmp_path, {"x": {"only": ["temp"]}}, models=models)
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "bikes: works: 60 of 60 rows used (mapped records)" in lines
    assert "prediction 29 for the last row" in lines  # of 59 % 30 / 2 it is the double
    assert any(line.startswith("state ") and "equal in prediction" in line for line in lines)


def test_where_a_time_is_from_that_the_format_gives() -> None:
    source = {"topic": "s", "format": "cloudevents", "y": "y"}
    config = parse_config({"sources": {"s": source}, "models": {"bikes": MODEL}})
    record = OriginRecord("s", 0, 0, 1_780_000_000_000, None, b"", ())
    for time, said in (("2026-05-28T20:26:40Z", "the format"), (None, "Kafka's timestamp")):
        sample = Sample("s", [record], [[Decoded({"a": 1, "y": 2}, id="i", time=time)]], {})
        lines = [" ".join(line.split()) for line in trial_lines(try_section("s", config.sources["s"], config, sample))]
        assert f"time {said} 2026-05-28T20:26:40.000Z" in lines


def test_dead_letters_are_counted_with_the_first_of_each_reason(tmp_path: Path) -> None:
    rows = [*ROWS, {"id": 1, "count": {}, "temp": 1}, {"id": 1, "count": [], "temp": 1}, [1], {"temp": 1}]
    done = checked(tmp_path, {"y": "count"}, rows)
    assert done.exit_code == 0, done.output
    assert "60 mapped, 0 passed over, 4 dead letters" in done.stdout
    assert (
        "  dead letter 3 records: wrong_type: sources.rentals.y: expected a number, string or boolean, 'count' gave an "
        "object\n" in done.stdout
    )
    assert "  dead letter 1 record: missing_label: sources.rentals.y: expected the label" in done.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"y": "cnt"}, f"y: 'cnt' is in none of 60 records; they have {NAMES}"),
        ({"time": "nested.at"}, "time: 'nested.at' is in none of 60 records; nested has a, b"),
        ({"id": "key.id"}, f"id: 'key.id' is in none of 60 records; they have {NAMES}"),
        ({"id": "$headers.id"}, f"id: '$headers.id' is in none of 60 records; they have {NAMES}"),
        ({"x": {"only": ["temp", "hum"]}}, f"x.hum: 'hum' is in none of 60 records; they have {NAMES}"),
        ({"x": {"t": "nested.c"}}, "x.t: 'nested.c' is in none of 60 records; nested has a, b"),
        ({"x": "after"}, f"x: 'after' is in none of 60 records; they have {NAMES}"),
        ({"where": "okay"}, f"where: 'okay' is in none of 60 records; they have {NAMES}"),
        ({"record": "after"}, f"record: 'after' is in none of 60 records; they have {NAMES}"),
        ({"record": "nested"}, "y: 'count' is in none of 60 records; they have a, b"),
    ],
)  # fmt: skip
def test_an_expression_that_finds_nothing_is_a_fault(source: dict[str, Any], said: str, tmp_path: Path) -> None:
    done = checked(tmp_path, {"y": "count", **source})
    assert done.exit_code == 2
    assert f"; sources.rentals.{said}" in done.stderr


def test_a_label_that_is_null_at_times_is_none(tmp_path: Path) -> None:
    rows = [{**row, "count": None if i else 1} for i, row in enumerate(ROWS)]
    done = checked(tmp_path, {"y": "count"}, rows)
    assert "is in none" not in done.output


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"where": "count > `100`"}, "where: 'count > `100`' is true for none of 60 records"),
        ({"x": {"all_but": ["tmp"]}}, "x.all_but: 'tmp' is in none of 60 records"),
        ({"cast": {"hum": "text"}}, "cast: no record has a feature 'hum'"),
    ],
)
def test_what_is_worth_a_look(source: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert f"  CAUTION     {said}\n" in checked(tmp_path, {"y": "count", **source}).stdout


def test_where_that_passes_none_is_a_fault(tmp_path: Path) -> None:
    done = checked(tmp_path, {"y": "count", "where": "count > `100`"})
    assert done.exit_code == 2
    assert "sources.rentals: none of 60 records is mapped" in done.stderr


def test_json(tmp_path: Path) -> None:
    done = checked(tmp_path, {"y": "count", "time": "ts"}, ROWS, "--json")
    said = json.loads(done.stdout)["sources"]["sources.rentals"]
    assert (said["n_records"], said["n_mapped"], said["time"]) == (60, 60, "s since 1970")
    assert said["shown"][1]["fields"]["y"] == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--sample", "5", "--source", "rentals"], ALONE),
        (["--sample", "x", "--source", "rental"], "--source: expected one of rentals, got 'rental'"),
        (["--sample", "/no/such", "--source", "rentals"], NO_FILE),
    ],
)  # fmt: skip
def test_faults_of_the_command_line(args: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump({"sources": {"rentals": {"topic": "r", "y": "y"}}, "models": {"bikes": MODEL}}))
    assert str(CliRunner().invoke(cli, ["check", "-c", str(path), "--offline", *args]).exception) == said


LATE = {"topic": "counts", "ttl": "2m", "id": "id", "y": "n", "max_waiting": 50}


def sampled(n: int, delay_s: int) -> list[Trial]:
    """Observations once a second, and their labels so much later."""
    seen = [Mapped("bikes", "observation", 1000 * i, {"x": {"a": i}, "id": i, "time": 1000 * i}) for i in range(n)]
    late = [Mapped("bikes", "label", 1000 * (i + delay_s), {"y": 2 * i, "id": i}) for i in range(n // 2)]
    return [Trial("sources.rentals", "", mapped=seen), Trial("labels.counts", "", mapped=late)]


@pytest.mark.parametrize(
    ("delay_s", "n_waiting", "cautions"),
    [
        (30, 30, []),
        (60, 60, ["about 60 observations of bikes wait at a time, and max_waiting is 50: the oldest expire"]),
        (
            121,
            121,
            [
                "100 of 100 labels come later than ttl, 120 s",
                "about 121 observations of bikes wait at a time, and max_waiting is 50: the oldest expire",
            ],
        ),
    ],
)
def test_the_rate_times_the_delay_is_what_waits(delay_s: int, n_waiting: int, cautions: list[str]) -> None:
    config = parse_config({"sources": {"rentals": {"topic": "rentals", "id": "id"}}, "labels": {"counts": LATE},
                           "models": {"bikes": MODEL}})  # fmt: skip
    found = label_delays(config, sampled(200, delay_s))["counts"]
    assert (found.n_joined, found.delay_s, found.n_waiting) == (100, delay_s, n_waiting)
    assert found.cautions == cautions


def test_a_rehearsal_has_the_labels_of_the_other_topic_and_predictions_of_a_mirror() -> None:
    config = parse_config({"sources": {"rentals": {"topic": "rentals", "id": "id"}}, "labels": {"counts": LATE},
                           "models": {"bikes": MODEL}})  # fmt: skip
    rows = values_of(sampled(4, 1), config)
    assert rows == {"bikes": [b'{"x":{"a":0},"y":0}', b'{"x":{"a":1},"y":2}']}
    models = {"m-*": {**MODEL, "mode": "mirror"}}
    source = {"topic": "s", "y_pred": "p", "model": "m-{k}"}
    mirror = parse_config({"sources": {"s": source}, "models": models})
    seen = [
        Mapped("m-1", "observation", 0, {"x": {"a": 1}, "y_pred": 0.5}),
        Mapped("m-2", "observation", 0, {"x": {"a": 2}, "y_pred": {"no": 0.4, "yes": 0.6}}),
        Mapped("m-2", "request", 0, {"x": {"a": 3}, "id": "r"}),
        Mapped("m-2", "response", 0, {"y_pred": 3, "id": "r"}),
        Mapped("m-2", "request", 0, {"x": {"a": 3}, "id": "without"}),
    ]
    assert values_of([Trial("sources.s", "", mapped=seen)], mirror) == {
        "m-*": [b'{"x":{"a":1},"y":0.5}', b'{"x":{"a":2},"y":"yes"}', b'{"x":{"a":3},"y":3}']
    }


@pytest.mark.parametrize("is_late", [True, False])
def test_made_up_rows_have_a_label_where_the_model_learns_from_one(tmp_path: Path, is_late: bool) -> None:
    features = {"temp": "number"}
    model = {"factory": f"{__name__}:made", "mode": "unlabelled", "loss": "squared", "features": features}
    raw: dict[str, Any] = {"models": {"bikes": model}}
    if is_late:
        raw = {"sources": {"rentals": {"topic": "rentals", "id": "id"}}, "labels": {"counts": LATE},
               "models": {"bikes": {**MODEL, "features": features}}}  # fmt: skip
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    done = CliRunner().invoke(cli, ["check", "-c", str(path), "--offline"])
    assert done.exit_code == 0, done.output
    assert "bikes: works: 40 of 40 rows used (made-up rows)" in done.stdout
    assert ("whose label is" in done.stdout) is is_late
