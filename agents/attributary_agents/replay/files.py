"""Reads observations from files: CSV, JSON lines and Parquet, plain or gzip-compressed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import SourceError

SAMPLE = 1000
"""Rows that decide whether a CSV column holds numbers."""


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
    n_rows
        Rows where the format knows them beforehand (Parquet), else None.
    """

    path: Path
    target: str
    features: tuple[str, ...] | None
    n_rows: int | None
    _rows: Callable[[], Iterator[dict[str, Any]]]

    def values(self) -> Iterator[dict[str, Any]]:
        """Yield the value of each observation's record, in the order of the file: `{"x": {…}, "y": …}`."""
        return self._rows()


def open_source(path: Path, target: str | None = None) -> Source:
    """Open a file: `.csv`, `.jsonl`, `.ndjson` (each also `.gz`) or `.parquet`.

    Parameters
    ----------
    target
        Column with the label; None is the last one. JSON lines are taken as they are, `{"x": {…}, "y": …}`,
        unless a target is named: then each line is a flat object.

    Raises
    ------
    SourceError
        The file is not there, is of no known kind, or has no such column.
    """
    if not path.is_file():
        raise SourceError(f"no file at {path}")
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix != ".gz"), "")
    readers = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
    if kind not in readers:
        raise SourceError(f"{path}: expected .csv, .jsonl or .ndjson (each also .gz), or .parquet")
    with _faults_named(path):
        return readers[kind](path, target)


@contextmanager
def _faults_named(path: Path) -> Iterator[None]:
    # Damage can be anywhere in the file, so reading on after the start is guarded as the start is.
    try:
        yield
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
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


def _csv(path: Path, target: str | None) -> Source:
    with _lines_of(path) as file:
        rows = csv.reader(file)
        header = next(rows, None)
        sample = list(islice(rows, SAMPLE))
    if not header or len(header) < 2:
        raise SourceError(f"{path}: expected a header row with at least two columns")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise SourceError(f"{path}: two columns are called {', '.join(twice)}; name each differently")
    chosen = _target(path, header, target)
    # A column is of numbers or of text as a whole: a category "1" must not turn into a number in some rows.
    columns = [[row[i] for row in sample if i < len(row) and row[i]] for i in range(len(header))]
    numeric = [all(_number(text) is not None for text in column) for column in columns]

    def values() -> Iterator[dict[str, Any]]:
        with _lines_of(path) as file:
            rows = csv.reader(file)
            next(rows)
            for row in rows:
                if not row:
                    continue
                cells = {
                    name: _cell(text, is_number) for name, text, is_number in zip(header, row, numeric, strict=False)
                }
                y = cells.pop(chosen, None)
                # A row of another length has its cells in the wrong columns: without a label it is refused later.
                yield {"x": cells, "y": y if len(row) == len(header) else None}

    return Source(path, chosen, tuple(name for name in header if name != chosen), None, values)


def _cell(text: str, is_number: bool) -> Any:
    if not text:
        return None
    number = _number(text) if is_number else None
    return text if number is None else number


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_LARGEST_INTEGER = 2**63


def _number(text: str) -> int | float | None:
    """Return the number in a cell, NaN and infinity included (they are refused later, by name); None for text."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if text.lstrip("+-").isdecimal() and abs(number) < _LARGEST_INTEGER:
        return int(text)
    return number


def _json_lines(path: Path, target: str | None) -> Source:
    def values() -> Iterator[dict[str, Any]]:
        with _lines_of(path) as file:
            for n, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    data = json.loads(line)
                except ValueError as error:
                    raise SourceError(f"{path}:{n}: not JSON: {error}") from None
                if not isinstance(data, dict):
                    raise SourceError(f"{path}:{n}: expected an object, got {type(data).__name__}")
                yield data if target is None else _split(data, target)

    first = next(values(), None)
    if first is None:
        raise SourceError(f"{path} is empty")
    if target is None and not isinstance(first.get("x"), dict):
        raise SourceError(f'{path}: expected lines {{"x": {{…}}, "y": …}}; for flat objects name the target column')
    if target is not None and first["y"] is None:
        raise SourceError(f"{path}: its first line has no {target!r}; it has {', '.join(first['x'])}")
    return Source(path, target or "y", None, None, values)


def _split(data: dict[str, Any], target: str) -> dict[str, Any]:
    return {"x": {name: value for name, value in data.items() if name != target}, "y": data.get(target)}


def _parquet(path: Path, target: str | None) -> Source:
    try:
        from pyarrow import parquet  # an extra: most users have no Parquet
    except ImportError:
        raise SourceError(f"reading {path} needs pyarrow: pip install 'attributary[parquet]'") from None
    file = parquet.ParquetFile(path)
    header = [str(name) for name in file.schema_arrow.names]
    chosen = _target(path, header, target)

    def values() -> Iterator[dict[str, Any]]:
        batches = parquet.ParquetFile(path).iter_batches(batch_size=SAMPLE)
        for row in chain.from_iterable(batch.to_pylist() for batch in batches):
            yield _split(row, chosen)

    return Source(path, chosen, tuple(name for name in header if name != chosen), int(file.metadata.num_rows), values)


def _target(path: Path, header: list[str], target: str | None) -> str:
    if target is None:
        return header[-1]
    if target not in header:
        raise SourceError(f"{path} has no column {target!r}; it has {', '.join(header)}")
    return target
