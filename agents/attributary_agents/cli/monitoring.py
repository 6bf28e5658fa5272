"""`attributary rules` and `attributary dashboards`: what Prometheus and Grafana read, as files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click
from click.core import ParameterSource

from ..errors import AttributaryError
from ..monitoring.dashboards import export as write
from ..monitoring.rules.files import KUBERNETES_FILE, RULES_FILE, kubernetes_text, prometheus_text
from ..monitoring.rules.options import RuleOptions, Thresholds
from .commands import Commands, Names, say

_DEFAULTS = RuleOptions()


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
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set another threshold; may be repeated. [default: what `attributary rules thresholds` lists]",
)
@click.option(
    "--job", default=_DEFAULTS.job, show_default=True, help="Read the metrics of this scrape job, a regular expression."
)
@click.option(
    "--worker-label",
    "worker_labels",
    multiple=True,
    default=_DEFAULTS.worker_labels,
    show_default=True,
    metavar="LABEL",
    help="Tell workers apart by this label; repeat it for all, instance among them.",
)
@click.option(
    "--runbook-base",
    default=_DEFAULTS.runbook_base,
    show_default=True,
    help="Link to the runbooks below this URL.",
)
@click.option(
    "--dashboard-base",
    default=_DEFAULTS.dashboard_base,
    show_default=True,
    help="Link to Grafana at this URL; '' writes no links.",
)
@click.option(
    "--page-base",
    default=_DEFAULTS.page_base,
    show_default=True,
    help="Link to the page of `attributary serve` at this URL; '' writes no links.",
)
@click.pass_context
def rules_export(
    context: click.Context,
    form: str,
    out: str,
    thresholds: tuple[str, ...],
    job: str,
    worker_labels: tuple[str, ...],
    runbook_base: str,
    dashboard_base: str,
    page_base: str,
) -> None:
    """Write the recording rules and alerts to a file, or print them.

    An alert about an incident links to the incident's page and to its runbook: say where they are.

    \b
        attributary rules export --out prometheus/rules --page-base https://models.example
        attributary rules export --format kubernetes --out kubernetes
    """
    chosen = RuleOptions(
        Thresholds().with_values(thresholds), job, runbook_base, dashboard_base, page_base, worker_labels
    )
    for name, base in (("page", page_base), ("runbook", runbook_base)):
        if context.get_parameter_source(f"{name}_base") is ParameterSource.DEFAULT:
            say(f"no --{name}-base: alerts link to {base}", err=True)
    name, text = (
        (RULES_FILE, prometheus_text(chosen)) if form == "prometheus" else (KUBERNETES_FILE, kubernetes_text(chosen))
    )
    if out == "-":
        click.echo(text, nl=False)
        return
    path = Path(out, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AttributaryError(f"--out {out}: cannot write {path} ({error.strerror})") from None
    say(f"written: {path}")


@rules.command("thresholds")
def rules_thresholds() -> None:
    """List the thresholds: name, default, meaning.

    \b
        attributary rules thresholds
    """
    for known in fields(Thresholds):
        default = known.default if isinstance(known.default, str) else f"{known.default:.12g}"
        click.echo(f"{known.name}={default}\t{known.metadata['help']}")


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
