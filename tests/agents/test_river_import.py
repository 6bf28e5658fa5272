"""A worker has not imported what River does not use for it, and what stands for it computes the same."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate

ROOT = Path(__file__).parents[2]
NOT_USED = {"scipy.stats", "scipy.integrate", "sklearn", "pandas", "sqlalchemy", "matplotlib", "faust.livecheck"}
"""What a worker with a linear model has not imported, and the server of the page neither."""


def run(script: str) -> str:
    """Return what a new process prints that ends well."""
    argv = [sys.executable, "-W", "ignore", "-c", script]
    found = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


WORKER = """
import random, sys
import attributary_agents.cli
import attributary_agents.run
from attributary_agents.config.reading import parse_config
from attributary_agents.models.model_state import new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.trial import check_models
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import Observation, Source
from benchmarks.memory.running import FEATURES, MODEL, configuration

config = parse_config(configuration("127.0.0.1:9", "memory"))
check_models(config)
rng, state, n_events = random.Random(1), new_state(MODEL, config.models[MODEL]), 0
for state.offset in range(600):
    x = {name: rng.random() for name in FEATURES}
    observation = Observation(MODEL, x, x["f0"] > x["f1"])
    n_events += len(prequential(state, observation, Source("observations", 0, state.offset), state.offset))
assert n_events == 2 * 6 and state.together.paths["fast"]
assert decode_state(MODEL, config.models[MODEL], encode_state(state)).offset == 599
print(*sys.modules)
"""
"""A worker's imports, and what it does to make a model ready, explain, publish and store."""


def test_a_worker_has_not_imported_what_it_does_not_use() -> None:
    found = set(run(WORKER).split())
    assert {"scipy.special", "river.metrics", "faust"} <= found
    assert not found & NOT_USED


SERVER = """
import sys
import attributary_agents.cli
import attributary_agents.serve.server
from attributary_agents.config.reading import parse_config
detector = {"importances": ["pfi"], "detector": "kswin"}
model = {"model": {"class": "river.forest.ARFClassifier"}, "explainers": {"sage": {}}, "change": detector}
parse_config({"kafka": {"brokers": ["127.0.0.1:9"]}, "models": {"m": model}})
print(*sys.modules)
"""
"""All modules of a process that has read a configuration, and those of the page's server."""


def test_the_server_of_the_page_has_not_imported_what_explains_or_consumes() -> None:
    found = set(run(SERVER).split())
    assert {"fastapi", "attributary_agents.serve.http.app", "attributary_explainers"} <= found
    assert not found & (NOT_USED | {"faust", "playwright", "attributary_agents.app"})


USED = """
import random, sys
{first}
from river import drift, metrics, proba, tree
assert ("scipy.stats" in sys.modules) == {imported}, sorted(sys.modules)
rng = random.Random(1)
gaussian = proba.MultivariateGaussian(seed=1)
detector, mean, area = drift.KSWIN(alpha=0.01, seed=1), metrics.GeometricMean(), metrics.ROCAUC()
sgt = tree.SGTClassifier(grace_period=20)
alarms = []
for i in range(600):
    x = {{"a": rng.gauss(0, 1), "b": rng.gauss(i > 300, 2)}}
    gaussian.update(x)
    if i > 10 and i % 50 == 0:
        print(repr(float(gaussian(x))), repr(float(gaussian.cdf(x))), gaussian.sample())
    detector.update(x["b"])
    alarms.append(detector.drift_detected)
    y = x["a"] > x["b"]
    mean.update(y, rng.random() < 0.5)
    area.update(y, rng.random())
    sgt.learn_one(x, y)
    print(sgt.predict_proba_one(x), repr(float(area.get())), repr(float(mean.get())))
print(alarms)
assert True in alarms
assert "scipy.stats" in sys.modules
from river import stream
from sklearn import linear_model
import sqlalchemy
"""


@pytest.mark.long
def test_river_computes_what_it_computes_without() -> None:
    first = "from attributary_agents.river_import import import_river\nimport_river()"
    assert run(USED.format(first=first, imported=False)) == run(USED.format(first="", imported=True))


def test_the_area_of_a_curve_is_the_same_to_the_last_bit() -> None:
    """River gives lists, of fractions or of zeros that are integers."""
    rng = random.Random(1)
    for n in (2, 10, 11, 200):
        for _ in range(200):
            xs, ys = ([rng.choice((0, 1, rng.random())) for _ in range(n)] for _ in range(2))
            ours, theirs = np.trapezoid(x=xs, y=ys), scipy.integrate.trapezoid(x=xs, y=ys)
            assert (ours, type(ours)) == (theirs, type(theirs))


REFUSED = """
import attributary_agents.cli
from attributary_agents.models.guards.allowlist import Allowlist
import river.drift.kswin, river.metrics.roc_auc, river.proba.gaussian
for module, name in (
    ("river.proba.gaussian", "multivariate_normal"),
    ("river.drift.kswin", "stats"),
    ("river.metrics.roc_auc", "integrate"),
    ("river.metrics.roc_auc", "integrate.trapezoid"),
    ("attributary_agents.river_import", "_Late"),
    ("attributary_agents.river_import", "import_module"),
):
    print(type(Allowlist(None).refusal([(module, name)])).__name__)
"""


def test_a_stored_state_cannot_name_what_is_imported_late() -> None:
    assert run(REFUSED).split() == ["ForeignTypeError"] * 6
