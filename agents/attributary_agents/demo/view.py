"""Shows the demo: as a live table on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from attributary_explainers.wording import printable, show_number

from ..replay.history import loss_text, quality_texts

TOP = 9
CHANGE_OVER = 1000
"""Observations over which the table's change column looks back."""
_PLAIN_EVERY = 5000
_BAR = 24


class View(Protocol):
    """Display of the demo's events, counters and messages."""

    def say(self, text: str) -> None:
        """Show text that stays; it may have several lines."""

    def importance(self, event: dict[str, Any]) -> None:
        """Take an importance event."""

    def incident(self, event: dict[str, Any]) -> None:
        """Take a revision of an incident."""

    def counts(self, handled: int, dead_letters: int) -> None:
        """Take the number of observations handled, and of dead letters among them."""

    def end(self) -> None:
        """Take that everything has been handled."""

    def __enter__(self) -> View: ...

    def __exit__(self, *_: object) -> None: ...


class _State:
    """State that both views show: the last importances and the speed."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.handled = 0
        self.dead_letters = 0
        self.event: dict[str, Any] | None = None
        self._history: deque[tuple[int, dict[str, float]]] = deque()
        self._times: deque[tuple[float, int]] = deque(maxlen=20)

    def take(self, event: dict[str, Any]) -> None:
        self.event = event
        now = {name: feature["importance"] for name, feature in event["features"].items()}
        self._history.append((event["observation"], now))
        while self._history[0][0] < event["observation"] - CHANGE_OVER:
            self._history.popleft()

    def count(self, handled: int, dead_letters: int) -> None:
        self.dead_letters = dead_letters
        self.handled = handled
        self._times.append((time.monotonic(), handled))

    @property
    def per_second(self) -> float:
        if not self._times:
            return 0.0  # events can come before the first scrape
        (t0, n0), (t1, n1) = self._times[0], self._times[-1]
        return (n1 - n0) / (t1 - t0) if t1 > t0 else 0.0

    def features(self) -> list[tuple[str, float, float | None, float | None]]:
        """Return a row for each feature, the most important feature first.

        A row has name, importance, half the width of its interval, and change. The change is None until so many
        observations have passed.
        """
        if self.event is None:
            return []
        at, past = self._history[0]
        known = self.event["observation"] - at > 0.8 * CHANGE_OVER
        return [
            (name, now, feature["half_width"], now - past.get(name, 0.0) if known else None)
            for name, feature in self.event["features"].items()
            for now in (feature["importance"],)
        ]

    def discrepancy(self) -> str:
        value = self.event["discrepancy"] if self.event else None
        return "no reference model yet" if value is None else show_number(value)


class PlainView:
    """Prints progress in lines, for logs and pipes.

    There is one for each half of a stream, and at least one for each 5000 observations.
    """

    def __init__(self, console: Console, total: int | None) -> None:
        self._console = console
        self._state = _State(total)
        self._every = min(_PLAIN_EVERY, max(1, (total or _PLAIN_EVERY * 2) // 2))
        self._next = self._every
        self._shown: dict[str, Any] | None = None

    def say(self, text: str) -> None:
        """Print the text, which may have several lines."""
        self._console.print(printable(text, keep="\n"), markup=False, highlight=False, soft_wrap=True)

    def importance(self, event: dict[str, Any]) -> None:
        """Take an importance event, and print a line for it if a line is due."""
        self._state.take(event)
        if event["observation"] >= self._next:
            self._next = event["observation"] // self._every * self._every + self._every
            self._row(event)

    def end(self) -> None:
        """Print the last importances, unless they have been printed."""
        if self._state.event is not None and self._state.event is not self._shown:
            self._row(self._state.event)

    def _row(self, event: dict[str, Any]) -> None:
        self._shown = event
        features = ", ".join(f"{name} {show_number(value)}" for name, value, *_ in self._state.features()[:4])
        total = f"/{self._state.total}" if self._state.total else ""
        self.say(
            f"{event['observation']}{total} observations, {self._state.per_second:.0f}/s, "
            f"importance: {features} ({loss_text(event)})"
        )

    def incident(self, event: dict[str, Any]) -> None:
        """Print the sentence."""
        self.say(f">>> {event['sentence']}")

    def counts(self, handled: int, dead_letters: int) -> None:
        """Keep the importances for the next line."""
        self._state.count(handled, dead_letters)

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is nothing to put back."""


class LiveView:
    """Draws a table that redraws itself; incidents and messages stay above it."""

    def __init__(self, console: Console, total: int | None) -> None:
        self._state = _State(total)
        self._progress = Progress(
            TextColumn("explained"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            console=console,
        )
        self._task = self._progress.add_task("", total=total, speed="")
        self._live = Live(self._render(), console=console, refresh_per_second=5)

    def say(self, text: str) -> None:
        """Print the text above the table."""
        self._live.console.print(printable(text, keep="\n"), markup=False, highlight=False, soft_wrap=True)

    def importance(self, event: dict[str, Any]) -> None:
        """Redraw the table."""
        self._state.take(event)
        self._live.update(self._render())

    def incident(self, event: dict[str, Any]) -> None:
        """Print the incident's sentence above the table, coloured by severity.

        Red is critical, yellow is less, and grey is over or withdrawn.
        """
        is_ended = event["life"] in ("over", "withdrawn")
        style = "bright_black" if is_ended else "bold red" if event["severity"] == "critical" else "yellow"
        self._live.console.print(Text(f"▲ {printable(event['sentence'])}", style=style))

    def end(self) -> None:
        """Do nothing: the table stands there."""

    def counts(self, handled: int, dead_letters: int) -> None:
        """Move the progress bar."""
        self._state.count(handled, dead_letters)
        letters = f", {dead_letters} dead letters" if dead_letters else ""
        self._progress.update(self._task, completed=handled, speed=f"{self._state.per_second:.0f}/s{letters}")

    def _render(self) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("feature")
        table.add_column("importance", justify="right")
        table.add_column("± 95 %", justify="right")
        table.add_column(f"over {CHANGE_OVER} obs.", justify="right")
        table.add_column("")
        rows = self._state.features()
        largest = max((value for _, value, _, _ in rows), default=0.0)
        for name, value, half_width, change in rows[:TOP]:
            moved = Text("") if change is None else _moved(change, half_width)
            bar = "█" * round(_BAR * max(value, 0.0) / largest) if largest > 0 else ""
            error = "" if half_width is None else show_number(half_width)
            table.add_row(Text(printable(name)), show_number(value), error, moved, Text(bar, style="cyan"))
        if len(rows) > TOP:
            table.add_row(f"{len(rows) - TOP} more", "", "", "", "")
        event = self._state.event
        quality = ", ".join(quality_texts(event)) if event else ""
        loss = (
            ""
            if event is None
            else f" · loss {show_number(event['model_loss'])}, {show_number(event['baseline_loss'])} without features\n"
            f"importance and loss: {loss_text(event)}{quality and f' · quality: {quality}'}"
        )

        line = Text(f"discrepancy from the reference model: {self._state.discrepancy()}{loss}", style="dim")
        return Group(self._progress, table, line)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._live.__exit__(*exc)


def _moved(change: float, half_width: float | None) -> Text:
    """Return the change of an importance, in colour where it is beyond noise."""
    # Of a difference of two importances, taken as independent.
    noise = math.sqrt(2.0) * half_width if half_width is not None else math.inf
    style = "green" if change > noise else "red" if change < -noise else "dim"
    return Text(show_number(change, signed=True), style=style)
