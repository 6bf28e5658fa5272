"""Makes the dashboards' queries from the metric catalogue: a name or a label that does not exist is an error.

A partition moves between workers and takes the series of its models along. So what belongs to a model, a topic or a
partition is aggregated over whatever labels the target has (`instance`, `pod`): `latest`. What each worker counts for
itself is summed: `total`.

Counters of observations, records and changes are part of the checkpoint. They go on under another `instance`, and
after a crash begin a little lower, which `rate` and `increase` would take for a restart from 0. So growth is a
difference between two times: `per_second`, `grown` and `happened`. Only counters of the process have `rate`.
"""

from __future__ import annotations

import re

from attributary_agents.monitoring.catalogue import EXPORTED

PREFIX = "attributary_"
_OF_TARGET = {"job", "instance"}
_HISTOGRAM = re.compile("_(bucket|sum|count)$")


def catalogued(name: str) -> tuple[str, tuple[str, ...]]:
    """Return help text and labels of a metric, with or without the prefix; a histogram also by its parts.

    Raises
    ------
    KeyError
        There is no such metric.
    """
    short = name.removeprefix(PREFIX)
    if short in EXPORTED:
        return EXPORTED[short]
    text, labels = EXPORTED[_HISTOGRAM.sub("", short)]
    return text, (*labels, "le") if short.endswith("_bucket") else labels


def series(name: str, at: str = "", **where: str) -> str:
    """Return the selector of a metric: `where` maps labels to values; `~` marks a regular expression, `!` negates.

    `at` is what follows the selector: a range, an offset.
    """
    _, labels = catalogued(name)
    if unknown := where.keys() - set(labels) - _OF_TARGET:
        raise KeyError(f"{name} has no label {', '.join(sorted(unknown))}; it has {', '.join(labels)}")
    chosen = {"job": "~$job", **where}
    return f"{PREFIX}{name}{{{', '.join(map(_matcher, chosen, chosen.values()))}}}{at}"


def _matcher(label: str, value: str) -> str:
    for mark, operator in (("!~", "!~"), ("!", "!="), ("~", "=~")):
        if value.startswith(mark):
            return f'{label}{operator}"{value.removeprefix(mark)}"'
    return f'{label}="{value}"'


def latest(name: str, at: str = "", **where: str) -> str:
    """Return one series per set of the catalogue's labels, whichever worker has it."""
    return f"max {_by(name)} ({series(name, at, **where)})"


def total(name: str, at: str = "", **where: str) -> str:
    """Return the sum over the workers, for what each worker counts for itself."""
    return f"sum {_by(name)} ({series(name, at, **where)})"


def _by(name: str) -> str:
    return f"by ({', '.join(catalogued(name)[1])})"


def grown(name: str, over: str, **where: str) -> str:
    """Return what a counter of the checkpoint has gained over a time, wherever it was counted."""
    return f"clamp_min({latest(name, **where)} - {latest(name, f' offset {over}', **where)}, 0)"


def per_second(name: str, **where: str) -> str:
    """Return what a counter of the checkpoint gains per second, over one step of the panel."""
    return f"{grown(name, '$__interval', **where)} / ($__interval_ms / 1000)"


def happened(name: str, **where: str) -> str:
    """Return what a counter of the checkpoint has gained since its lowest value in the dashboard's time range."""
    lowest = f"min {_by(name)} (min_over_time({series(name, '[$__range]', **where)}))"
    return f"{latest(name, **where)} - {lowest}"


def seen_incidents(**where: str) -> str:
    """Return how many incidents of each model were open in the dashboard's time range."""
    labels = ", ".join(catalogued("incident_info")[1])
    seen = f"max by ({labels}) (max_over_time({series('incident_info', '[$__range]', **where)}))"
    return f"count by (model_id) (count by (model_id, id) ({seen}))"


def open_incidents(**where: str) -> str:
    """Return the open incidents, each with its headline; two workers may show two of one model while it moves."""
    headline = f"topk by (model_id) (1, {latest('incident_info', **where)})"
    return f"{latest('incident_open', **where)} * on (model_id) group_left (headline) {headline}"


def rate(name: str, over: str = "$__rate_interval", **where: str) -> str:
    """Return the rate per second of a counter that begins at 0 with each process, summed over the workers."""
    return f"sum {_by(name)} (rate({series(name, f'[{over}]', **where)}))"


def ranks(name: str, places: int, **where: str) -> str:
    """Return the ranks of the first `places` features, 1 the largest: PromQL counts in how many top k each is."""
    ranked = latest(name, **{"feature": "!__other__", **where})
    tops = (f'label_replace(topk({k}, {ranked}), "top", "{k}", "", "")' for k in range(1, places + 1))
    counted = f"count {_by(name)} ({' or '.join(tops)})"
    return f"{places + 1} - {counted}"


def known(now: str, ever: str, label: str) -> str:
    """Return `now` for the series that have `ever` counted anything, and 0 with the label `none`."""
    return f'{now} and {ever} > 0 or label_replace(vector(0), "{label}", "none", "", "")'


def dead_letters() -> str:
    """Return the dead letters of each step by topic and reason."""
    summed = "sum by (topic, reason)"
    now, ever = grown("dead_letters_total", "$__interval"), latest("dead_letters_total")
    return known(f"{summed} ({now})", f"{summed} ({ever})", "reason")


def firing() -> str:
    """Return the firing alerts of the shipped rules; Prometheus makes this series itself."""
    return 'max by (alertname, severity, model_id) (ALERTS{alertname=~"Attributary.*", alertstate="firing"})'


def of_process(name: str, at: str = "") -> str:
    """Return a metric that every process has, for the workers alone."""
    return f'{name}{{job=~"$job", instance=~"$instance"}}{at}'
