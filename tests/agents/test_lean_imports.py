"""A worker has not imported what it does not use, and what stands for it is the library at its first use."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate

from attributary_agents.lean_imports import deferred

ROOT = Path(__file__).parents[2]


def run(script: str) -> str:
    """What a fresh process prints that ends well."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


NOT_USED = {
    "scipy.stats": "River has it for a few metrics, detectors and distributions: 50 MB with what it imports",
    "scipy.integrate": "River takes an area of it, which numpy has as well",
    "scipy.sparse": "River has it for many rows at once",
    "scipy.linalg": "scipy.stats and scipy.sparse import it",
    "scipy.io": "River has it for a kind of file",
    "sklearn": "River has it for data sets; a model of scikit-learn imports it",
    "pandas": "scikit-learn imports it",
    "sqlalchemy": "River has it for rows of a query; a registry of MLflow imports it",
    "matplotlib": "for plots, which no worker draws",
    "numpy.f2py": "scipy.special copies all names of numpy",
    "numpy.testing": "as numpy.f2py",
    "faust.livecheck": "for tests of applications",
}
"""Modules to why a worker with a linear model has not imported them."""

WORKER = """
import sys
import attributary_agents.cli
import attributary_agents.run
from attributary_agents.config.reading import parse_config
from attributary_agents.models.model_state import new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.models.trying import check_models
from attributary_agents.state.codec import decode_state, encode_state
from attributary_topics import Observation, Source
from benchmarks.memory.running import FEATURES, MODEL, configuration
import random

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
    found = run(WORKER).split()
    assert {"scipy.special", "river.metrics", "faust"} < set(found)
    assert {name: why for name, why in NOT_USED.items() if name in found} == {}


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

NOT_SERVED = {
    "scipy.stats": "River has it",
    "scipy.integrate": "River has it",
    "sklearn": "River has it",
    "pandas": "scikit-learn imports it",
    "sqlalchemy": "River has it",
    "faust": "workers consume with it; the server has a reader of its own",
    "matplotlib": "for plots in notebooks",
    "playwright": "for tests",
    "attributary_agents.app": "the application of a worker, which imports Faust",
}
"""Modules to why the server of the page has not imported them."""


def test_the_server_of_the_page_has_not_imported_what_explains_or_consumes() -> None:
    found = run(SERVER).split()
    assert {"fastapi", "attributary_agents.serve.http.app", "attributary_explainers"} < set(found)
    assert {name: why for name, why in NOT_SERVED.items() if name in found} == {}


USED = """
import random, sys
{lean}
from river import drift, metrics, proba, tree
from river.stream import iter_arff
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
"""


@pytest.mark.long
def test_river_computes_with_stand_ins_what_it_computes_without() -> None:
    lean = "from attributary_agents.lean_imports import import_river\nimport_river()"
    assert run(USED.format(lean=lean, imported=False)) == run(USED.format(lean="", imported=True))


def test_the_area_of_a_curve_is_the_same_to_the_last_bit() -> None:
    """River gives lists, of fractions or of zeros that are integers."""
    rng = random.Random(1)
    for n in (2, 10, 11, 200):
        for _ in range(200):
            xs, ys = ([rng.choice((0, 1, rng.random())) for _ in range(n)] for _ in range(2))
            ours, theirs = np.trapezoid(x=xs, y=ys), scipy.integrate.trapezoid(x=xs, y=ys)
            assert (ours, type(ours)) == (theirs, type(theirs))


STARTED = """
import sys
import attributary_agents.cli
from attributary_agents.config.reading import parse_config
from attributary_agents.models.trying import check_models
model = {{"model": {{"class": "river.linear_model.LogisticRegression"}}, "explainers": {{"pfi": {{}}}}, {more}}}
check_models(parse_config({{"kafka": {{"brokers": ["127.0.0.1:9"]}}, "models": {{"m": model}}}}))
print("scipy.stats" in sys.modules)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "needs"),
    [
        ('"change": {"importances": ["pfi"], "detector": "adwin"}', False),
        ('"change": {"importances": ["pfi"], "detector": "kswin"}', True),
        ('"quality": ["roc_auc", "f1"]', False),
    ],
)
def test_what_a_model_uses_later_is_imported_at_the_start(more: str, needs: bool) -> None:
    """KSWIN takes a test of scipy.stats, first after a hundred observations: none of them waits for an import."""
    assert run(STARTED.format(more=more)) == f"{needs}\n"


REFUSED = """
import attributary_agents.cli
from attributary_agents.models.guards.allowlist import Allowlist
import river.drift.kswin, river.metrics.roc_auc, river.proba.gaussian
for module, name in (
    ("river.proba.gaussian", "multivariate_normal"),
    ("river.drift.kswin", "stats"),
    ("river.metrics.roc_auc", "integrate"),
    ("river.metrics.roc_auc", "integrate.trapezoid"),
    ("attributary_agents.lean_imports", "_Name"),
    ("attributary_agents.lean_imports", "import_module"),
):
    print(type(Allowlist(None).refusal([(module, name)])).__name__)
"""


def test_a_stored_state_cannot_name_a_stand_in() -> None:
    assert run(REFUSED).split() == ["ForeignTypeError"] * 6


@pytest.fixture
def library(tmp_path, monkeypatch) -> str:
    """The name of a package that says when it is imported, and of another one that imports it in many ways."""
    for name in ("heavy", "user"):
        (tmp_path / name).mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text("from . import part\nloaded = []\n")
    (tmp_path / "heavy" / "part.py").write_text(
        "class Thing:\n    size = 3\n    def __init__(self, n=0):\n        self.n = n\n"
        "def double(n):\n    return 2 * n\n"
    )
    (tmp_path / "user" / "__init__.py").write_text(
        "import importlib.util\nimport heavy\nimport heavy.part\nfrom heavy import part\n"
        "from heavy.part import Thing, double\nthere = importlib.util.find_spec('heavy') is not None\n"
    )
    (tmp_path / "user" / "at_once.py").write_text(
        "from heavy.part import Thing, double\nsix = double(3)\nclass Mine(Thing):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "heavy"
    for name in [one for one in sys.modules if one.partition(".")[0] in ("heavy", "user")]:
        del sys.modules[name]


def test_a_library_is_imported_when_something_of_it_is_used(library: str) -> None:
    with deferred(("heavy", "heavy.part")):
        import user
    assert user.there
    assert not [name for name in sys.modules if name.partition(".")[0] == library], "nothing of it is left"
    assert user.double(4) == 8
    import heavy

    assert user.heavy.loaded is heavy.loaded, "it is the library"
    assert user.heavy.part.double is user.part.double is heavy.part.double
    assert isinstance(heavy.part.Thing(), user.Thing)
    assert not isinstance(3, user.Thing)
    assert user.Thing.size == 3
    assert user.Thing(2).n == 2
    with pytest.raises(ModuleNotFoundError):
        _ = user.heavy.nothing


def test_a_library_that_is_used_while_it_is_imported_is_itself(library: str) -> None:
    with deferred(("heavy", "heavy.part")):
        import user.at_once
    import heavy

    assert user.at_once.six == 6
    assert user.at_once.Mine.__mro__[1] is heavy.part.Thing


def test_what_is_imported_or_not_there_has_no_stand_in(library: str) -> None:
    import heavy

    with deferred(("heavy", "no_such_package", "no_such_package.part")):
        assert sys.modules["heavy"] is heavy
        assert "no_such_package" not in sys.modules
        assert importlib.util.find_spec("no_such_package") is None
