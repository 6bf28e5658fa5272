"""The command `attributary`: one module per group of commands.

May import every other package; nothing imports it.
"""

from ..plain_install import end_without_worker

end_without_worker()  # before a module is imported that the plain install has not

from ..river_import import import_river  # noqa: E402

import_river()  # before another module imports it

from .main import main  # noqa: E402

__all__ = ["main"]
