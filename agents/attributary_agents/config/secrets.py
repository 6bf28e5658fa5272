"""Reads secrets, which are given as a value or as a file that holds it, and printed nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BaseModel, SecretStr

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
    """Raise ValueError where a secret is given twice: as `name`, and in the file of `name`_file."""
    if value is not None and file is not None:
        raise ValueError(f"{name} and {name}_file are both given: give one of them")


def read_secret(path: str, value: SecretStr | None, file: Path | None) -> str | None:
    """Return the secret, given as a value or in a file; None where it is not given.

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


def holds_secret(model: type[BaseModel], path: tuple[Any, ...]) -> bool:
    """Return whether what is given at this place of the configuration is a secret, or may hold one.

    What stands in place of a whole section may, where somebody gave something else.
    """
    if not path:
        return any(holds_secret(model, (name,)) for name in model.model_fields)
    name, *rest = path
    field = model.model_fields.get(name)
    if field is None:
        return False
    parts = list(_parts(field.annotation))
    sections = [part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)]
    if any(get_origin(part) is dict for part in parts):  # by names that users choose
        rest = rest[1:]
    return SecretStr in parts or any(holds_secret(section, tuple(rest)) for section in sections)


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield a type and, of unions and annotated types, the types that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)
