"""Reads secrets from a value or a file; they are never printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from ..errors import ConfigError

MASK = str(SecretStr("any"))
"""What stands in place of a secret wherever the configuration is printed."""


def _usable(value: SecretStr) -> SecretStr:
    if not value.get_secret_value():
        raise ValueError("it is empty")
    if value.get_secret_value() == MASK:
        raise ValueError(f"{MASK} is what `attributary config show` prints in place of a secret: give the secret")
    return value


Secret = Annotated[SecretStr, AfterValidator(_usable)]
"""Type of a setting whose value is never printed."""


def refuse_both(name: str, value: SecretStr | None, file: Path | None) -> None:
    """Raise ValueError if a secret is given both as `name` and `name`_file."""
    if value is not None and file is not None:
        raise ValueError(f"{name} and {name}_file are both given: give one of them")


def read_secret(path: str, value: SecretStr | None, file: Path | None) -> str | None:
    """Return the secret from its value or file, or None.

    A file is read each time, so it is only needed where the secret is, and may be exchanged between two starts. Line
    ends behind the secret do not belong to it: editors and `echo` put them there.

    Parameters
    ----------
    path
        The setting's place in the configuration, such as "kafka.security.password"; its file is `path`_file.

    Raises
    ------
    ConfigError
        The file cannot be read, or there is nothing in it.
    """
    if file is None:
        return None if value is None else value.get_secret_value()
    try:
        secret = file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigError(f"{path}_file: cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}_file: {file} is not text in UTF-8") from None
    if not secret:
        raise ConfigError(f"{path}_file: {file} is empty: write the secret into it")
    return secret
