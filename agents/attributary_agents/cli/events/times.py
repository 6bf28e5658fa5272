"""Reads points in time from the command line."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

import click

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Time(click.ParamType):
    """A date and time, or how long ago: `2026-11-25T20:00Z`, `2h`. Gives milliseconds since the epoch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the milliseconds, or end the command where it is no time."""
        if isinstance(value, int):
            return value
        if ago := re.fullmatch(r"(\d{1,9})([smhd])", value):
            return round((time.time() - int(ago[1]) * _UNITS_S[ago[2]]) * 1000)
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"expected a time such as 2026-11-25T20:00Z, or how long ago, 2h; got {value!r}", param, ctx)
        # Without a zone it is UTC, as everything that is printed.
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
