"""A model as large as one wants, and a volume that is full while a file says so; for workers of the tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
from fsspec.implementations.local import LocalFileSystem
from river import linear_model


class Ballast(linear_model.LogisticRegression):
    """Carries bytes that cannot be compressed, and changes some at each observation."""

    def __init__(self, megabytes: float = 3.0) -> None:
        super().__init__()
        self.megabytes = megabytes
        self.ballast = np.random.default_rng(1).integers(0, 256, int(megabytes * 1e6), dtype=np.uint8)
        self.n = 0

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        super().learn_one(x, y)
        self.n += 1
        self.ballast[self.n * 7919 % len(self.ballast)] = self.n % 256


def ballast() -> Ballast:
    return Ballast(float(os.environ.get("BALLAST_MB", "3")))


class FullVolume(LocalFileSystem):
    """`full://PATH`: writes half of what it is given while there is a file PATH/FULL."""

    protocol = "full"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(str(path).removeprefix("full://"))

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        root = Path(os.environ["FULL_VOLUME"])
        if (root / "FULL").exists():
            Path(path).write_bytes(value[: len(value) // 2])
            raise OSError(28, "No space left on device")
        super().pipe_file(path, value, **kwargs)


fsspec.register_implementation("full", FullVolume, clobber=True)
