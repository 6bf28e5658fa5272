"""The native core: what is computed for each observation, each calculation once.

Every module is an ordinary Python file in Cython's pure Python mode. Where a compiler was there at the installation it
runs as C; where not, the same file runs as Python, 4 to 30 times slower, with the same numbers.
"""

from __future__ import annotations

from .build_mode import is_compiled

__all__ = ["is_compiled"]
