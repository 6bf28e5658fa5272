"""Files of observations: types of columns, what is missing or wrong, and what is said about it."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.errors import SourceError
from attributary_agents.files.source import SAMPLE, open_source
from attributary_agents.kafka.observations import encode_value
from attributary_topics import InvalidRecordError, decode_observation


def written(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def values_of(path: Path, target: str | None = None, drop: tuple[str, ...] = ()) -> list[Any]:
    return list(open_source(path, target, drop).values())


def refusal(path: Path, target: str | None = None, drop: tuple[str, ...] = ()) -> str:
    with pytest.raises(SourceError) as caught:
        values_of(path, target, drop)
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

    assert (source.target, source.features, source.count()) == ("y", ("a", "b"), 2)
    expected = [{"x": {"a": 1, "b": 0.5}, "y": "UP"}, {"x": {"a": 2, "b": -1000.0}, "y": "DOWN"}]
    assert list(source.values()) == expected
    assert list(source.values()) == expected, "it can be read again"
    assert type(expected[0]["x"]["a"]) is int


def test_rows_beyond_the_sample_have_the_type_of_the_sample(tmp_path: Path) -> None:
    rows = "".join(f"{i},n{i},0\n" for i in range(SAMPLE))
    path = written(tmp_path / "data.csv", f"number,text,y\n{rows}5,5,0\n")
    last = values_of(path)[-1]["x"]
    assert last == {"number": 5, "text": "5"}


@pytest.mark.parametrize(("cell", "is_refused"), [("NaN", False), ("nan", False), ("inf", True)])
def test_a_cell_that_is_no_finite_number_does_not_make_a_column_text(
    tmp_path: Path, cell: str, is_refused: bool
) -> None:
    path = written(tmp_path / "data.csv", f"a,y\n0.5,0\n{cell},1\n1.5,0\n")
    values = values_of(path)
    assert [value["x"]["a"] for value in (values[0], values[2])] == [0.5, 1.5]
    assert is_refused_later(values[1]) == is_refused


def test_an_integer_beyond_64_bits_can_be_sent(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", f"a,y\n{10**25},0\n")
    (value,) = values_of(path)
    assert json.loads(encode_value(value))["x"]["a"] in (str(10**25), 1e25)


@pytest.mark.parametrize(("row", "target"), [("1,2,3,0", "y"), ("0,1", "a")])
def test_a_row_with_more_or_fewer_cells_is_never_taken_silently(tmp_path: Path, row: str, target: str) -> None:
    path = written(tmp_path / "data.csv", f"a,b,y\n1,2,0\n{row}\n")
    try:
        ragged = values_of(path, target)[1]
    except SourceError:
        return
    assert is_refused_later(ragged)


@pytest.mark.parametrize("name", ["data.jsonl", "data.ndjson", "data.jsonl.gz"])
def test_json_lines_as_they_are(tmp_path: Path, name: str) -> None:
    lines = [{"x": {"a": 1, "b": "text"}, "y": True, "note": "kept"}, {"x": {}, "y": None}]
    path = written(tmp_path / name, "".join(json.dumps(line) + "\n" for line in lines))
    source = open_source(path)

    assert (source.target, source.features) == ("y", None)
    assert list(source.values()) == list(source.values()) == lines


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.csv", tmp_path):
        assert f"no file at {path}" in refusal(path)


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
    assert (source.count(), source.target, source.features) == (2, "y", ("a", "b"))
    assert list(source.values()) == [{"x": {"a": 1, "b": "x"}, "y": True}, {"x": {"a": 2, "b": None}, "y": False}]
    assert "a, b, y" in refusal(path, "label")
    assert values_of(path, None, ("b",)) == [{"x": {"a": 1}, "y": True}, {"x": {"a": 2}, "y": False}]


@pytest.mark.parametrize(
    ("name", "content", "target", "expected"),
    [
        *(
            (name, f"a{sep}b{sep}y\n1{sep}2.5{sep}UP\n", None, [{"x": {"a": 1, "b": 2.5}, "y": "UP"}])
            for sep, name in (
                (";", "data.csv"),
                ("\t", "data.csv"),
                ("|", "data.csv"),
                ("\t", "data.tsv"),
                (",", "a.tsv"),
            )
        ),
        ("in quotes.csv", '"a, b";y\n1,5;0\n', None, [{"x": {"a, b": "1,5"}, "y": 0}]),
        ("in a name.tsv", "a, b\ty\n1\t0\n", None, [{"x": {"a, b": 1}, "y": 0}]),
        ("pandas.csv", "0,1,2\n1.5,2,0\n", None, [{"x": {"0": 1.5, "1": 2}, "y": 0}]),
        ("years.csv", "1990,1991,country\n1.5,2,NO\n", None, [{"x": {"1990": 1.5, "1991": 2}, "y": "NO"}]),
        ("target.csv", "a,y,b\n1,0,2\n", "y", [{"x": {"a": 1, "b": 2}, "y": 0}]),
        ("quoted.csv", 'a,y\n"one, two\nthree",0\n', None, [{"x": {"a": "one, two\nthree"}, "y": 0}]),
        ("a text.csv", "a,y\n1,0\nnorth,1\n", None, [{"x": {"a": "1"}, "y": 0}, {"x": {"a": "north"}, "y": 1}]),
        ("numbers.csv", "a,y\n1,0\n1,1\n", None, [{"x": {"a": 1}, "y": 0}, {"x": {"a": 1}, "y": 1}]),
        ("labels.csv", "a,y\n1,0\n1,yes\n", None, [{"x": {"a": 1}, "y": "0"}, {"x": {"a": 1}, "y": "yes"}]),
        ("only Python's numbers.csv", "a,b,y\n1_2,٣,0\n", None, [{"x": {"a": "1_2", "b": "٣"}, "y": 0}]),
        ("byte order mark.csv", "\ufeffa,y\n1,0\n", None, [{"x": {"a": 1}, "y": 0}]),
        ("blank.csv", "a,y\n1,0\n\n2,1\n\n", None, [{"x": {"a": 1}, "y": 0}, {"x": {"a": 2}, "y": 1}]),
        ("header alone.csv", "a,y\n", None, []),
        ("blank.jsonl", '{"x": {"a": 1}, "y": 0}\n\n \n', None, [{"x": {"a": 1}, "y": 0}]),
        (
            "flat.jsonl",
            '{"a": 1, "y": "UP"}\n{"b": 2.5, "y": 0}\n',
            "y",
            [{"x": {"a": 1}, "y": "UP"}, {"x": {"b": 2.5}, "y": 0}],
        ),
    ],
)
def test_a_file_is_read_as_it_says(tmp_path: Path, name: str, content: str, target: str | None, expected: Any) -> None:
    path = written(tmp_path / name, content)
    assert values_of(path, target) == expected
    assert open_source(path, target).count() == len(expected)
    assert open_source(path, target).count(limit=1) == min(len(expected), 1)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("cells.csv", "a,b,y\n1,,0\n", {"x": {"a": 1, "b": None}, "y": 0}),
        ("cells.csv", "a,b,y\n,x,1\n", {"x": {"a": None, "b": "x"}, "y": 1}),
        ("text.csv", "a,b,y\n1,x,0\n2,,1\n", {"x": {"a": 2, "b": None}, "y": 1}),
        ("flat.jsonl", '{"a": 1, "b": null, "y": 0}\n', {"x": {"a": 1, "b": None}, "y": 0}),
    ],
)
def test_what_is_missing_is_none_and_no_fault_of_the_record(
    tmp_path: Path, name: str, content: str, expected: Any
) -> None:
    *_, value = values_of(written(tmp_path / name, content), "y")
    assert value == expected
    assert decode_observation(b"m", encode_value(value)).x == expected["x"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("label.csv", "a,b,y\n3,y,\n", {"x": {"a": 3, "b": "y"}, "y": None}),
        ("short.csv", "a,b,y\n1\n", {"x": {"a": 1}, "y": None}),
        ("flat.jsonl", '{"a": 1, "y": 0}\n{"a": 1}\n', {"x": {"a": 1}, "y": None}),
    ],
)
def test_a_label_that_is_missing_is_none_and_a_dead_letter_later(
    tmp_path: Path, name: str, content: str, expected: Any
) -> None:
    *_, value = values_of(written(tmp_path / name, content), "y")
    assert value == expected
    assert is_refused_later(value)


def test_a_missing_cell_does_not_make_a_column_text(tmp_path: Path) -> None:
    values = values_of(written(tmp_path / "data.csv", "a,b,y\n1,,0\n,x,1\n3,y,\n"))
    assert [(value["x"]["a"], value["x"]["b"], value["y"]) for value in values] == [
        (1, None, 0),
        (None, "x", 1),
        (3, "y", None),
    ]


@pytest.mark.parametrize("drop", [("id", "when"), ("id,when",), ("id, when",), ("id", "id", "when")])
@pytest.mark.parametrize(
    ("name", "content", "target"),
    [
        ("data.csv", "id,a,when,y\n7,1,noon,0\n", None),
        ("label.csv", "id,y,a,when\n7,0,1,noon\n", "y"),
        ("last left.csv", "id,a,y,when\n7,1,0,noon\n", None),
        ("flat.jsonl", '{"id": 7, "a": 1, "y": 0}\n{"when": "noon", "a": 1, "y": 0}\n', "y"),
        ("data.jsonl", '{"x": {"id": 7, "when": "noon", "a": 1}, "y": 0}\n', None),
    ],
)
def test_columns_are_left_out(
    tmp_path: Path, name: str, content: str, target: str | None, drop: tuple[str, ...]
) -> None:
    for value in values_of(written(tmp_path / name, content), target, drop):
        assert value == {"x": {"a": 1}, "y": 0}


def test_a_column_whose_name_has_a_comma_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "data.csv", '"a, b",a,y\n5,1,0\n')
    assert values_of(path, None, ("a, b",)) == [{"x": {"a": 1}, "y": 0}]


@pytest.mark.parametrize(
    ("target", "drop", "said"),
    [
        (None, "whn", "has no column 'whn' to drop: did you mean 'when'?"),
        (None, "price", "has no column 'price' to drop; it has a, when, y"),
        ("y", "a,y", "'y' is the target, which cannot be dropped"),
        (None, "a,when", "no feature is left of a, when, y"),
        ("Y", "", "has no column 'Y': did you mean 'y'?"),
    ],
)
def test_columns_that_cannot_be_left_out(tmp_path: Path, target: str | None, drop: str, said: str) -> None:
    path = written(tmp_path / "data.csv", "a,when,y\n1,noon,0\n")
    assert said in refusal(path, target, (drop,) if drop else ())


@pytest.mark.parametrize("content", ["1,2,0\n3,4,1\n", "5.1,3.5,setosa\n4.9,3.0,setosa\n", "1;0\n2;1\n", "0,1\n1,0\n"])
def test_a_file_without_a_header_row_is_refused(tmp_path: Path, content: str) -> None:
    said = refusal(written(tmp_path / "data.csv", content))
    assert "looks like data: write a header row" in said


FLAT, LINE = '{"a": 1, "class": "UP"}\n', '{"x": {"a": 1}, "y": 0}\n'
DAMAGED = {
    "data.csv.gz": gzip.compress(b"a,y\n" * 5000, mtime=0),
    "data.jsonl.gz": gzip.compress(LINE.encode() * 5000, mtime=0),
}


@pytest.mark.parametrize(
    ("name", "content", "target", "said"),
    [
        ("data.csv", "a,a,y\n1,2,0\n", None, ["a"]),
        ("data.csv", "a,b,y\n1,2,0\n", "label", ["'label'", "a, b, y"]),
        *(("data.csv", content, None, ["{path}: expected a header row"]) for content in ("", "\n", "alone\n1\n")),
        *(("data.csv", b"a,y\n" + b"text,0\n" * n + b"\xff\xfe,1\n", None, ["{path}"]) for n in (1, 2 * SAMPLE)),
        ("data.jsonl", FLAT, None, ["name the target column"]),
        ("data.jsonl", FLAT, "label", ["label"]),
        ("data.jsonl", "{poison\n[1]\n3\n", None, ["{path}: no line is a JSON object"]),
        *((name, "\n", None, ["{path}"]) for name in ("data.jsonl", "data.jsonl.gz")),
        *((name, "a,y\n1,0\n", None, ["{path}", ".parquet"]) for name in ("data.txt", "data", "data.gz", "data.xlsx")),
        ("plain.csv.gz", "a,y\n1,0\n", None, ["{path}"]),
        *((f"cut.{name}", whole[:end], None, ["{path}"]) for name, whole in DAMAGED.items() for end in (5, -20)),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str | bytes, target: str | None, said: list[str]
) -> None:
    path = tmp_path / name
    if name.startswith(("plain", "cut")):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        written(path, content)
    message = refusal(path, target)
    assert [text for text in said if text.format(path=path) not in message] == []


@pytest.mark.parametrize("broken", ["{poison", "[1]", "3", "[" * 100_000, '{"x": {"a": 1}'])
def test_a_line_that_is_no_object_is_handed_on_as_it_is(tmp_path: Path, broken: str) -> None:
    path = written(tmp_path / "data.jsonl", f"{LINE.strip()}\n{broken}\n{LINE.strip()}\n")
    source = open_source(path)
    good, bad, again = source.values()
    assert bad == broken.encode()
    assert good == again
    assert list(source.objects()) == [good, again]
    assert encode_value(bad) == broken.encode()


def test_a_column_of_true_and_false_is_of_booleans(tmp_path: Path) -> None:
    text = "a,b,c,y\nTrue,true,yes,FALSE\nFalse,TRUE,true,true\n,false,no,true\n"
    values = list(open_source(written(tmp_path / "data.csv", text)).values())
    assert values == [
        {"x": {"a": True, "b": True, "c": "yes"}, "y": False},
        {"x": {"a": False, "b": True, "c": "true"}, "y": True},
        {"x": {"a": None, "b": False, "c": "no"}, "y": True},
    ]


def test_a_field_of_a_table_may_be_longer_than_python_s_csv_takes(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a,note,y\n" + "".join(f"{n},{'x' * 200_000 if n == 3 else 'x'},{n % 2}\n" for n in range(5)))
    assert [len(value["x"]["note"]) for value in open_source(path).values()] == [1, 1, 1, 200_000, 1]
