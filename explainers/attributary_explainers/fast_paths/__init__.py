"""Fast paths: evaluators of many rows for models of exactly known types.

The import of this package fills the registry of `evaluation`; nothing but `models` imports it. It may import
`core`, `evaluation` and what that may import, and River.
"""

from . import ensembles, linear, naive_bayes, neighbours, pipelines, trees

__all__ = ["ensembles", "linear", "naive_bayes", "neighbours", "pipelines", "trees"]
