"""Files of observations: types of columns, what is missing or wrong, and what is said about it."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.errors import SourceError
from attributary_agents.kafka.producing import encode_value
from attributary_agents.replay.files import SAMPLE, open_source
from attributary_topics import InvalidRecordError, decode_observation


def written(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def values_of(path: Path, target: str | None = None) -> list[dict[str, Any]]:
    return list(open_source(path, target).values())


def refusal(path: Path, target: str | None = None) -> str:
    with pytest.raises(SourceError) as caught:
        values_of(path, target)
    return str(caught.value)


def is_refused_later(value: dict[str, Any]) -> bool:
    """Whether the value would end in the dead letters."""
    try:
        decode_observation(b"m", encode_value(value))
    except InvalidRecordError:
        return True
    return False


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.v2.csv"])
def test_csv_plain_or_compressed(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, "a,b,y\n1,0.5,UP\n2,-1e3,DOWN\n")
    source = open_source(path)

    assert (source.target, source.features, source.n_rows) == ("y", ("a", "b"), None)
    expected = [{"x": {"a": 1, "b": 0.5}, "y": "UP"}, {"x": {"a": 2, "b": -1000.0}, "y": "DOWN"}]
    assert list(source.values()) == expected
    assert list(source.values()) == expected, "it can be read again"
    assert type(expected[0]["x"]["a"]) is int


def test_a_target_in_the_middle(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", "a,y,b\n1,0,2\n")
    assert values_of(path, "y") == [{"x": {"a": 1, "b": 2}, "y": 0}]
    assert open_source(path, "y").features == ("a", "b")


def test_quoted_cells_keep_their_commas_and_line_breaks(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", 'a,y\n"one, two",0\n"line\nbreak",1\n')
    assert [value["x"]["a"] for value in values_of(path)] == ["one, two", "line\nbreak"]


def test_a_column_with_one_text_is_text_in_every_row(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", "zone,y\n1,0\n2,1\nnorth,0\n4,1\n")
    assert [value["x"]["zone"] for value in values_of(path)] == ["1", "2", "north", "4"]


def test_rows_beyond_the_sample_have_the_type_of_the_sample(tmp_path: Path) -> None:
    rows = "".join(f"{i},n{i},0\n" for i in range(SAMPLE))
    path = written(tmp_path / "data.csv", f"number,text,y\n{rows}5,5,0\n")
    last = values_of(path)[-1]["x"]
    assert last == {"number": 5, "text": "5"}


def test_a_label_of_numbers_is_a_number_and_a_label_of_texts_is_a_text(tmp_path: Path) -> None:
    assert values_of(written(tmp_path / "a.csv", "a,y\n1,0\n1,1\n"))[1]["y"] == 1
    assert values_of(written(tmp_path / "b.csv", "a,y\n1,0\n1,yes\n"))[0]["y"] == "0"


def test_a_missing_cell_is_none_and_does_not_make_a_column_text(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", "a,b,y\n1,,0\n,x,1\n3,y,\n")
    assert values_of(path) == [
        {"x": {"a": 1, "b": None}, "y": 0},
        {"x": {"a": None, "b": "x"}, "y": 1},
        {"x": {"a": 3, "b": "y"}, "y": None},
    ]
    assert all(map(is_refused_later, values_of(path)))


@pytest.mark.parametrize("cell", ["NaN", "nan", "inf"])
def test_a_cell_that_is_no_finite_number_does_not_make_a_column_text(tmp_path: Path, cell: str) -> None:
    path = written(tmp_path / "data.csv", f"a,y\n0.5,0\n{cell},1\n1.5,0\n")
    values = values_of(path)
    assert [value["x"]["a"] for value in (values[0], values[2])] == [0.5, 1.5]
    assert is_refused_later(values[1])


def test_what_only_python_reads_as_a_number_is_text(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", "a,b,y\n1_2,٣,0\n1_3,٤,1\n")
    assert values_of(path)[0]["x"] == {"a": "1_2", "b": "٣"}


def test_an_integer_beyond_64_bits_can_be_sent(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", f"a,y\n{10**25},0\n")
    (value,) = values_of(path)
    assert json.loads(encode_value(value))["x"]["a"] in (str(10**25), 1e25)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", "\ufeffa,y\n1,0\n")
    assert open_source(path).features == ("a",)


def test_a_short_row_is_not_taken_as_an_observation(tmp_path: Path) -> None:
    (value,) = values_of(written(tmp_path / "data.csv", "a,b,y\n1\n"))
    assert value == {"x": {"a": 1}, "y": None}
    assert is_refused_later(value)


@pytest.mark.parametrize(("row", "target"), [("1,2,3,0", "y"), ("0,1", "a")])
def test_a_row_with_more_or_fewer_cells_is_never_taken_silently(tmp_path: Path, row: str, target: str) -> None:
    path = written(tmp_path / "data.csv", f"a,b,y\n1,2,0\n{row}\n")
    try:
        ragged = values_of(path, target)[1]
    except SourceError:
        return
    assert is_refused_later(ragged)


def test_blank_lines_are_no_observations(tmp_path: Path) -> None:
    assert len(values_of(written(tmp_path / "data.csv", "a,y\n1,0\n\n2,1\n\n"))) == 2
    assert len(values_of(written(tmp_path / "data.jsonl", '{"x": {"a": 1}, "y": 0}\n\n \n'))) == 1


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    assert "a" in refusal(written(tmp_path / "data.csv", "a,a,y\n1,2,0\n"))


def test_a_wrong_target_is_named_with_what_there_is(tmp_path: Path) -> None:
    message = refusal(written(tmp_path / "data.csv", "a,b,y\n1,2,0\n"), "label")
    assert "'label'" in message
    assert "a, b, y" in message


@pytest.mark.parametrize("content", ["", "\n", "alone\n1\n"])
def test_a_csv_file_without_two_columns_is_refused(tmp_path: Path, content: str) -> None:
    path = written(tmp_path / "data.csv", content)
    assert f"{path}: expected a header row" in refusal(path)


def test_a_csv_file_of_a_header_alone_has_no_observations(tmp_path: Path) -> None:
    assert values_of(written(tmp_path / "data.csv", "a,y\n")) == []


@pytest.mark.parametrize("name", ["data.jsonl", "data.ndjson", "data.jsonl.gz"])
def test_json_lines_as_they_are(tmp_path: Path, name: str) -> None:
    lines = [{"x": {"a": 1, "b": "text"}, "y": True, "note": "kept"}, {"x": {}, "y": None}]
    path = written(tmp_path / name, "".join(json.dumps(line) + "\n" for line in lines))
    source = open_source(path)

    assert (source.target, source.features) == ("y", None)
    assert list(source.values()) == list(source.values()) == lines


def test_flat_json_lines_with_a_target(tmp_path: Path) -> None:
    path = written(tmp_path / "data.jsonl", '{"a": 1, "class": "UP"}\n{"b": 2.5, "class": "DOWN"}\n{"a": 1}\n')
    assert values_of(path, "class") == [
        {"x": {"a": 1}, "y": "UP"},
        {"x": {"b": 2.5}, "y": "DOWN"},
        {"x": {"a": 1}, "y": None},
    ]


def test_flat_json_lines_without_a_target_say_what_to_do(tmp_path: Path) -> None:
    assert "name the target column" in refusal(written(tmp_path / "data.jsonl", '{"a": 1, "class": "UP"}\n'))


def test_a_target_that_the_first_json_line_lacks_is_refused(tmp_path: Path) -> None:
    assert "label" in refusal(written(tmp_path / "data.jsonl", '{"a": 1, "class": "UP"}\n'), "label")


@pytest.mark.parametrize(("line", "what"), [("{poison", "not JSON"), ("[1]", "list"), ("3", "int")])
def test_a_bad_json_line_is_named_with_its_number(tmp_path: Path, line: str, what: str) -> None:
    path = written(tmp_path / "data.jsonl", f'{{"x": {{"a": 1}}, "y": 0}}\n\n{line}\n')
    message = refusal(path)
    assert f"{path}:3:" in message
    assert what in message


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonl.gz"])
def test_an_empty_file_of_json_lines_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, "\n")
    assert str(path) in refusal(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.csv", tmp_path):
        assert f"no file at {path}" in refusal(path)


@pytest.mark.parametrize("name", ["data.txt", "data", "data.gz", "data.xlsx"])
def test_an_unknown_kind_of_file(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, "a,y\n1,0\n")
    assert str(path) in refusal(path)
    assert ".parquet" in refusal(path)


@pytest.mark.parametrize("name", ["data.csv.gz", "data.jsonl.gz"])
@pytest.mark.parametrize("end", [5, -20])
def test_a_damaged_compressed_file(tmp_path: Path, name: str, end: int) -> None:
    line = "a,y\n" if "csv" in name else '{"x": {"a": 1}, "y": 0}\n'
    whole = gzip.compress((line * 5000).encode())
    path = tmp_path / name
    path.write_bytes(whole[:end])
    assert str(path) in refusal(path)


def test_a_plain_file_that_calls_itself_compressed(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_text("a,y\n1,0\n")
    assert str(path) in refusal(path)


@pytest.mark.parametrize("n_good", [1, 2 * SAMPLE])
def test_bytes_that_are_no_utf_8(tmp_path: Path, n_good: int) -> None:
    path = written(tmp_path / "data.csv", b"a,y\n" + b"text,0\n" * n_good + b"\xff\xfe,1\n")
    assert str(path) in refusal(path)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1")
        assert "pip install 'attributary[parquet]'" in refusal(path)
        return
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", None], "y": [True, False]}), path)
    source = open_source(path)
    assert (source.n_rows, source.target, source.features) == (2, "y", ("a", "b"))
    assert list(source.values()) == [{"x": {"a": 1, "b": "x"}, "y": True}, {"x": {"a": 2, "b": None}, "y": False}]
    assert "a, b, y" in refusal(path, "label")
