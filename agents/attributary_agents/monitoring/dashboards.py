"""Export of the packaged Grafana dashboards and provisioning."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ..errors import AttributaryError

_FILES = files(__package__) / "grafana"
_PROVISIONING = ("datasources", "dashboards")


def dashboards() -> dict[str, str]:
    """Return the JSON of every dashboard by its file name."""
    found = {path.name: path.read_text(encoding="utf-8") for path in (_FILES / "dashboards").iterdir()}
    return dict(sorted(found.items()))


def provisioning() -> dict[str, str]:
    """Return Grafana's provisioning files by path.

    They name the dashboards and Prometheus. Paths are below Grafana's configuration.
    """
    names = [f"provisioning/{kind}/attributary.yaml" for kind in _PROVISIONING]
    return {name: (_FILES / name).read_text(encoding="utf-8") for name in names}


def export(folder: Path, *, with_provisioning: bool = False) -> list[Path]:
    """Copy the dashboards and, if asked, the provisioning to a folder.

    They come into `folder`/dashboards and `folder`/provisioning; the latter tells Grafana of the dashboards.

    Raises
    ------
    AttributaryError
        The folder cannot be written.
    """
    copies = {f"dashboards/{name}": text for name, text in dashboards().items()}
    if with_provisioning:
        copies |= provisioning()
    written = []
    for name, text in copies.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise AttributaryError(f"cannot write {path}: {error.strerror}") from None
        written.append(path)
    return written
