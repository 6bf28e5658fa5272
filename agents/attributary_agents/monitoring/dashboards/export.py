"""The files that Grafana reads: three dashboards, and how it finds them and Prometheus."""

from __future__ import annotations

from pathlib import Path

from ...errors import AttributaryError

PROVISIONING = {
    "provisioning/datasources/attributary.yaml": """\
# The Prometheus that scrapes the workers. Another address: the environment variable PROMETHEUS_URL of Grafana.
apiVersion: 1
datasources:
  - name: Prometheus
    uid: attributary-prometheus
    type: prometheus
    access: proxy
    url: ${PROMETHEUS_URL}
    isDefault: true
    editable: false
    jsonData:
      httpMethod: POST
      # As Prometheus' scrape_interval: no graph has a finer step.
      timeInterval: 5s
""",
    "provisioning/dashboards/attributary.yaml": """\
# Reads the dashboards from the folder below, and again when a file there changes.
apiVersion: 1
providers:
  - name: attributary
    folder: Attributary
    type: file
    disableDeletion: true
    allowUiUpdates: false
    updateIntervalSeconds: 30
    options:
      path: /etc/grafana/dashboards
""",
}
"""File below Grafana's configuration to its text."""


def dashboards() -> dict[str, str]:
    """File name to JSON.

    Raises
    ------
    AttributaryError
        The library that makes them is not installed.
    """
    try:
        from . import fleet as dashboard_fleet
        from . import model as dashboard_model
        from . import operations as dashboard_operations
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "grafana_foundation_sdk":
            raise
        raise AttributaryError(
            "dashboards are made with grafana-foundation-sdk, which is not installed: "
            "pip install 'attributary[dashboards]'"
        ) from None
    boards = (dashboard_fleet.fleet(), dashboard_model.model(), dashboard_operations.operations())
    return {f"{board.uid}.json": board.text() for board in boards}


def export(folder: Path, *, provisioning: bool = False) -> list[Path]:
    """Write the dashboards into `folder`/dashboards, and what tells Grafana of them into `folder`/provisioning.

    Raises
    ------
    AttributaryError
        The folder cannot be written, or the library that makes them is not installed.
    """
    files = {f"dashboards/{name}": text for name, text in dashboards().items()}
    if provisioning:
        files |= PROVISIONING
    written = []
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise AttributaryError(f"cannot write {path}: {error.strerror}") from None
        written.append(path)
    return written
