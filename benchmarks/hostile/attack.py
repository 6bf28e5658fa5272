"""What an attack is, what came of it, and the list of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .lab import Lab

Run = Callable[[Lab], "Found"]


@dataclass(frozen=True)
class Found:
    """What came of an attack.

    Attributes
    ----------
    figure
        What was seen, in words and numbers: "1 dead letter, 0 of 150 lost".
    held
        Whether that is as good as it has to be.
    fast
        Whether what was measured by time is so, too: the table needs it, and no test does.
    """

    figure: str
    held: bool
    fast: bool = True


@dataclass(frozen=True)
class Attack:
    """Describes an attack.

    Attributes
    ----------
    name
        One word, for the command line.
    what
        What the attacker does, as the table says it.
    before
        What it did to the release before there was a bound, as measured then.
    run
        Makes the attack in a lab of its own.
    """

    name: str
    what: str
    before: str
    run: Run


ATTACKS: dict[str, Attack] = {}
"""Name to attack, in the order in which their modules are imported."""


def attack(name: str, what: str, before: str) -> Callable[[Run], Run]:
    """Register a function as an attack."""

    def register(run: Run) -> Run:
        ATTACKS[name] = Attack(name, what, before, run)
        return run

    return register
