"""What holds observations is read by its owner alone, whatever the umask says and was there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from attributary_agents.private_files import make_private_folder, open_private, write_private


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_new_file_is_its_owners(tmp_path: Path) -> None:
    write_private(tmp_path / "new", b"text")
    assert ((tmp_path / "new").read_bytes(), mode(tmp_path / "new")) == (b"text", 0o600)


@pytest.mark.usefixtures("umask")
def test_one_that_others_could_read_is_its_owners_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"a longer text")
    path.chmod(0o666)
    with open_private(path) as file:
        assert mode(path) == 0o600
        file.write(b"text")
    assert path.read_bytes() == b"text"


@pytest.mark.usefixtures("umask")
def test_a_folder_that_we_make_is_its_owners_and_another_stays_as_it_is(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    make_private_folder(shared)
    assert mode(shared) == 0o755


def test_what_is_no_file_is_written_to() -> None:
    write_private(Path(os.devnull), b"text")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_private(tmp_path)
