"""Fast paths: evaluators that give what models of one exact type give, for many rows at once.

The import of this package fills the registry of `evaluation`; nothing but `models` imports it. It may import
`evaluation` and what that may import, and River.
"""

from . import counting_bayes, ensembles, naive_bayes, neighbours, stacking, voting, wrappers
from .pipelines import evaluator, linear
from .trees import classifiers, forests, regressors

__all__ = [
    "classifiers",
    "counting_bayes",
    "ensembles",
    "evaluator",
    "forests",
    "linear",
    "naive_bayes",
    "neighbours",
    "regressors",
    "stacking",
    "voting",
    "wrappers",
]
