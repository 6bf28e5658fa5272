"""Defines the alerts about importance: what a model relies on has shifted.

All wait until the importance is made of enough observations. NDCG alone is blind, of ten equal features one dying gives
1.00: so there is the share that has moved beside it, and each feature by itself.
"""

from __future__ import annotations

from .alerts import MODEL_DASHBOARD, Alert, ask, number, percent
from .options import Thresholds
from .recorded import USUAL_SHARE, recorded

_SHARE = f'{recorded("feature_importance_share_ratio")}{{feature!="__other__"}}'
_N = recorded("explainer_observations")
_FEATURE = "{{ $labels.feature }} of {{ $labels.model_id }}"


def importance_alerts(at: Thresholds) -> list[Alert]:
    """Return the alerts of the area `importance`."""
    enough = f"{_N} >= {number(at.min_observations)}"
    n = f"n = {ask('explainer_observations', 'model_id', 'explainer')} observations"
    ago = at.compare_with
    before = f"{USUAL_SHARE} offset {ago}"
    # Also then: the share of a model that had just begun is noise.
    comparable = (
        f"and ignoring (feature) {enough}\n"
        f"and ignoring (feature) last_over_time({_N}[10m] offset {ago}) >= {number(at.min_observations)}"
    )
    return [
        _alert(
            "RankingShifted",
            f"{recorded('importance_ndcg_ratio')} < {number(at.ranking_ndcg)}\nand {enough}",
            "{{ $labels.model_id }} ranks its features differently ({{ $labels.explainer }})",
            f'NDCG of the ranking against the reference is {{{{ printf "%.2f" $value }}}}, below '
            f"{number(at.ranking_ndcg)}; {n}.",
        ),
        _alert(
            "ShareShifted",
            f"{recorded('importance_shift_ratio')} > {number(at.share_shift)}\nand {enough}",
            "{{ $labels.model_id }} relies on other features ({{ $labels.explainer }})",
            f"{{{{ $value | humanizePercentage }}}} of the importance has moved since the reference, more than "
            f"{percent(at.share_shift)}; {n}.",
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


def _alert(name: str, expr: str, summary: str, description: str) -> Alert:
    return Alert(name, "importance", "warning", expr, summary, description, wait="5m", dashboard=MODEL_DASHBOARD)
