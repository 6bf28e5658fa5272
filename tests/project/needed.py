"""What an install of this distribution needs, by the metadata of what is installed here."""

from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(extra: str = "") -> set[str]:
    """The packages that `attributary[extra]` installs, itself among them; extras of packages count, too."""
    found: set[str] = set()
    looked_at: set[tuple[str, str]] = set()
    open_ = [("attributary", one) for one in {"", extra}]
    while open_:
        name, wanted = one = open_.pop()
        if one in looked_at:
            continue
        looked_at.add(one)
        found.add(name)
        for requirement in _requirements(name):
            if requirement.marker is None or requirement.marker.evaluate({"extra": wanted}):
                needs = canonicalize_name(requirement.name)
                open_ += [(needs, inner) for inner in {"", *requirement.extras}]
    return found


def _requirements(name: str) -> list[Requirement]:
    try:
        return [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:  # an extra that nobody develops with
        return []
