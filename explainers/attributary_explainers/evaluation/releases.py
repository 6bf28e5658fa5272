"""Which releases of River the fast paths are taken with."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version

from ..errors import UntestedRiverWarning, warn_caller
from .evaluator import NotCoveredError

TESTED_RIVER = "0.26.1"
"""The newest release of River for which the tests have shown every fast path to equal the model.

Fast paths are taken with every release of its series (0.26), and with no other.
"""


@cache
def is_newer_than_tested(river: str | None = None) -> bool:
    """Return whether River is newer than tested; warn the first time.

    Parameters
    ----------
    river
        A release of River; None is the one that is installed.

    Raises
    ------
    NotCoveredError
        The release is of another series: every prediction is asked of the model itself.
    """
    found, tested = _numbers(version("river") if river is None else river), _numbers(TESTED_RIVER)
    named = ".".join(map(str, found))
    if found[:2] != tested[:2]:
        raise NotCoveredError(f"fast paths are tested with River {tested[0]}.{tested[1]}, and this is River {named}")
    if found <= tested:
        return False
    warn_caller(
        UntestedRiverWarning(
            f"River {named} is newer than {TESTED_RIVER}, the newest release that fast paths are tested with. They are "
            "taken, and compared with the model more often. This is said once"
        )
    )
    return True


def _numbers(release: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", release)
    return tuple(map(int, found[0].split("."))) if found else ()
