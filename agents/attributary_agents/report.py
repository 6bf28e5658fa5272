"""placeholder"""
from pathlib import Path


def write_report(path: Path, importances: Path, changes: Path) -> None: ...
