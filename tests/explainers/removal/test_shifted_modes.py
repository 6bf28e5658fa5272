"""Observational removal is the same to the last bit where the core is compiled and where it runs as plain Python."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from attributary_explainers.core import is_compiled

PLAIN = """
import importlib.util, sys
from pathlib import Path

class Plain:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("attributary_explainers.core."):
            for folder in path:
                file = Path(folder) / f"{name.rpartition('.')[2]}.py"
                if file.exists():
                    return importlib.util.spec_from_file_location(name, file)

sys.meta_path.insert(0, Plain)
"""
EXPLAIN = """
import math, pickle, sys
import numpy as np
from attributary_explainers import GeometricReservoir, IncrementalPFI, IncrementalSAGE, ShiftedImputer
from attributary_explainers.core import observational

def model(x):
    return float(sum(v if isinstance(v, float) else len(v) for v in x.values() if v is not None))

rng, found = np.random.default_rng(3), [observational.__file__.endswith(".py")]
for explainer in (IncrementalPFI, IncrementalSAGE):
    imputer = ShiftedImputer(GeometricReservoir(120), alpha=0.01)
    own = explainer(model, loss="squared", removal=imputer, alpha=0.01, n_samples=3, seed=1)
    for i in range(214):
        a, b = rng.normal(size=2).tolist()
        x = {"a": a, "b": None if i % 9 == 0 else a + 0.5 * b, "k": abs(a) * (1.0 + b * b), "p": a * b}
        x |= {"c": "u" * int(np.clip(a + 2.5, 1, 3)), "d": "pq"[int(b > 0.0)]} | ({"late": b} if i > 150 else {})
        found.append(own.explain_one(x, 1.0))
    assert imputer.sampler.is_matching
    found.append(own.snapshot())
sys.stdout.buffer.write(pickle.dumps(found))
"""


@pytest.mark.skipif(not is_compiled(), reason="there is no compiled core to compare with")
def test_importances_and_state_are_the_same_compiled_and_plain():
    compiled, plain = (
        pickle.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for code in (EXPLAIN, PLAIN + EXPLAIN)
    )
    assert (compiled.pop(0), plain.pop(0)) == (False, True)
    assert repr(compiled) == repr(plain)
