"""Defines the alerts about importance: what a model relies on has shifted.

A worker itself tells a lasting shift, with a bound on false ones. The other alerts compare shares, and wait until those
are made of enough observations. A change explains that importance moves: for its window it holds those alerts back.
"""

from __future__ import annotations

from .alerts import DIGITS, MODEL_DASHBOARD, Alert, ask, number, percent
from .options import Thresholds
from .recorded import CHANGES_TOLD, USUAL_SHARE, compared_share, recorded

_SHARE = compared_share()
_N = recorded("explainer_observations")
_OF_FEATURE = ("model_id", "explainer", "feature")
_FEATURE = "{{ $labels.feature }} of {{ $labels.model_id }}"


def importance_alerts(at: Thresholds) -> list[Alert]:
    """Return the alerts of the area `importance`."""
    enough = f"{_N} >= {number(at.min_observations)}"
    n = f"n = {ask('explainer_observations', 'model_id', 'explainer')} observations"
    ago = at.compare_with
    before = f"{USUAL_SHARE} offset {ago}"
    unexplained = f"unless ignoring (explainer, feature)\n{_explaining(at)}"
    # Also then: the share of a model that had just begun is noise.
    comparable = (
        f"and ignoring (feature) {enough}\n"
        f"and ignoring (feature) last_over_time({_N}[10m] offset {ago}) >= {number(at.min_observations)}\n"
        f"{unexplained}"
    )
    return [
        _alert(
            "ImportanceShifted",
            f"{recorded('importance_shifted')} == 1\n{unexplained}",
            f"{_FEATURE}: its importance has moved, lastingly ({{{{ $labels.explainer }}}})",
            f"Its share is {ask('feature_importance_share_ratio', *_OF_FEATURE, form='humanizePercentage')} now; a "
            f"change of {ask('importance_least_shift', *_OF_FEATURE, form=DIGITS)} or more, in the unit of the loss, "
            f"can be told; {n}. Since when, from where and by how much stands in the event.",
            wait="0s",
            annotations={"explanation": "attributary changes {{ $labels.model_id }}"},
        ),
        _alert(
            "FeatureCollapsed",
            # A feature that has fallen behind may have no series of its own any more: then its share counts as 0.
            f"(\n"
            f"    {_SHARE} < {number(at.collapsed_to)} * {before}\n"
            f"  and\n"
            f"    {before} >= {number(at.collapsed_from)}\n"
            f"or\n"
            f"    0 * ({before} >= {number(at.collapsed_from)})\n"
            f"  unless\n"
            f"    {_SHARE}\n"
            f")\n{comparable}",
            f"{_FEATURE} has lost its importance ({{{{ $labels.explainer }}}})",
            f"Its share is {{{{ $value | humanizePercentage }}}}, less than {percent(at.collapsed_to)} of what it was "
            f"{ago} ago, when it was {percent(at.collapsed_from)} or more; {n}.",
        ),
        _alert(
            "FeatureSurged",
            f"(\n"
            f"    {_SHARE} >= {number(at.surged_to)}\n"
            f"  and\n"
            f"    {_SHARE} > {number(at.surged_by)} * {before}\n"
            f"or\n"
            f"    {_SHARE} >= {number(at.surged_to)}\n"
            f"  unless\n"
            f"    {before}\n"
            f")\n{comparable}",
            f"{_FEATURE} has become important ({{{{ $labels.explainer }}}})",
            f"Its share is {{{{ $value | humanizePercentage }}}}, {percent(at.surged_to)} or more, and more than "
            f"{number(at.surged_by)} times what it was {ago} ago; {n}.",
        ),
        _alert(
            "SingleFeatureDominates",
            f"{_SHARE} >= {number(at.dominant_share)}\n"
            f"and ignoring (feature) count without (feature) ({recorded('feature_importance_share_ratio')}) > 1\n"
            f"and ignoring (feature) {enough}",
            "{{ $labels.model_id }} relies on {{ $labels.feature }} alone ({{ $labels.explainer }})",
            f"Its share is {{{{ $value | humanizePercentage }}}}, {percent(at.dominant_share)} or more; {n}.",
        ),
    ]


def _explaining(at: Thresholds) -> str:
    """Return the expression for models whose last change is within the observations, and the time, that it explains.

    Compared with the count of changes at the last minute that lies so many observations back; where none does within
    the time, with the lowest count of that time. It is counted in observations, and not by an inhibition: that of
    Alertmanager lasts as long as the alert on the change, which is millions of observations on a fast stream.
    """
    n = recorded("model_observations_total")
    long_ago = f"{CHANGES_TOLD} and {n} <= {n} @ end() - {number(at.explains_observations)}"
    return (
        f"{CHANGES_TOLD} > (\n"
        f"    max_over_time(({long_ago})[{at.explains_within}:1m])\n"
        f"  or\n"
        f"    min_over_time({CHANGES_TOLD}[{at.explains_within}])\n"
        f")"
    )


def _alert(
    name: str, expr: str, summary: str, description: str, wait: str = "5m", annotations: dict[str, str] | None = None
) -> Alert:
    return Alert(
        name,
        "importance",
        "warning",
        expr,
        summary,
        description,
        wait,
        dashboard=MODEL_DASHBOARD,
        annotations=annotations or {},
    )
