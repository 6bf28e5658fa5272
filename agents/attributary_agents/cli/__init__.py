"""The command `attributary`: one module per group of commands.

May import every other package; nothing imports it.
"""

from ..lean_imports import import_river

import_river()  # before another module imports it

from .main import main  # noqa: E402

__all__ = ["main"]
