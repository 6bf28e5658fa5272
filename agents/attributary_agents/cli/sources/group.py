"""`attributary sources`: the group of its commands."""

from __future__ import annotations

import click

from ..commands import Commands
from .suggest import suggest


@click.group(cls=Commands)
def sources() -> None:
    """Attach topics that you have already: suggest how."""


sources.add_command(suggest)
