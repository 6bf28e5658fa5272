"""The command `attributary`: one module per group of commands.

May import every other package; nothing imports it.
"""

import sys

from ..lean_imports import import_river, leave_out_numba

if sys.argv[1:2] == ["serve"]:  # the only command of a process that stays and runs no kernel
    leave_out_numba()
import_river()  # before another module imports it

from .main import main  # noqa: E402

__all__ = ["main"]
