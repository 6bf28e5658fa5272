"""Evaluators of linear models, naive Bayes and neighbours give the same bits compiled and as plain Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attributary_explainers
from attributary_explainers.core import is_compiled

CODE = """
import hashlib
from numbers import Number

from river import compose, linear_model, naive_bayes, neighbors, preprocessing

from attributary_explainers.core import is_compiled
from attributary_explainers.evaluation.schema import GapSchema
from attributary_explainers.evaluation.registry import make_evaluator, number_types, takes_gaps
from attributary_explainers.evaluation.schema import Schema, categorical_features
from attributary_explainers.fast_paths import linear, neighbours
from tests.explainers.fast_paths.streams import binary, blobs, line, texts

mode, linear.is_compiled = is_compiled(), lambda: True
neighbours.is_compiled = linear.is_compiled
scaler, lazy = preprocessing.StandardScaler, neighbors.LazySearch(30)
by_type = compose.SelectType(str) | preprocessing.OneHotEncoder()
for model, stream in (
    (linear_model.LogisticRegression(), binary(60)),
    (scaler() | linear_model.LogisticRegression(), binary(60)),
    (scaler() | preprocessing.MaxAbsScaler() | linear_model.PARegressor(), line(60)),
    (scaler() | linear_model.SoftmaxRegression(), blobs(60)),
    (linear_model.BayesianLinearRegression(), line(60)),
    (((compose.SelectType(Number) | scaler()) + by_type) | linear_model.LogisticRegression(), texts(60)),
    (naive_bayes.GaussianNB(), blobs(60)),
    (naive_bayes.BernoulliNB(), blobs(60)),
    (naive_bayes.MultinomialNB(), ((({n: abs(v) for n, v in x.items()}), y) for x, y in blobs(60))),
    (neighbors.KNNClassifier(engine=lazy.clone(), softmax=True), blobs(60)),
    (neighbors.KNNRegressor(engine=lazy.clone()), line(60)),
):
    rows, found = [], hashlib.sha256()
    for x, y in stream:
        model.learn_one(x, y)
        rows.append(x)
    kind = GapSchema if takes_gaps(model) else Schema
    schema = kind(x, categorical_features(x), number_types(model))
    evaluator = make_evaluator(model, schema)
    X = schema.encode_many([{**rows[0], **{n: x[n] for n in list(x)[i % 3 :: 2]}} for i, x in enumerate(rows)])
    if schema.takes_gaps and "BernoulliNB" not in str(model):
        X[1::7, 1] = float("nan")
    try:
        found = hashlib.sha256(evaluator.predict(X).tobytes()).hexdigest()
    except Exception as error:
        found = repr(error)
    print(mode, str(model).split("(")[0], found, sep=";")
"""


def found_in(package: Path) -> list[list[str]]:
    root = Path(__file__).parents[3]
    paths = os.pathsep.join(map(str, (package.parent, root)))
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split(";") for line in done.stdout.splitlines()]


@pytest.mark.skipif(not is_compiled(), reason="the core is not compiled")
def test_the_bits_are_the_same_in_both_modes(tmp_path: Path) -> None:
    package = Path(attributary_explainers.__file__).parent
    plain = tmp_path / package.name
    shutil.copytree(package, plain, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    one, other = found_in(package), found_in(plain)
    assert {mode for mode, *_ in one} == {"True"}
    assert {mode for mode, *_ in other} == {"False"}
    assert len(one) == 11
    for (_, *compiled), (_, *uncompiled) in zip(one, other, strict=True):
        assert compiled == uncompiled
        assert "Error" not in compiled[1], compiled
