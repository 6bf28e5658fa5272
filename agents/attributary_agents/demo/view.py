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

from ..replay.history import loss_text, quality_texts

TOP = 9
CHANGE_OVER = 1000
"""Observations over which the table's change column looks back."""
_PLAIN_EVERY = 1000
_BAR = 24


class View(Protocol):
    """Receives what the demo has to show."""

    def say(self, text: str) -> None:
        """Show one line that stays."""

    def importance(self, event: dict[str, Any]) -> None:
        """Take an importance event."""

    def change(self, event: dict[str, Any]) -> None:
        """Take a change event."""

    def counts(self, handled: int, dead_letters: int) -> None:
        """Take the number of observations handled, and of dead letters among them."""

    def __enter__(self) -> View: ...

    def __exit__(self, *_: object) -> None: ...


class _State:
    """Keeps what both views show: the last importances, and the speed."""

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
        (t0, n0), (t1, n1) = self._times[0], self._times[-1]
        return (n1 - n0) / (t1 - t0) if t1 > t0 else 0.0

    def features(self) -> list[tuple[str, float, float | None, float]]:
        """Return name, importance, half the width of its interval and change by feature, the most important first."""
        if self.event is None:
            return []
        past = self._history[0][1]
        return [
            (name, feature["importance"], feature["half_width"], feature["importance"] - past.get(name, 0.0))
            for name, feature in self.event["features"].items()
        ]

    def discrepancy(self) -> str:
        value = self.event["discrepancy"] if self.event else None
        return "no reference model yet" if value is None else f"{value:.2f}"


class PlainView:
    """Prints a line per thousand observations, for logs and pipes."""

    def __init__(self, console: Console, total: int | None) -> None:
        self._console = console
        self._state = _State(total)
        self._next = _PLAIN_EVERY

    def say(self, text: str) -> None:
        """Print the line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def importance(self, event: dict[str, Any]) -> None:
        """Print a line at every thousandth observation."""
        self._state.take(event)
        if event["observation"] < self._next:
            return
        self._next = event["observation"] // _PLAIN_EVERY * _PLAIN_EVERY + _PLAIN_EVERY
        features = ", ".join(
            f"{name} {value:.3f} ({change:+.3f})" for name, value, _, change in self._state.features()[:4]
        )
        total = f"/{self._state.total}" if self._state.total else ""
        self.say(
            f"{event['observation']}{total} observations, {self._state.per_second:.0f}/s, "
            f"discrepancy {self._state.discrepancy()}: {features} ({loss_text(event)})"
        )

    def change(self, event: dict[str, Any]) -> None:
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
    """Draws a table that redraws itself; changes and messages stay above it."""

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
        """Print the line above the table."""
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def importance(self, event: dict[str, Any]) -> None:
        """Redraw the table."""
        self._state.take(event)
        self._live.update(self._render())

    def change(self, event: dict[str, Any]) -> None:
        """Print the sentence above the table."""
        style = "bold yellow" if event["event"] in ("explanation", "importance_shift", "loss_shift") else "yellow"
        self._live.console.print(Text(f"▲ {event['sentence']}", style=style))

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
            # Of a difference of two importances, taken as independent.
            noise = math.sqrt(2.0) * half_width if half_width is not None else math.inf
            style = "green" if change > noise else "red" if change < -noise else "dim"
            bar = "█" * round(_BAR * max(value, 0.0) / largest) if largest > 0 else ""
            error = "" if half_width is None else f"{half_width:.4f}"
            table.add_row(name, f"{value:.4f}", error, Text(f"{change:+.4f}", style=style), Text(bar, style="cyan"))
        if len(rows) > TOP:
            table.add_row(f"{len(rows) - TOP} more", "", "", "", "")
        event = self._state.event
        quality = ", ".join(quality_texts(event)) if event else ""
        loss = (
            ""
            if event is None
            else f" · loss {event['model_loss']:.3f}, {event['baseline_loss']:.3f} without features\n"
            f"importance and loss: {loss_text(event)}{quality and f' · quality: {quality}'}"
        )

        line = Text(f"discrepancy from the reference model: {self._state.discrepancy()}{loss}", style="dim")
        return Group(self._progress, table, line)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._live.__exit__(*exc)
