"""Check that a configuration's limits keep a scrape small enough.

It refuses, before a start, a scrape larger than a worker can answer.
"""

from __future__ import annotations

from ..config.settings import Config
from ..config.templates import MAX_MODELS, is_template
from ..errors import PreflightError

MOST_SERIES = 100_000
"""Series that one scrape may have: about 3 s and 300 MB while it is made, where Prometheus waits for 10 s."""

_OF_FEATURE, _OF_EXPLAINER, _OF_MODEL = 6, 14, 88


def most_series(config: Config) -> tuple[int, int]:
    """Return the greatest numbers of series of a scrape.

    Two numbers: of features, and of others. The scrape is of a worker with all models.

    Both are upper bounds. Of a model that declares no features, any number within its `max_features` can come.
    """
    limits, of_features, others = config.metrics, [], []
    most = limits.max_models
    for name, model in config.models.items():
        n_explainers = len(model.explainers.of_importance)
        n_features = min(len(model.features or ()) or model.max_features, limits.max_features)
        n_models = min(model.max_models or MAX_MODELS, most) if is_template(name) else 1
        of_features += [n_explainers * (_OF_FEATURE * n_features + 2)] * n_models
        others += [_OF_MODEL + n_explainers * _OF_EXPLAINER] * n_models
    of_features.sort(reverse=True)
    others.sort(reverse=True)
    return min(sum(of_features[:most]), limits.max_series), sum(others[:most])


def check_series(config: Config) -> None:
    """Check that a worker can answer a scrape of all permitted series.

    Raises
    ------
    PreflightError
        It can not; the message says which limit to set.
    """
    of_features, others = most_series(config)
    if of_features + others <= MOST_SERIES:
        return
    room = MOST_SERIES - others
    if room >= MOST_SERIES // 2:
        advice = f"set metrics.max_series to {room} or less"
    else:
        n_models = min(config.n_models_at_most, config.metrics.max_models)
        fewer = n_models * MOST_SERIES // (of_features + others)
        advice = f"set metrics.max_models to {fewer} or less, which is of one worker, and start more workers"
    raise PreflightError(
        f"metrics: a scrape could have {of_features + others} series, {of_features} of them of features, and a worker "
        f"answers {MOST_SERIES} in time: {advice}"
    )
