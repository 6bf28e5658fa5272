"""The native core: every calculation that runs for each observation.

Each calculation is here once, in an ordinary Python file in Cython's pure Python mode. With a compiler at the
installation it runs as C; without one the same file runs as Python, 4 to 30 times slower, with the same numbers.
"""

from __future__ import annotations

import logging

from .build_mode import is_compiled

__all__ = ["is_compiled"]

if not is_compiled():
    logging.getLogger(__name__).warning(
        "the core is not compiled, so explanations take 4 to 30 times as long; install gcc, clang or "
        "`pip install ziglang`, then `pip install --force-reinstall --no-deps --no-cache-dir attributary`"
    )
