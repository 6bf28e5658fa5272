"""Every public object with parameters, made over one model, and streams to feed them with."""

from __future__ import annotations

from river import forest, linear_model, preprocessing
from river.datasets import synth

import attributary_explainers as ae


def model():
    return forest.ARFClassifier(n_models=2, seed=1)


def regressor():
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


EXPLAINERS = {
    "pfi": lambda model: ae.IncrementalPFI(model, alpha=0.02, n_samples=2, seed=7),
    "pfi of few features": lambda model: ae.IncrementalPFI(model, alpha=0.02, feature_share=0.5, seed=7),
    "pfi in groups": lambda model: ae.IncrementalPFI(model, groups={"both": ["size", "color"]}, seed=7),
    "sage": lambda model: ae.IncrementalSAGE(model, alpha=0.02, n_samples=2, seed=7),
    "observational": lambda model: ae.IncrementalPFI(model, removal="observational", alpha=0.02, seed=7),
    "trees": lambda model: ae.IncrementalPFI(model, removal="observational-trees", alpha=0.02, seed=7),
    "product": lambda model: ae.IncrementalSAGE(model, removal="product", reservoir=ae.GeometricReservoir(20), seed=7),
    "constant": lambda model: ae.IncrementalPFI(model, removal=ae.ConstantImputer({"size": 0, "color": 0}), seed=7),
    "mdi": lambda model: ae.IncrementalMDI(model, features=["size"]),
    "pdp": lambda model: ae.IncrementalPDP(model, ["size"], window=40, seed=7),
    "intervals": lambda model: ae.IntervalPFI(model, interval=40, seed=7),
    "window": lambda model: ae.SlidingWindowSAGE(model, window=15, stride=15, n_samples=2, seed=7),
    "together": lambda model: ae.Explainers(
        model, {"pfi": ae.IncrementalPFI(model, seed=7), "sage": ae.IncrementalSAGE(model, seed=8)}
    ),
}
"""What has `explain_one`."""

WATCHERS = {
    "change": lambda model: ae.ChangeExplainer(model, window=40, version="a", seed=7),
    "paper": lambda model: ae.PaperChangeExplainer(model, window=40, seed=7),
    "loss": lambda model: ae.LossMonitor(model, window=40, seed=7),
}
"""What has `update(x, y, y_pred)`."""

OTHERS = {
    "shift": ae.ImportanceShift,
    "quality": lambda: ae.Quality(["accuracy", "roc_auc"], alpha=0.1),
    "history": lambda: ae.ImportanceHistory(50, unit="points"),
    "lagged": lambda: ae.LaggedReservoir(20, gap=5),
    "uniform": lambda: ae.UniformReservoir(20),
    "geometric": lambda: ae.make_reservoir("geometric", 20),
    "sliding window": lambda: ae.SlidingWindowReservoir(20),
    "marginal": lambda: ae.MarginalImputer(ae.GeometricReservoir(20), strategy="product"),
    "shifted": lambda: ae.ShiftedImputer(alpha=0.01),
    "conditional": lambda: ae.ConditionalImputer(sampler=ae.ConditionalSampler(seed=1)),
    "sampler": lambda: ae.ConditionalSampler(leaf_size=50, seed=1),
    "constant": lambda: ae.ConstantImputer({"size": 0}),
}
"""What needs no model."""

ALL = {
    **{name: (lambda make=make: make(model())) for name, make in {**EXPLAINERS, **WATCHERS}.items()},
    **{f"of no model: {name}": make for name, make in OTHERS.items()},
}


def stream(n=150, seed=3):
    return list(synth.STAGGER(classification_function=2, seed=seed).take(n))


def feed(explainer, observations, learn=True):
    """Predict, explain and learn; return what was returned."""
    told = []
    for x, y in observations:
        if hasattr(explainer, "explain_one"):
            told.append(repr(explainer.explain_one(x, y)))
            if learn:
                explainer.model.learn_one(x, y)
        else:
            y_pred = explainer.model.predict_proba_one(x)
            explainer.model.learn_one(x, y)
            told.append(repr(explainer.update(x, y, y_pred)))
    return told


def taught(make, n=150):
    """Return an explainer of a model that both have seen the stream."""
    explainer = make(model())
    feed(explainer, stream(n))
    return explainer
