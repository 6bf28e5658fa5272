"""The command `attributary`: one module per group of commands.

May import every other package; nothing imports it.
"""

from .main import main

__all__ = ["main"]
