"""Writes the dashboards' JSON into the package, from where `attributary dashboards export` copies it."""

from __future__ import annotations

from pathlib import Path

from .fleet import fleet
from .model import model
from .operations import operations

FOLDER = Path(__file__).resolve().parents[3] / "agents" / "attributary_agents" / "monitoring" / "grafana" / "dashboards"


def make() -> dict[str, str]:
    """Return the JSON of every dashboard by its file name."""
    return {f"{board.uid}.json": board.text() for board in (fleet(), model(), operations())}


def main() -> None:
    """Write every dashboard, and print where."""
    for name, text in make().items():
        path = FOLDER / name
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
