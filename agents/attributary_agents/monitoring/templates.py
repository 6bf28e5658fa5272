"""Metrics of templates: models known and in memory, observations.

Sums over a worker's models are of the worker, and so have no model id: which worker shows a model is decided for each
id, and its series count once.
"""

from __future__ import annotations

from attributary_explainers.monitor.families import Add

from ..config.settings import Config
from ..worker.view import WorkerView


def add_templates(config: Config, view: WorkerView, add: Add) -> None:
    """Add the series of each template of the configuration."""
    known = [owned.partition.models.known for owned in view.partitions.values()]
    for template in config.finder.templates:
        labels = (template,)
        add("models_loaded", labels, float(sum(one.n_loaded(template) for one in known)))
        add("models_known", labels, float(sum(one.n_known(template) for one in known)))
        add("model_loads_total", labels, float(view.n_loads[template]))
        add("model_evictions_total", labels, float(view.n_evictions[template]))
        add("template_observations_total", labels, float(view.n_of_templates[template]))
