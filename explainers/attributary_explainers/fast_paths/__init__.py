"""Fast paths: evaluators that give what models of one exact type give, for many rows at once.

The import of this package fills the registry of `evaluation`; nothing but `models` imports it. It may import
`evaluation` and what that may import, and River.
"""

from . import counting_bayes, ensembles, naive_bayes, neighbours, stacking, trees, voting, wrappers
from .pipelines import evaluator, linear

__all__ = [
    "counting_bayes",
    "ensembles",
    "evaluator",
    "linear",
    "naive_bayes",
    "neighbours",
    "stacking",
    "trees",
    "voting",
    "wrappers",
]
