"""The command `attributary`: one module per group of commands.

May import every other package; nothing imports it.
"""

import sys

from ..plain_install import end_without_worker

end_without_worker()  # before a module is imported that the plain install has not

from ..lean_imports import import_river, leave_out_numba  # noqa: E402

if sys.argv[1:2] == ["serve"]:  # the only command of a process that stays and runs no kernel
    leave_out_numba()
import_river()  # before another module imports it

from .main import main  # noqa: E402

__all__ = ["main"]
