"""An exported state is read back as it was, and any other file is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import AttributaryError
from attributary_agents.models.model_state import new_state
from attributary_agents.state.codec import encode_state, versions
from attributary_agents.state.files import ExportedState, check_free, read_file, write_file
from attributary_agents.state.seal import Seal

KEY = b"k" * 32


def blob_of(model_id: str = "credit") -> bytes:
    config = parse_config({"models": {model_id: {"model": {"class": "river.naive_bayes.GaussianNB"}, "version": "7"}}})
    state = new_state(model_id, config.models[model_id])
    state.partition, state.offset, state.n_observations = 2, 41, 40
    return encode_state(state)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "credit.state"


def written(file: Path, seal: Seal | None = None) -> bytes:
    write_file(file, ExportedState.of("credit", blob_of()), seal or Seal())
    return file.read_bytes()


def test_the_first_line_says_what_it_is(file: Path) -> None:
    written(file)
    found = read_file(file, Seal())
    said = json.loads(file.read_bytes().split(b"\n")[0])
    assert said == found.header
    assert found.blob == blob_of()
    assert said.pop("sha256")
    assert said == {
        "format": "attributary-state-1",
        "model_id": "credit",
        "version": "7",
        "observations": 40,
        "partition": 2,
        "offset": 41,
        "size": len(blob_of()),
        "packages": versions(),
    }
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_file_that_is_there_is_replaced_only_by_force(file: Path) -> None:
    check_free(file)
    written(file)
    with pytest.raises(AttributaryError, match=r"credit\.state exists.*--force"):
        check_free(file)
    check_free(file, force=True)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_changed_byte_or_a_missing_end_is_found(key: bytes | None, file: Path) -> None:
    content = written(file, Seal(key))
    # In place: a file that is written anew each time is brought to the disk each time.
    with file.open("r+b", buffering=0) as raw:
        for i in range(0, len(content), 3):
            raw.seek(i)
            raw.write(bytes([content[i] ^ 1]))
            said = ""
            try:
                found = read_file(file, Seal(key))
            except AttributaryError as error:
                said = str(error)
            # Without a key there are fields that say nothing of the state.
            assert (str(file) in said and "\n" not in said) or (key is None and found.blob == blob_of())
            raw.seek(i)
            raw.write(content[i : i + 1])
        assert read_file(file, Seal(key)).blob == blob_of()
        for end in reversed(range(0, len(content), 7)):
            raw.truncate(end)
            with pytest.raises(AttributaryError):
                read_file(file, Seal(key))


def test_the_signature_is_asked_for_where_there_is_a_key(file: Path) -> None:
    written(file)
    with pytest.raises(AttributaryError, match=r"credit\.state is not signed.*state\.key"):
        read_file(file, Seal(KEY))
    assert read_file(file, Seal(KEY, accept_unsigned=True)).blob == blob_of()
    written(file, Seal(KEY))
    assert read_file(file, Seal(KEY)).blob == blob_of()
    with pytest.raises(AttributaryError, match="with another key"):
        read_file(file, Seal(b"x" * 32))


def test_the_signature_covers_the_first_line(file: Path) -> None:
    line, _, rest = written(file, Seal(KEY)).partition(b"\n")
    file.write_bytes(orjson.dumps({**orjson.loads(line), "more": 1}) + b"\n" + rest)
    with pytest.raises(AttributaryError, match="with another key"):
        read_file(file, Seal(KEY))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"offset": 42}, "is damaged: its first line says other things"),
        ({"model_id": "fraud"}, "is not of this model"),
        ({"format": "attributary-state-2"}, "expected 'attributary-state-1'"),
    ],
)
def test_a_first_line_that_does_not_fit_is_refused(change: dict[str, Any], said: str, file: Path) -> None:
    written(file)
    line = orjson.dumps({**read_file(file, Seal()).header, **change})
    sealed = written(file).partition(b"\n")[2]
    file.write_bytes(line + b"\n" + sealed)
    with pytest.raises(AttributaryError, match=said):
        read_file(file, Seal())


@pytest.mark.parametrize("content", [b"", b"\n", b"[]\n", b"17\nATH1", b"{}\n", b"\x80\x04K\x01.", b"a,b\n1,2\n"])
def test_a_file_of_another_kind_is_refused(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    with pytest.raises(AttributaryError, match="is no state that `attributary models export` has written"):
        read_file(file, Seal())


def test_a_place_that_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(AttributaryError, match=r"cannot write .*nowhere/credit\.state: No such file"):
        written(tmp_path / "nowhere/credit.state")
    with pytest.raises(AttributaryError, match=r"cannot read .*credit\.state: No such file"):
        read_file(tmp_path / "credit.state", Seal())
