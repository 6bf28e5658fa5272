"""One process of a machine compiles kernels, and others wait for it: what it keeps is theirs, too."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = "attributary-kernels.lock"


@contextmanager
def machine_lock(folder: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a folder of kernels, inside the block; it is let go with the process, however that ends.

    Parameters
    ----------
    folder
        Where kernels are kept, as `cache_folder` says.
    on_wait
        Called once, where another process holds it.
    """
    # Beside an installed package, kernels are where its compiled modules are.
    compiled = Path(folder) / "__pycache__"
    where = compiled if compiled.is_dir() else Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    # To lock a file one need not be able to write it: it may be another user's.
    handle = os.open(where / _NAME, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
