"""Files of observations: CSV and JSON lines, also gzipped, and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import shlex
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from attributary_explainers.wording import did_you_mean, show_count, show_number

from ..errors import SourceError

csv.field_size_limit(2**24)  # upstream's 131 072 characters are less than a record may have

SAMPLE = 1000
"""Rows that decide whether a CSV column holds numbers."""


SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_LARGEST_INTEGER = 2**63
_BOOLEANS = {"true": True, "false": False}

_MOST_VALUES = 100
_NEARLY_ALL = 0.9
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")

Value = dict[str, Any] | bytes
"""An observation's value, `{"x": {…}, "y": …}`; the bytes of a line that is no JSON object, as they are."""


@dataclass(frozen=True)
class Source:
    """Reads a file of observations.

    Attributes
    ----------
    path
        The file.
    target
        Name of the column with the label or target.
    features
        Names of the feature columns, in order; None for JSON lines, where each line says.
    """

    path: Path
    target: str
    features: tuple[str, ...] | None
    _rows: Callable[[], Iterator[Value]]
    _count: Callable[[], int]

    def values(self) -> Iterator[Value]:
        """Yield the value of each observation's record, in the order of the file."""
        return self._rows()

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the values that are JSON objects."""
        return _objects(self._rows())

    def count(self, limit: int | None = None) -> int:
        """Return the number of observations, at most `limit`.

        No value is looked at, so that it is quick.

        Raises
        ------
        SourceError
            The file is damaged somewhere.
        """
        n = self._count()
        return n if limit is None else min(n, limit)


def _objects(values: Iterator[Value]) -> Iterator[dict[str, Any]]:
    return (value for value in values if isinstance(value, dict))


def open_source(path: Path, target: str | None = None, drop: Sequence[str] = ()) -> Source:
    """Open a file of observations: CSV, JSON lines or Parquet.

    Its name ends in `.csv`, `.tsv`, `.jsonl`, `.ndjson` (each also `.gz`) or `.parquet`. The cells of a CSV file are
    separated by commas; or by semicolons, tabs or bars, where its header has no comma.

    Parameters
    ----------
    target
        Column with the label; None is the last one that is not dropped. JSON lines are taken as they are,
        `{"x": {…}, "y": …}`, unless a target is named: then each line is a flat object. An empty name: there is no
        label, and every column is a feature; a line is then `{"x": {…}}` or a flat object.
    drop
        Columns that are no features; each item is the name of a column, or several with commas between them.

    Raises
    ------
    SourceError
        The file is not there, is of no known kind, or has no such column or none left.
    """
    if not path.is_file():
        raise SourceError(f"no file at {path}")
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix != ".gz"), "")
    readers = {".csv": _csv, ".tsv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
    if kind not in readers:
        raise SourceError(f"{path}: expected .csv, .tsv, .jsonl or .ndjson (each also .gz), or .parquet")
    with _faults_named(path):
        return readers[kind](path, target, drop)


@contextmanager
def _faults_named(path: Path) -> Iterator[None]:
    # Damage can be anywhere in the file, so reading on after the start is guarded as the start is.
    try:
        yield
    except csv.Error as error:
        raise SourceError(f"cannot read {path}: {error}. Is a quotation mark missing in it?") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {path}: {error}") from None


@contextmanager
def _lines_of(path: Path) -> Iterator[io.TextIOBase]:
    with _faults_named(path):
        # utf-8-sig: a byte order mark is no part of the first name.
        if path.suffix == ".gz":
            with gzip.open(path) as compressed, io.TextIOWrapper(compressed, "utf-8-sig", newline="") as file:
                yield file
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield file


def _csv(path: Path, target: str | None, drop: Sequence[str]) -> Source:
    with _lines_of(path) as file:
        separator = separator_of(file.readline(), is_tsv=".tsv" in path.suffixes)
    with _lines_of(path) as file:
        rows = csv.reader(file, delimiter=separator)
        header = next(rows, None)
        sample = list(islice(rows, SAMPLE))
    if not header or len(header) < 2:
        raise SourceError(
            f"{path}: expected a header row with at least two columns, separated by commas, semicolons, tabs or bars"
        )
    if looks_like_data(header):
        raise SourceError(
            f"{path}: its first row looks like data: write a header row with the names of the columns above it"
        )
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise SourceError(f"{path}: two columns are called {', '.join(twice)}; name each differently")
    dropped = _dropped(path, header, drop)
    chosen, features = _target(path, header, target, dropped)
    # A column is of one kind as a whole: a category "1" must not turn into a number in some rows.
    kinds = [kind_of([row[i] for row in sample if i < len(row) and row[i]]) for i in range(len(header))]

    def values() -> Iterator[Value]:
        with _lines_of(path) as file:
            rows = csv.reader(file, delimiter=separator)
            next(rows)
            for row in rows:
                if not row:
                    continue
                cells = {
                    name: as_cell(text, kind)
                    for name, text, kind in zip(header, row, kinds, strict=False)
                    if name not in dropped
                }
                if not chosen:
                    yield {"x": cells} if len(row) == len(header) else {}  # refused later, as below
                    continue
                y = cells.pop(chosen, None)
                # A row of another length has its cells in the wrong columns: without a label it is refused later.
                yield {"x": cells, "y": y if len(row) == len(header) else None}

    def count() -> int:
        with _lines_of(path) as file:
            return max(sum(1 for row in csv.reader(file, delimiter=separator) if row) - 1, 0)

    return Source(path, chosen, features, values, count)


def _json_lines(path: Path, target: str | None, drop: Sequence[str]) -> Source:
    dropped: frozenset[str] = frozenset()
    is_whole = False

    def values() -> Iterator[Value]:
        with _lines_of(path) as file:
            for line in filter(str.strip, file):
                try:
                    data = json.loads(line)
                except (ValueError, RecursionError):
                    data = None
                if not isinstance(data, dict):
                    yield line.strip().encode("utf-8", "surrogatepass")  # as on the topic: the worker refuses it
                    continue
                value = data if target is None or is_whole else _split(data, target)
                if dropped and isinstance(x := value.get("x"), dict):
                    value = {**value, "x": {name: cell for name, cell in x.items() if name not in dropped}}
                yield value

    first = next(_objects(values()), None)
    if first is None:
        is_empty = next(values(), None) is None
        raise SourceError(f"{path} is empty" if is_empty else f"{path}: no line is a JSON object")
    if target is None and not isinstance(first.get("x"), dict):
        raise SourceError(
            f'{path}: expected lines {{"x": {{…}}, "y": …}}; for flat objects name the target column with --target'
        )
    is_whole = target == "" and isinstance(first["x"].get("x"), dict)
    if target and all(value["y"] is None for value in islice(_objects(values()), SAMPLE)):
        raise SourceError(f"{path}: no line has {target!r}; the first has {', '.join(first['x'])}")
    if drop:
        # A line need not have every feature: what the first thousand lines have may be left out.
        sample = [value["x"] for value in islice(_objects(values()), SAMPLE) if isinstance(value.get("x"), dict)]
        dropped = _dropped(path, list(dict.fromkeys(chain.from_iterable(sample))), drop)

    def count() -> int:
        with _lines_of(path) as file:
            return sum(1 for line in file if line.strip())

    return Source(path, "y" if target is None else target, None, values, count)


def _split(data: dict[str, Any], target: str) -> dict[str, Any]:
    if not target:
        return {"x": data}
    return {"x": {name: value for name, value in data.items() if name != target}, "y": data.get(target)}


def _parquet(path: Path, target: str | None, drop: Sequence[str]) -> Source:
    try:
        from pyarrow import parquet  # an extra: most users have no Parquet
    except ImportError:
        raise SourceError(f"reading {path} needs pyarrow: pip install 'attributary[parquet]'") from None
    file = parquet.ParquetFile(path)
    header = [str(name) for name in file.schema_arrow.names]
    chosen, features = _target(path, header, target, _dropped(path, header, drop))
    columns = [*features, chosen] if chosen else [*features]

    def values() -> Iterator[Value]:
        batches = parquet.ParquetFile(path).iter_batches(batch_size=SAMPLE, columns=columns)
        for row in chain.from_iterable(batch.to_pylist() for batch in batches):
            yield _split(row, chosen)

    return Source(path, chosen, features, values, lambda: int(file.metadata.num_rows))


def _target(path: Path, header: list[str], target: str | None, dropped: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the label's column and the feature columns."""
    left = [name for name in header if name not in dropped]
    if target in dropped:
        raise SourceError(f"{path}: {target!r} is the target, which cannot be dropped")
    if target and target not in header:
        raise SourceError(f"{path} has no column {target!r}{did_you_mean(target, header) or _has(header)}")
    if len(left) < (1 if target == "" else 2):
        raise SourceError(f"{path}: no feature is left of {', '.join(header)}")
    chosen = left[-1] if target is None else target
    return chosen, tuple(name for name in left if name != chosen)


