"""Which models predict many rows at little cost."""

from __future__ import annotations

from typing import Any

from river import anomaly, compose, dummy, feature_selection, linear_model, preprocessing

from .batch import BatchModel
from .sklearn import estimator_kind, is_compat, is_estimator
from .trained import TrainedModel, is_booster

# Measured on nine numbers: each, behind a scaler or before a linear model, takes 0.2 to 4 us per row, where a
# Hoeffding tree takes 10 and an adaptive random forest of ten 72. Left out for their time: naive Bayes (66 to 70),
# factorisation machines (40), LODA (97), PolynomialExtender (47), RBFSampler (130) and OneHotEncoder (180, with many
# different values). Left out because it grows or is not ours to know: trees, neighbours, rules, ensembles, functions.
_CHEAP: frozenset[type] = frozenset(
    (
        linear_model.ALMAClassifier,
        linear_model.AdPredictor,
        linear_model.BayesianLinearRegression,
        linear_model.LinearRegression,
        linear_model.LogisticRegression,
        linear_model.PAClassifier,
        linear_model.PARegressor,
        linear_model.Perceptron,
        linear_model.SoftmaxRegression,
        anomaly.OneClassSVM,
        dummy.NoChangeClassifier,
        dummy.PriorClassifier,
        dummy.StatisticRegressor,
        preprocessing.AdaptiveStandardScaler,
        preprocessing.Binarizer,
        preprocessing.FeatureHasher,
        preprocessing.MaxAbsScaler,
        preprocessing.MinMaxScaler,
        preprocessing.Normalizer,
        preprocessing.PreviousImputer,
        preprocessing.RobustScaler,
        preprocessing.StandardScaler,
        preprocessing.StatImputer,
        feature_selection.SelectKBest,
        feature_selection.VarianceThreshold,
        compose.Discard,
        compose.Prefixer,
        compose.Renamer,
        compose.Select,
        compose.SelectType,
        compose.Suffixer,
    )
)


def is_cheap(model: Any) -> bool:
    """Return whether predicting another row costs little.

    More draws are then worth their time. True for scikit-learn estimators (100 rows take two to four times as long as
    one; with a hundred trees or more, hardly longer), also in River's wrapper, for trained models of other libraries,
    for callables of many rows (`as_batch`), and for River's linear and dummy models, alone or in pipelines and unions
    with transformers that take as little. Only exact types count: a subclass may do anything, and so may a callable.
    False says only that the model is not known to be cheap.

    Examples
    --------
    >>> from river import linear_model, preprocessing, tree
    >>> is_cheap(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    True
    >>> is_cheap(tree.HoeffdingTreeClassifier())
    False
    """
    if isinstance(model, (BatchModel, TrainedModel)) or is_booster(model):
        return True
    if is_estimator(model) and estimator_kind(model) is not None:
        return True
    if type(model) is compose.Pipeline:
        # Of a pipeline around River's wrapper only the transformers are evaluated row by row.
        steps = list(model.steps.values())
        return bool(steps) and all(map(is_cheap, steps))
    if type(model) is compose.TransformerUnion:
        return all(map(is_cheap, model.transformers.values()))
    return type(model) in _CHEAP or is_compat(model)
