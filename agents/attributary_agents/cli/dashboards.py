"""`attributary dashboards`: the Grafana dashboards as files."""

from __future__ import annotations

from pathlib import Path

import click

from ..monitoring.dashboards import export as write


@click.group()
def dashboards() -> None:
    """Write the Grafana dashboards to files."""


@dashboards.command("export")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("grafana"),
    show_default=True,
    help="Folder to write to.",
)
@click.option("--provisioning", is_flag=True, help="Also the files by which Grafana finds them and Prometheus.")
def export(out: Path, provisioning: bool) -> None:
    """Write the dashboards fleet, model and operations as JSON into --out/dashboards, and print the files' names.

    Import them in Grafana, or let it read the folder: --provisioning writes what it needs for that. They ask for
    metrics of Attributary alone, and work with any Prometheus that scrapes the workers; the data source is a
    variable of each.
    """
    for path in write(out, with_provisioning=provisioning):
        click.echo(path)