def _dropped(path: Path, header: list[str], drop: Sequence[str]) -> frozenset[str]:
    # A name may hold a comma itself.
    names = [name for given in drop for name in ([given] if given in header else given.split(","))]
    names = [name if name in header else name.strip() for name in names]
    for name in names:
        if name not in header:
            raise SourceError(f"{path} has no column {name!r} to drop{did_you_mean(name, header) or _has(header)}")
    return frozenset(names)


def _has(header: list[str]) -> str:
    return f"; it has {', '.join(header)}"


def separator_of(header: str, *, is_tsv: bool = False) -> str:
    r"""Return the separator of a header row.

    It is the comma where there is one, else the sign that the header has most of. Signs within quotes are part of a
    name. A file that is called .tsv has tabs wherever its header has one.

    Examples
    --------
    >>> separator_of("age;rate;y"), separator_of('"age, years"|y'), separator_of("y")
    (';', '|', ',')
    >>> separator_of("age, years\trate\ty", is_tsv=True)
    '\t'
    """
    bare = _QUOTED.sub("", header)
    if is_tsv and "\t" in bare:
        return "\t"
    return "," if "," in bare else max(SEPARATORS, key=bare.count)


def looks_like_data(header: Sequence[str]) -> bool:
    """Return whether the first row of a file has values, not names.

    That is where each cell is a number, or each but one and some of them has a fraction (a row of numbers and its
    label). Numbers from 0 on are names: pandas gives them to columns that have none.

    Examples
    --------
    >>> looks_like_data(["5.1", "3.5", "setosa"]), looks_like_data(["country", "1990", "1991"])
    (True, False)
    >>> looks_like_data(["1", "0"]), looks_like_data(["0", "1", "2"])
    (True, False)
    """
    found = [number for text in header if (number := as_number(text)) is not None]
    if len(found) < len(header):
        return len(found) == len(header) - 1 > 1 and any(isinstance(number, float) for number in found)
    return len(found) < 3 or found != list(range(len(found)))


