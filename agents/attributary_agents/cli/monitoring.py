"""`attributary rules` and `attributary dashboards`: what Prometheus and Grafana read, as files."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from ..errors import AttributaryError
from ..monitoring.dashboards import export as write
from ..monitoring.rules import (
    DASHBOARD_BASE,
    KUBERNETES_FILE,
    PAGE_BASE,
    RULES_FILE,
    RUNBOOK_BASE,
    kubernetes_rule,
    prometheus_rules,
)
from .commands import Commands, Names, say


@click.group(cls=Commands)
def rules() -> None:
    """Write recording rules and alerts for Prometheus."""


@rules.command("export")
@click.option(
    "--format",
    "form",
    type=Names(["prometheus", "kubernetes"]),
    default="prometheus",
    show_default=True,
    help="Write a rule file, or a PrometheusRule of the Prometheus Operator.",
)
@click.option("--out", default="-", metavar="DIR", help="Write to this folder; - prints. [default: -]")
@click.option("--runbook-base", default=RUNBOOK_BASE, show_default=True, help="Link to the runbooks below this URL.")
@click.option("--dashboard-base", default=DASHBOARD_BASE, show_default=True, help="Link to Grafana at this URL.")
@click.option(
    "--page-base", default=PAGE_BASE, show_default=True, help="Link to the page of `attributary serve` at this URL."
)
@click.pass_context
def rules_export(
    context: click.Context, form: str, out: str, runbook_base: str, dashboard_base: str, page_base: str
) -> None:
    """Write the recording rules and alerts to a file, or print them.

    An alert about an incident links to the incident's page and to its runbook: say where they are. To change a
    threshold, edit the file.

    \b
        attributary rules export --out prometheus/rules --page-base https://models.example
        attributary rules export --format kubernetes --out kubernetes
    """
    for name, base in (("page", page_base), ("runbook", runbook_base)):
        if context.get_parameter_source(f"{name}_base") is ParameterSource.DEFAULT:
            say(f"no --{name}-base: alerts link to {base}", err=True)
    text, file = prometheus_rules(page_base, runbook_base, dashboard_base), RULES_FILE
    if form == "kubernetes":
        text, file = kubernetes_rule(text), KUBERNETES_FILE
    if out == "-":
        click.echo(text, nl=False)
        return
    path = Path(out, file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AttributaryError(f"--out {out}: cannot write {path} ({error.strerror})") from None
    say(f"written: {path}")


@click.group(cls=Commands)
def dashboards() -> None:
    """Write the Grafana dashboards to files."""


@dashboards.command("export")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("grafana"),
    show_default=True,
    help="Write to this folder.",
)
@click.option("--provisioning", is_flag=True, help="Write also the files by which Grafana finds them and Prometheus.")
def dashboards_export(out: Path, provisioning: bool) -> None:
    """Write the dashboards fleet, model and operations as JSON into --out/dashboards, and print the files' names.

    Import them in Grafana, or let it read the folder: --provisioning writes what it needs for that. They ask for
    metrics of Attributary alone, and work with any Prometheus that scrapes the workers; the data source is a
    variable of each.

    \b
        attributary dashboards export --out grafana --provisioning
    """
    for path in write(out, with_provisioning=provisioning):
        click.echo(path)
