"""`attributary sources`: the group of its commands."""

from __future__ import annotations

import click

from ..commands import Commands
from .positions import sources_reset, sources_status
from .suggest import suggest


@click.group(cls=Commands)
def sources() -> None:
    """Attach topics that you have already: suggest how, look at how far they are mapped, set one back."""


for _command in (suggest, sources_status, sources_reset):
    sources.add_command(_command)
