"""Defines an alert, and writes the parts of its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .options import RuleOptions
from .recorded import recorded, rise

Severity = Literal["info", "warning", "critical"]
Area = Literal["incident", "quality", "operations"]


@dataclass(frozen=True)
class Alert:
    """Describes one alert rule.

    Attributes
    ----------
    name
        Without the prefix `Attributary`.
    severity
        Several where the expression itself gives each alert the label.
    wait
        How long the expression must hold: `for` of the rule.
    keep
        How long the alert goes on after the expression has ceased to hold, so that a partition that moves to another
        worker, and is on none for a moment, resolves nothing; None: not at all.
    dashboard
        Uid of the dashboard to look at.
    page
        Where on the page of `attributary serve` to look; empty: nowhere.
    """

    name: str
    area: Area
    severity: Severity | tuple[Severity, ...]
    expr: str
    summary: str
    description: str
    wait: str = "0s"
    keep: str | None = "5m"
    dashboard: str = "attributary-operations"
    annotations: dict[str, str] = field(default_factory=dict)
    page: str = ""

    @property
    def full_name(self) -> str:
        """Name with the prefix, as Prometheus shows it."""
        return f"Attributary{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels that are added to those of the expression."""
        own = {"severity": self.severity} if isinstance(self.severity, str) else {}
        return {**own, "area": self.area}

    def links(self, options: RuleOptions, model_id: str = "{{ $labels.model_id | urlquery }}") -> dict[str, str]:
        """Return the annotations that lead to the runbook, to the dashboard and to the page."""
        links = {"runbook_url": f"{options.runbook_base.rstrip('/')}/{self.full_name}.md"}
        if options.dashboard_base:
            query = f"?var-model_id={model_id}" if self.dashboard == MODEL_DASHBOARD else ""
            links["dashboard_url"] = f"{options.dashboard_base.rstrip('/')}/d/{self.dashboard}{query}"
        if options.page_base and self.page:
            links["page_url"] = f"{options.page_base.rstrip('/')}/{self.page}"
        return links

    def rule(self, options: RuleOptions) -> dict[str, object]:
        """Return the alert as a rule file has it."""
        keep = {} if self.keep is None else {"keep_firing_for": self.keep}
        texts = {"summary": self.summary, "description": self.description, **self.annotations}
        return {
            "alert": self.full_name,
            "expr": self.expr,
            "for": self.wait,
            **keep,
            "labels": self.labels,
            "annotations": {**texts, **self.links(options)},
        }


MODEL_DASHBOARD = "attributary-model"


def ask(name: str, *labels: str, form: str = "humanize", text: str = "{}", otherwise: str = "?") -> str:
    """Return template text for the present value of another recorded series with the alert's labels.

    The value stands in place of `{}` in the text; without a value it is `otherwise`.
    """
    return _asked(_matched(name, labels), labels, f"value | {form}", text, otherwise)


def ask_label(name: str, label: str, *labels: str, form: str = "", text: str = "{}", otherwise: str = "?") -> str:
    """Return template text for a label of another recorded series with the alert's labels, as `ask` does a value."""
    found = f'label "{label}"' + (f" | {form}" if form else "")
    return _asked(_matched(name, labels), labels, found, text, otherwise)


def ask_rise(name: str, window: str, label: str) -> str:
    """Return template text for the rise of a counter within the window, summed over series with the same label."""
    return _asked(f"sum({rise(_matched(name, (label,)), window)})", (label, label), "value | humanize", "{}", "?")


def _matched(name: str, labels: tuple[str, ...]) -> str:
    return f"{recorded(name)}{{{', '.join(f'{label}=%q' for label in labels)}}}"


def _asked(query: str, labels: tuple[str, ...], found: str, text: str, otherwise: str) -> str:
    values = " ".join(f"$labels.{label}" for label in labels)
    shown = text.replace("{}", f"{{{{ . | first | {found} }}}}") + (f"{{{{ else }}}}{otherwise}" if otherwise else "")
    return f'{{{{ with printf "{query}" {values} | query }}}}{shown}{{{{ end }}}}'


def number(value: float) -> str:
    """Return a threshold as expressions and texts have it.

    Examples
    --------
    >>> number(1000.0), number(0.25)
    ('1000', '0.25')
    """
    return f"{value:.12g}"


def percent(value: float) -> str:
    """Return a ratio in percent.

    Examples
    --------
    >>> percent(0.25)
    '25%'
    """
    return f"{100 * value:.6g}%"
