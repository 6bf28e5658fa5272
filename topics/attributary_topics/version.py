"""The version of the installed distribution, which all packages of Attributary share."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "attributary"


def installed_version() -> str:
    """Return the version of the installed distribution; `0+unknown` where the sources are used without one."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+unknown"