def kind_of(column: Sequence[str]) -> str:
    """Return the kind of a column: `number`, `boolean` or `text`.

    Booleans are True and False, however written.

    Examples
    --------
    >>> kind_of(["1", "2.5"]), kind_of(["True", "FALSE"]), kind_of(["1", "yes"])
    ('number', 'boolean', 'text')
    """
    if all(as_number(text) is not None for text in column):
        return "number"
    return "boolean" if all(text.lower() in _BOOLEANS for text in column) else "text"


def as_cell(text: str, kind: str) -> Any:
    """Return the value of a cell in a column of a kind; None if empty.

    A cell that does not fit the kind stays text.
    """
    if not text:
        return None
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), text)
    number = as_number(text) if kind == "number" else None
    return text if number is None else number


def as_number(text: str) -> int | float | None:
    """Return the number in a cell, or None for text.

    NaN and infinity are numbers here; they are refused later, by name.
    """
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if text.lstrip("+-").isdecimal() and abs(number) < _LARGEST_INTEGER:
        return int(text)
    return number


def doubtful_columns(source: Source) -> Iterator[str]:
    """Yield a sentence for each column that is hardly a feature.

    The first 1000 rows decide. Hardly a feature is text of which nearly all values differ, and more than 100 do: each
    would be a category of its own. So are numbers that rise by the same step from each row to the next, in more than
    100 rows, and numbers with a decimal comma, which are read as text.
    """
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for value in islice(source.objects(), SAMPLE):
        n_rows += 1
        for name, cell in value["x"].items() if isinstance(value.get("x"), dict) else ():
            if cell is not None:
                columns.setdefault(name, []).append(cell)
    for name, cells in columns.items():
        if what := _doubt(cells, n_rows):
            yield f"{name or '(no name)'}: {what.format(name=shlex.quote(name))}"


def _doubt(cells: list[Any], n_rows: int) -> str:
    """Return the reason why a column is hardly a feature, or empty text.

    The reason has a place for the column's name.
    """
    if all(isinstance(cell, (int, float)) for cell in cells):
        step = _step(cells) if len(cells) == n_rows else None
        if step is None:
            return ""
        return (
            f"numbers that rise by {show_number(step)} in each of {show_count(n_rows)} rows: a row number or a time? "
            "--drop {name} leaves it out"
        )
    texts = [cell if isinstance(cell, str) else str(cell) for cell in cells]
    if len(texts) > 1 and all(map(_DECIMAL_COMMA.fullmatch, texts)):
        return "numbers with a decimal comma are read as text: write them with a point"
    n_different = len(set(texts))
    if n_different <= _MOST_VALUES or n_different < _NEARLY_ALL * len(texts):
        return ""
    return (
        f"text with {show_count(n_different)} different values in {show_count(n_rows)} rows: an identifier or a time? "
        "--drop {name} leaves it out"
    )


def _step(numbers: list[int | float]) -> float | None:
    """Return the step by which more than 100 numbers evenly rise, or None."""
    if len(numbers) <= _MOST_VALUES:
        return None
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    is_even = all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    return float(steps[0]) if steps[0] > 0 and is_even else None
