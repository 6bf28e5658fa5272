"""`attributary rules`: writes the Prometheus rules, and lists their thresholds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click

from ..errors import AttributaryError
from ..monitoring.rules.files import KUBERNETES_FILE, RULES_FILE, kubernetes_text, prometheus_text
from ..monitoring.rules.options import RuleOptions, Thresholds

_DEFAULTS = RuleOptions()


@click.group()
def rules() -> None:
    """Write recording rules and alerts for Prometheus."""


@rules.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["prometheus", "kubernetes"]),
    default="prometheus",
    show_default=True,
    help="A rule file, or a PrometheusRule of the Prometheus Operator.",
)
@click.option("--out", default="-", metavar="DIR", help="Folder to write to; - prints. [default: -]")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another threshold; may be repeated. `attributary rules thresholds` lists them.",
)
@click.option(
    "--job", default=_DEFAULTS.job, show_default=True, help="Scrape job of the workers, a regular expression."
)
@click.option(
    "--worker-label",
    "worker_labels",
    multiple=True,
    default=_DEFAULTS.worker_labels,
    show_default=True,
    metavar="LABEL",
    help="Label that tells workers apart; repeat it for all, instance among them.",
)
@click.option("--runbook-base", default=_DEFAULTS.runbook_base, show_default=True, help="Where the runbooks are.")
@click.option(
    "--dashboard-base", default=_DEFAULTS.dashboard_base, show_default=True, help="URL of Grafana; '' for no links."
)
def rules_export(
    form: str,
    out: str,
    thresholds: tuple[str, ...],
    job: str,
    worker_labels: tuple[str, ...],
    runbook_base: str,
    dashboard_base: str,
) -> None:
    """Write the recording rules and alerts to a file, or print them."""
    chosen = RuleOptions(Thresholds().with_values(thresholds), job, runbook_base, dashboard_base, worker_labels)
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
    click.echo(f"written: {path}")


@rules.command("thresholds")
def rules_thresholds() -> None:
    """List the thresholds: name, default, meaning."""
    for known in fields(Thresholds):
        default = known.default if isinstance(known.default, str) else f"{known.default:.12g}"
        click.echo(f"{known.name}={default}\t{known.metadata['help']}")
