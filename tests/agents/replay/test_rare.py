"""A stream of rare positives, as the bytes of a file: nothing is told of a model that is exactly right."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli

N, N_POSITIVE, RATE, SEED = 60_000, 6, 1e-4, 73


def exact() -> Any:
    """A frozen model that predicts the probability that the file was drawn by."""
    return predicted


def predicted(x: dict[str, Any]) -> dict[int, float]:
    p = RATE * math.exp(x["z"] - 0.5)
    return {0: 1.0 - p, 1: p}


def write_rare(path: Path) -> None:
    rng = np.random.default_rng(SEED)
    z = rng.normal(size=N)
    y = rng.random(N) < RATE * np.exp(z - 0.5)
    assert int(y.sum()) == N_POSITIVE
    path.write_text("z,y\n" + "".join(f"{a!r},{int(b)}\n" for a, b in zip(z.tolist(), y.tolist(), strict=True)))


def test_of_six_positives_no_shift_is_told_and_it_is_said_that_nothing_is_judged_yet(tmp_path: Path) -> None:
    model = {"factory": f"{__name__}:exact", "learn": False, "loss": "cross_entropy"}
    less = {"explain": {"every": 100}, "change": None, "quality": []}  # of what is not looked at here
    (tmp_path / "attributary.yaml").write_text(yaml.safe_dump({"models": {"fraud": model | less}}))
    write_rare(tmp_path / "rare.csv")
    out = tmp_path / "out"
    command = ["replay", str(tmp_path / "rare.csv"), "-c", str(tmp_path / "attributary.yaml"), "--out", str(out)]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    told = [json.loads(line)["sentence"] for line in (out / "incidents.jsonl").read_bytes().splitlines()]
    assert told == [], "with clipped logarithms six shifts of the loss were told of this file"
    *_, guard, summary = result.stdout.splitlines()
    assert guard == f"loss watch: not judged yet: {N_POSITIVE} labels 1 of 30"
    assert summary.startswith(f"{N} observations: {N} explained, 0 dead letters")
    assert 'attributary_model_watch_armed{model_id="fraud"} 0.0' in (out / "metrics.prom").read_text()
