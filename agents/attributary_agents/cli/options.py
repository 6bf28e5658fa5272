"""The options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from ..config.reading import load_config

F = TypeVar("F", bound=Callable[..., Any])


def config_option(function: F) -> F:
    """Add `--config`, and pass the loaded and checked configuration."""
    option = click.option(
        "--config",
        "-c",
        "path",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="ATTRIBUTARY_CONFIG",
        default=None,
        help="YAML file with the configuration [env ATTRIBUTARY_CONFIG]; `attributary config example` prints one.",
    )

    @wraps(function)
    def loaded(path: Path | None, **kwargs: Any) -> Any:
        return function(config=load_config(path), **kwargs)

    return option(loaded)  # type: ignore[return-value]


def json_option(function: F) -> F:
    """Add `--json`."""
    return click.option("as_json", "--json", is_flag=True, help="Print JSON instead of text.")(function)
