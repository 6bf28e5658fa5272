"""The table for the screen, and the report: what was done and when, what was compared, and what came of it."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from benchmarks.chaos.lab.lab import Lab


@dataclass(frozen=True)
class Cost:
    """What a scenario has taken: seconds, and seconds of processor time of all its processes, the broker's included."""

    took_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.took_s:.0f} s, {self.cpu_s:.0f} s of processor time"


def table(labs: Sequence[Lab]) -> Table:
    """A row per check."""
    shown = Table(title="Chaos: a disturbed group against an undisturbed run", title_justify="left")
    for name in ("scenario", "", "check", "seen"):
        shown.add_column(name, overflow="fold")
    for lab in labs:
        for i, check in enumerate(lab.checks):
            result = "[green]PASS" if check.passed else "[red]FAIL"
            shown.add_row(lab.scenario if i == 0 else "", result, check.name, check.detail.replace("[", r"\["))
        shown.add_section()
    return shown


def write(labs: Sequence[Lab], path: Path, *, seed: int, short: bool, costs: dict[str, Cost]) -> None:
    """Write the report as Markdown, and the checks beside it as JSON."""
    checks = {lab.scenario: [asdict(check) for check in lab.checks] for lab in labs}
    path.with_suffix(".json").write_text(json.dumps(checks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = [
        "# Chaos",
        "",
        f"Seed {seed}, {'short' if short else 'full'}; Apache Kafka; Python {platform.python_version()}.",
        "Each scenario is compared with the undisturbed run: the same records handled without Kafka in one process.",
        "",
        "| scenario | result | checks | time | processor time |",
        "| --- | --- | --- | --- | --- |",
    ]
    for lab in labs:
        held = sum(check.passed for check in lab.checks)
        result = "PASS" if lab.passed else "**FAIL**"
        cost = costs[lab.scenario]
        lines.append(
            f"| {lab.scenario} | {result} | {held} of {len(lab.checks)} | {cost.took_s:.0f} s | {cost.cpu_s:.0f} s |"
        )
    for lab in labs:
        lines += ["", f"## {lab.scenario}", "", "| | compared | seen |", "| --- | --- | --- |"]
        for check in lab.checks:
            seen = check.detail.replace("|", r"\|").replace("\n", " ")
            lines.append(f"| {'PASS' if check.passed else '**FAIL**'} | {check.name} | {seen} |")
        lines += ["", "```"]
        lines += [f"{seconds:8.1f} s  {text}" for seconds, text in lab.notes]
        lines += ["```"]
        if not lab.passed:
            lines += ["", f"Logs, configurations: `{lab.folder.relative_to(path.parent)}`"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
