"""A configuration and its observations as files, with and without the fixture."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agents.stand_ins import EAGER, FACTORY

N = 400


def write_config(path: Path, **model: Any) -> Path:
    chosen = {
        "factory": FACTORY,
        "alpha": 0.05,
        "explainers": {"pfi": {"n_samples": 1}, "sage": {"n_samples": 1}},
        "change": {"window": 30, **EAGER},
        "publish": {"every": 50},
        **model,
    }
    path.write_text(yaml.safe_dump({"models": {"m": chosen}}))
    return path


def write_csv(path: Path, n: int = N, names: tuple[str, str] = ("a", "b")) -> Path:
    rng = random.Random(3)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*names, "y"])
        for i in range(n):
            a = rng.uniform(-1, 1)
            rows.writerow([a, rng.choice(["red", "green", "blue"]), int((a > 0) != (i > n // 2))])
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_config(tmp_path / "attributary.yaml")
    write_csv(tmp_path / "data.csv")
    return tmp_path
