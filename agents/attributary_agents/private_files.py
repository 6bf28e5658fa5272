"""Files that only their owner may read.

They hold observations, or are made of them.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_private(path: Path) -> BinaryIO:
    """Open an emptied file to write bytes that only its owner may read.

    This holds whatever the umask, and whatever its permissions were before.

    Raises
    ------
    OSError
        It cannot be written, or is another user's.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            os.fchmod(handle, 0o600)  # before anything is in it; the one that was there may be open to others
            os.ftruncate(handle, 0)
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "wb")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read.

    Raises as `open_private` does.
    """
    with open_private(path) as file:
        file.write(content)


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner may enter, if there is none.

    A folder that is there stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
