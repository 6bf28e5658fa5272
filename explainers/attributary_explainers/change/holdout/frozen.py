"""Copies of models that never change, and their bytes."""

from __future__ import annotations

from typing import Any

from ...pickling import dump_model, freeze, load_model


class Frozen:
    """Holds an unchanging copy of a model, and turns it into bytes once."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._bytes: bytes | None = None

    @classmethod
    def of(cls, model: Any) -> Frozen:
        """Copy a model."""
        return cls(freeze(model))

    @classmethod
    def load(cls, data: bytes | None) -> Frozen | None:
        """Restore a frozen model from the bytes of `dump`; None for None."""
        if data is None:
            return None
        frozen = cls(load_model(data))
        frozen._bytes = data
        return frozen

    def dump(self) -> bytes:
        """Return the model's bytes."""
        if self._bytes is None:
            self._bytes = dump_model(self.model)
        return self._bytes


def dump(frozen: Frozen | None) -> bytes | None:
    """Return the bytes of a frozen model, None for None."""
    return None if frozen is None else frozen.dump()
