"""Summary sentence on whether anything is wrong with the fleet.

It stands above everything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from attributary_explainers.wording import show_count, show_names

from ...answers.incidents import IncidentLine
from ..words import counted, duration, name, when
from .assessing import Assessed


def sentence_of(
    fleet: Sequence[Assessed],
    lines: Sequence[IncidentLine],
    *,
    now_ms: int,
    n_dead_letters: int,
    n_configured: int = 0,
) -> str:
    """Return the sentence: the worst first, then counts, dead letters last.

    Parameters
    ----------
    fleet
        All models, in the order of attention.
    lines
        Incidents, in the order of attention.
    n_configured
        Models of the configuration of which no topic has said anything.
    """
    said = [*_head(fleet, lines, now_ms), *_counts(fleet)]
    if n_configured and fleet:
        said.append(f"{counted(n_configured, 'configured model has', 'configured models have')} not said anything yet")
    return " · ".join([*said, counted(n_dead_letters, "dead letter")])


def _head(fleet: Sequence[Assessed], lines: Sequence[IncidentLine], now_ms: int) -> list[str]:
    if not fleet:
        return ["No model has published anything yet"]
    wrong = sum(one.state == "incident" for one in fleet)
    broken = _broken(fleet)
    if wrong:
        worst = _of_line(lines[0], now_ms)
        has = "has" if wrong == 1 else "have"
        return [
            *broken,
            worst if lines[0].n == wrong else f"{_of(wrong, len(fleet))} {has} an incident, first: {worst}",
        ]
    is_one = len(fleet) == 1
    none = (
        f"{_name(fleet[0])} has no incident" if is_one else f"none of {show_count(len(fleet))} models has an incident"
    )
    if broken:
        return [*broken, none]
    silent = [one.silent_ms for one in fleet if one.silent_ms is not None]
    if len(silent) < len(fleet):
        return [f"Nothing is wrong: {none}"]
    return [f"Nothing was heard of {'it' if is_one else 'any model'} for {duration(min(silent))}; {none}"]


def _of_line(line: IncidentLine, now_ms: int) -> str:
    since = line.incidents[0].since
    said = name(line.headline, 120) + ("" if line.feature is None else f": {name(line.feature)}")
    return f"{said}, began {when(since.time_ms, since.observation, now_ms)}"


def _broken(fleet: Sequence[Assessed]) -> list[str]:
    refused = [one for one in fleet if one.state == "refused"]
    failing = [one for one in fleet if one.is_failing and one.state != "refused"]
    said = []
    if refused:
        verb = "is refused, its stored state is damaged" if len(refused) == 1 else "are refused, their state is damaged"
        said.append(f"{_of(len(refused), len(fleet))} {verb}: {_names(refused)}")
    if failing:
        verb = "fails" if len(failing) == 1 else "fail"
        said.append(f"{_of(len(failing), len(fleet))} {verb} on what comes: {_names(failing)}")
    return said


def _counts(fleet: Sequence[Assessed]) -> list[str]:
    silent = [one for one in fleet if one.state == "silent"]
    counts = [
        (
            sum(one.state == "suspected" for one in fleet),
            "incident is being confirmed",
            "incidents are being confirmed",
        ),
        (sum(one.is_unfaithful for one in fleet), "mirror is not faithful", "mirrors are not faithful"),
        (len(silent) if len(silent) < len(fleet) else 0, "is silent", "are silent"),
        (sum(one.state == "learning" for one in fleet), "is still learning", "are still learning"),
        (sum(bool(one.n_waiting) for one in fleet), "waits for labels", "wait for labels"),
    ]
    return [counted(n, one, many) for n, one, many in counts if n]


def _of(n: int, of: int) -> str:
    return f"{show_count(n)} of {show_count(of)} models"


def _names(some: Sequence[Assessed]) -> str:
    return show_names([_name(one) for one in some], 2)


def _name(one: Assessed) -> str:
    return name(one.model.model_id)
