"""Says whether anything is wrong with the fleet, in one sentence that stands above everything else."""

from __future__ import annotations

from collections.abc import Sequence

from attributary_explainers.wording import show_count, show_names

from ..words import counted, duration, gist, name, when, window_text
from .assessing import Assessed


def sentence_of(
    fleet: Sequence[Assessed], *, now_ms: int, window_ms: int | None, n_dead_letters: int, n_configured: int = 0
) -> str:
    """Return the sentence: what is worst first, then counts; the number of dead letters is always the last.

    Parameters
    ----------
    fleet
        All models, in the order of attention.
    n_configured
        Models of the configuration of which no topic has said anything.
    """
    said = [*_head(fleet, now_ms, window_text(window_ms)), *_counts(fleet)]
    if n_configured and fleet:
        said.append(f"{counted(n_configured, 'configured model has', 'configured models have')} not said anything yet")
    return " · ".join([*said, counted(n_dead_letters, "dead letter")])


def _head(fleet: Sequence[Assessed], now_ms: int, window: str) -> list[str]:
    if not fleet:
        return ["No model has published anything yet"]
    changed = [one for one in fleet if one.changed is not None]
    recent = [one for one in changed if not one.is_old]
    broken = _broken(fleet)
    if recent:
        return [*broken, _changed(recent, len(fleet), window, now_ms)]
    if changed:
        return [*broken, _still_open(changed, len(fleet), now_ms)]
    is_one = len(fleet) == 1
    none = (
        f"{_name(fleet[0])} has not changed {window}"
        if is_one
        else f"none of {show_count(len(fleet))} models changed {window}"
    )
    if broken:
        return [*broken, none]
    silent = [one.silent_ms for one in fleet if one.silent_ms is not None]
    if len(silent) < len(fleet):
        return [f"Nothing is wrong: {none}"]
    return [f"Nothing was heard of {'it' if is_one else 'any model'} for {duration(min(silent))}; {none}"]


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


def _changed(recent: Sequence[Assessed], n: int, window: str, now_ms: int) -> str:
    if n == 1:
        return f"{_name(recent[0])} changed {window}: {_latest(recent[0], now_ms, with_name=False)}"
    # By time, whatever else is wrong with one of them.
    newest = min(recent, key=lambda one: one.attention[1])
    if len(recent) == 1:
        return f"{_of(1, n)} changed {window}: {_latest(newest, now_ms)}"
    return f"{_of(len(recent), n)} changed {window}, the last: {_latest(newest, now_ms)}"


def _still_open(changed: Sequence[Assessed], n: int, now_ms: int) -> str:
    newest = min(changed, key=lambda one: one.attention[1])
    if n == 1:
        return f"{_name(newest)} has a shift that is still open: {_latest(newest, now_ms, with_name=False)}"
    verb = "has a shift that is" if len(changed) == 1 else "have shifts that are"
    return f"{_of(len(changed), n)} {verb} still open: {_latest(newest, now_ms)}"


def _latest(one: Assessed, now_ms: int, with_name: bool = True) -> str:
    change = one.changed
    if change is None:
        return _name(one)
    said = [when(change.time_ms, change.observation, now_ms), gist(change.event)]
    return ", ".join([_name(one), *said] if with_name else said)


def _counts(fleet: Sequence[Assessed]) -> list[str]:
    silent = [one for one in fleet if one.state == "silent"]
    counts = [
        (sum(one.is_examined for one in fleet), "is being examined", "are being examined"),
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
