"""Section for stored states: the place of large states, and signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from ..errors import ConfigError
from .secrets import Secret, read_secret, refuse_both
from .section import Section

MIN_KEY_LENGTH = 32


class StateConfig(Section):
    """How the models' states are stored: by default in the state table's changelog topic, unsigned."""

    url: str | None = Field(
        None,
        description="Where states beyond 900 kB go, as fsspec reads it: s3://bucket/states, file:///var/lib/states. "
        "null: into the changelog, in pieces.",
    )
    key: Secret | None = Field(
        None, description="Secret that states are signed with: 32 characters or more, the same for all workers."
    )
    key_file: Path | None = Field(None, description="File with that secret.")
    accept_unsigned: bool = Field(
        False,
        description="Read states without a signature all the same, and sign them: for the first start with a key.",
    )

    allowed: list[Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*$")]] = Field(
        default_factory=list,
        description="Packages whose classes, and classes and functions (module.Type) that stored states may hold "
        "beside what River, numpy, scikit-learn, the configured models and control.allowed name.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> StateConfig:
        refuse_both("key", self.key, self.key_file)
        if self.key is not None:
            _check_length(len(self.key.get_secret_value()), "key")
        if self.accept_unsigned and self.key is None and self.key_file is None:
            raise ValueError("accept_unsigned is of use only with key or key_file: leave it out")
        return self

    @property
    def doubt(self) -> str | None:
        """A warning about how states are stored, with its remedy, or None."""
        if self.accept_unsigned:
            return (
                "state.accept_unsigned is set: states without a signature are read, too. A worker signs those of its "
                "partitions when it takes them over, and says how many: leave accept_unsigned out as soon as all "
                "partitions have been taken over once"
            )
        if self.key is not None or self.key_file is not None:
            return None
        return (
            "stored states are not signed: who can write to the state's changelog, or to state.url, can put another "
            "model in the place of one. Write a key with `openssl rand -hex 32` into a file, and name it in "
            "state.key_file; where the group has stored states already, set state.accept_unsigned: true as well for "
            "the first start with the key, which signs them"
        )

    def read_key(self) -> bytes | None:
        """Return the key; None where nothing is signed.

        Raises
        ------
        ConfigError
            Its file cannot be read, or holds too few characters.
        """
        secret = read_secret("state.key", self.key, self.key_file)
        if secret is None:
            return None
        try:
            _check_length(len(secret), "state.key_file")
        except ValueError as error:
            raise ConfigError(str(error)) from None
        return secret.encode()


def _check_length(length: int, name: str) -> None:
    if length < MIN_KEY_LENGTH:
        raise ValueError(
            f"{name}: expected {MIN_KEY_LENGTH} characters or more, got {length}; `openssl rand -hex 32` prints 64"
        )
