"""Rows of shifted draws: as an array and as dicts, of one coalition or of a walk, of any few features."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attributary_explainers import GeometricReservoir, IncrementalPFI, IncrementalSAGE, ShiftedImputer
from attributary_explainers.evaluation.schema import Schema

from .dependent_rows import alone, filled


def mixture(n, seed=21):
    """Numbers, some of which follow others, integers, text of two levels and of forty."""
    rng = np.random.default_rng(seed)
    for v in rng.normal(size=n).tolist():
        town = f"town {int(40 * rng.random() ** 3)}"
        yield {"n": v, "m": 1e6 * (v + rng.normal()), "c": "pq"[int(v > 0)], "i": int(3 * v), "n2": v, "town": town}


def test_the_array_has_the_rows():
    rows = list(mixture(900))
    for names in (list(rows[0]), ["n", "m", "c", "i"], ["town"], ["n"]):
        few = [{name: row[name] for name in names} for row in rows]
        imputer, rng = filled(few)
        schema, x, d = Schema(few[0], {"c", "town"} & set(names)), few[1], len(names)
        X = np.zeros((200, d))
        X[0] = schema.encode(x)
        orders = np.array([rng.permutation(d) for _ in range(2)])
        requests = [imputer.request_each(x, alone(x), 5, rng), imputer.request_coalitions(x, alone(x), orders, 5, rng)]
        pairs = {"some": names[: 1 + d // 2], "others": names[1 + d // 2 :]}
        orders = np.array([[0, 1], [1, 0]])
        requests += [imputer.request_each(x, pairs, 5, rng), imputer.request_coalitions(x, pairs, orders, 5, rng)]
        for request in requests:
            X[1:] = 0.0
            request.fill(X, 1, schema)
            expected = [*request.rows(), x]  # a row at least
            assert (X[1 : 1 + request.n_rows] == schema.encode_many(expected)[:-1]).all()
            assert not X[1 + request.n_rows :].any()
        assert [request.n_rows for request in requests] == [5 * d, 10 * (d - 1), 10, 10]


def test_draws_of_a_walk_are_those_of_its_coalitions_one_by_one():
    rows = list(mixture(900))
    imputer, _ = filled(rows)
    x, orders = rows[7], np.array([[4, 1, 5, 0, 2, 3], [3, 2, 0, 5, 1, 4]])
    walked = imputer.request_coalitions(x, alone(x), orders, 6, np.random.default_rng(5)).sets()
    names = list(x)
    for o, order in enumerate(orders.tolist()):
        for size in range(1, 6):
            kept = [names[i] for i in order[:size]]
            (alone_drawn,) = imputer.restrict(x, alone(x), [kept], 6, np.random.default_rng(5)).rows
            drawn = walked[5 * o + size - 1]
            assert all(row[name] == x[name] for row in drawn for name in kept)
            for name in names:  # the rest is drawn in another order: only what comes first is the same
                if name == names[order[size]] and order[size] == min(set(range(6)) - set(order[:size])):
                    assert [row[name] for row in drawn] == [row[name] for row in alone_drawn]


def narrow(kind, n):
    rng = np.random.default_rng(41)
    for a, c in zip(rng.normal(size=n).tolist(), rng.integers(3, size=n).tolist(), strict=True):
        yield {
            "one": {"a": a},
            "two": {"a": a, "b": a + float(rng.normal())},
            "one category": {"c": "pqr"[c]},
            "categories": {"c": "pqr"[c], "d": bool(c), "e": f"{c % 2}"},
            "constants": {"a": 1.0, "c": "same", "k": 3},
            "alike": {"a": a, "b": -1e6 * a, "twin": a},
        }[kind]


def ranked(x):
    return sum(float("pqr".find(v)) if isinstance(v, str) else float(v) for v in x.values())


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("kind", ["one", "two", "one category", "categories", "constants", "alike"])
@pytest.mark.share(2, "explainer", "kind")
def test_few_features_are_explained_whatever_they_are(explainer, kind):
    """Also where all are in one group: then nothing is kept that could say anything of what is removed."""
    for groups in (None, {"all": list(next(narrow(kind, 1)))}):
        imputer = ShiftedImputer(GeometricReservoir(120), alpha=0.01)
        own = explainer(ranked, loss="squared", removal=imputer, alpha=0.01, groups=groups, seed=3)
        for x in narrow(kind, 520):
            found = own.explain_one(x, ranked(x))
        assert found.keys() == (groups or x).keys()
        assert all(map(math.isfinite, found.values()))
        if explainer is IncrementalSAGE:
            assert sum(found.values()) == pytest.approx(own.marginal_loss - own.model_loss, rel=1e-9, abs=1e-12)
        if kind == "constants":
            assert max(map(abs, found.values())) < 1e-12
        elif kind == "one" or groups:
            assert min(found.values()) > 0.0
